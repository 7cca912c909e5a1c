"""Who gets in: one guard in front of everything that is served.

A web page can make a browser send requests to loopback, under its own name (Origin) or, by rebinding a name to
127.0.0.1, under another Host. So both are compared with exact lists, and a token is needed for whatever reads or
writes memory.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def hosts(port: int) -> frozenset[str]:
    """List the Host values that name this service."""
    return frozenset(f"{name}:{port}" for name in _LOOPBACK)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of the guard: status, machine-readable code, what to do."""

    status: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """ASGI middleware: lets pass what names this service and comes from its own page, a listed one, or no page.

    HTTP, event streams and WebSocket handshakes alike: a browser asks nobody before it opens a WebSocket.
    """

    app: App
    hosts: frozenset[str]
    origins: frozenset[str]  # pages that are let in beside our own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (refusal := self.refuses(scope)) is None:
            await self.app(scope, receive, send)
        else:
            await refuse(scope, send, refusal)

    def refuses(self, scope: Scope) -> Refusal | None:
        """Say why a request may not pass; None when it may."""
        host = values(scope, b"host")
        if not on_socket(scope) and (len(host) != 1 or host[0].lower() not in self.hosts):
            return Refusal(421, "HOST", f"this service answers as {', '.join(sorted(self.hosts))} only")
        own = {f"http://{name}" for name in self.hosts}
        origins = [origin.lower() for origin in values(scope, b"origin")]
        listed = bool(origins) and all(origin in self.origins for origin in origins)
        # A page that only loads something from here sends no Origin, but browsers say where it is from.
        elsewhere = "cross-site" in [site.lower() for site in values(scope, b"sec-fetch-site")]
        if any(origin not in own | self.origins for origin in origins) or (elsewhere and not listed):
            how = "its own page is /graphql; GRAPHSVC_ORIGINS lists others"
            return Refusal(403, "ORIGIN", f"pages of other origins may not use this service; {how}")
        return None


def asked(scope: Scope) -> list[tuple[str, str]]:
    """List the parameters of a URL that asks a document; an empty list when it asks for nothing, or for a page."""
    if any("text/html" in accept for accept in values(scope, b"accept")):
        return []
    found = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    return found if any(name == "query" for name, _ in found) else []


def on_socket(scope: Scope) -> bool:
    """Say whether a request came by the unix socket, which only the owner reaches; HTTP clients send any Host there."""
    return scope.get("server") is not None and scope["server"][1] is None


def written(refusal: Refusal) -> tuple[bytes, dict[str, str]]:
    """Write a refusal as a GraphQL response with errors only: its body and its headers, wherever it comes from."""
    error = {"message": refusal.message, "extensions": {"code": refusal.code}}
    headers = {"content-type": "application/json; charset=utf-8", "cache-control": "no-store"}
    more = {401: {"www-authenticate": 'Bearer realm="graphsvc"'}, 503: {"retry-after": "1"}}
    body = json.dumps({"errors": [error]}, ensure_ascii=False).encode()
    return body, {**headers, "content-length": str(len(body)), **more.get(refusal.status, {})}


async def refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Send a refusal, also in place of a WebSocket."""
    body, about = written(refusal)
    headers = [(name.encode(), value.encode()) for name, value in about.items()]
    kind = "websocket.http" if scope["type"] == "websocket" else "http"
    await send({"type": f"{kind}.response.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": body})


def values(scope: Scope, name: bytes) -> list[str]:
    """Return all values of a header, as sent."""
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key.lower() == name]

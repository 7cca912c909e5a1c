"""Who gets in: one guard in front of everything that is served.

A web page can make a browser send requests to loopback, under its own name (Origin) or, by rebinding a name to
127.0.0.1, under another Host. So both are compared with exact lists, and a token is needed for whatever reads or
writes memory.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
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
    """ASGI middleware: lets pass what names this service, comes from its own page or from no page, and has the token.

    GET of an open path that asks nothing needs no token: the page, its assets and the health check are package text.
    """

    app: App
    token: str
    hosts: frozenset[str]
    open_paths: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif (refusal := self.refuses(scope)) is not None:
            await refuse(send, refusal)
        else:
            await self.app(scope, receive, send)

    def refuses(self, scope: Scope) -> Refusal | None:
        """Say why a request may not pass; None when it may."""
        host = _values(scope, b"host")
        if not on_socket(scope) and (len(host) != 1 or host[0].lower() not in self.hosts):
            return Refusal(421, "HOST", f"this service answers as {', '.join(sorted(self.hosts))} only")
        origins = {f"http://{name}" for name in self.hosts}
        if any(origin.lower() not in origins for origin in _values(scope, b"origin")):
            return Refusal(403, "ORIGIN", "pages of other origins may not use this service; its own page is /graphql")
        if scope["method"] in {"GET", "HEAD"} and scope["path"] in self.open_paths and not asked(scope):
            return None
        if not self._has_token(scope):
            how = "send the header 'Authorization: Bearer TOKEN'; the token stands in the file `token` of the home"
            return Refusal(401, "TOKEN", how)
        return None

    def _has_token(self, scope: Scope) -> bool:
        given = _values(scope, b"authorization")
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(" ")
        same = secrets.compare_digest(token.strip().encode("latin-1"), self.token.encode("ascii"))
        return scheme.lower() == "bearer" and same


def asked(scope: Scope) -> list[tuple[str, str]]:
    """List the parameters of a URL that asks a document; an empty list when it asks for nothing, or for a page."""
    if any("text/html" in accept for accept in _values(scope, b"accept")):
        return []
    found = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    return found if any(name == "query" for name, _ in found) else []


def on_socket(scope: Scope) -> bool:
    """Say whether a request came by the unix socket, which only the owner reaches; HTTP clients send any Host there."""
    return scope.get("server") is not None and scope["server"][1] is None


async def refuse(send: Send, refusal: Refusal, extra: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Send a refusal as a GraphQL response with errors only."""
    error = {"message": refusal.message, "extensions": {"code": refusal.code}}
    body = json.dumps({"errors": [error]}, ensure_ascii=False).encode()
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *([(b"www-authenticate", b'Bearer realm="graphsvc"')] if refusal.status == 401 else []),
        *extra,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key.lower() == name]

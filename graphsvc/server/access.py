"""Which tokens hold, and who shows one. A revoked one ends what is open under it.

The owner's own token is compared in constant time. Any other is looked up by its SHA-256 digest: how long that takes
depends on bits of the digest only, and from those nobody gets to 256 random bits that have it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NoReturn

from graphsvc import bugs, clock
from graphsvc.api.limits import LIMITS
from graphsvc.client.token import digest, is_secret
from graphsvc.server.guard import App, Receive, Refusal, Scope, Send, asked, refuse, values
from graphsvc.server.workers import Busy, Workers
from graphsvc.store.access import tokens
from graphsvc.store.access.tokens import OWN, Token
from graphsvc.store.database import Connection

LOOK_S: Final = 0.5  # that a token is trusted for without another look: another process may revoke it
SHOWN: Final = "graphsvc.token"  # key of the scope of a request: the token that was shown
_READ_S: Final = 5.0
_OWN: Final = object()  # in the place of an asker
# One answer to whatever does not hold, known or not.
UNKNOWN: Final = Refusal(
    401,
    "TOKEN",
    "send the header 'Authorization: Bearer TOKEN' with a token that holds: the owner's stands in the file `token` of"
    " the home, `graphsvc token create` makes others",
)


class Keys:
    """The tokens of this home: read when one is shown, at most twice a second if it is known, and while one is open."""

    def __init__(self, workers: Workers, own: str) -> None:
        self._workers = workers
        self._own = own.encode("ascii")
        self._known: dict[bytes, Token] = {}
        self._read_at = 0.0  # by the monotonic clock, when the reading of `_known` began
        self._reading = asyncio.Lock()
        self._held: dict[int, list[asyncio.Event]] = {}  # what is open, by the number of its token
        self._wanted = asyncio.Event()

    async def shown(self, given: Sequence[str]) -> Token | None:
        """Return the token that the values of the Authorization header hold; None when it is none that holds.

        Raise Busy or TimeoutError when that cannot be found out now.
        """
        scheme, _, value = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            return None
        secret = value.strip()
        if secrets.compare_digest(secret.encode("utf-8", "replace"), self._own):
            return OWN
        if not is_secret(secret):
            return None
        found = self._known.get(digest(secret))
        if found is None or time.monotonic() - self._read_at > LOOK_S:
            await self._read()
        return self._known.get(digest(secret))

    def check(self, token: Token) -> None:
        """Raise Busy when a token that is not the owner's own has enough open: the owner needs places, too."""
        if len(self._held.get(token.id, ())) >= LIMITS["token_connections"].most:
            raise Busy("token_connections")

    @contextmanager
    def held(self, token: Token) -> Iterator[asyncio.Event]:
        """Hold something open under a token for the block; the event is set when the token holds no longer."""
        lost = asyncio.Event()
        if token.id == OWN.id:
            yield lost
            return
        self._held.setdefault(token.id, []).append(lost)
        self._wanted.set()
        try:
            yield lost
        finally:
            self._held[token.id].remove(lost)
            if not self._held[token.id]:
                del self._held[token.id]

    async def watch(self) -> NoReturn:
        """Look at the tokens again and again, as long as something is open under one."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(LOOK_S)
            if not self._held:
                self._wanted.clear()
                continue
            try:
                await self._read()
            except (Busy, TimeoutError):
                continue
            except Exception as error:  # noqa: BLE001 # whatever it is, the next look may succeed
                bugs.log("the tokens", error)
                continue
            holding = {token.id for token in self._known.values()}
            for number in self._held.keys() - holding:
                for lost in self._held[number]:
                    lost.set()

    async def _read(self) -> None:
        """Read which tokens hold now; those who ask at the same time share one reading."""
        wanted = time.monotonic()
        async with self._reading:
            if self._read_at > wanted:
                return
            begun = time.monotonic()
            self._known = await self._workers.run(lambda db: tokens.holding(db, _now()), _READ_S, _OWN)
            self._read_at = begun


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """ASGI middleware: lets pass who shows a token that holds, and says which in the request's scope.

    GET of an open path that asks nothing needs none: the page, its assets and the health check are package text. A
    browser cannot send one with a WebSocket handshake, so there it may come with the first message; a wrong one is
    refused at once.
    """

    app: App
    keys: Keys
    open_paths: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = None if scope["type"] == "lifespan" else await self._refused(scope)
        if refused is None:
            await self.app(scope, receive, send)
        else:
            await refuse(scope, send, refused)

    async def _refused(self, scope: Scope) -> Refusal | None:
        given = values(scope, b"authorization")
        if _open(scope, given, self.open_paths):
            return None
        try:
            token = await self.keys.shown(given)
        except (Busy, TimeoutError):
            return Refusal(503, "BUSY", "no place to look the token up; try again in a second")
        scope[SHOWN] = token
        return UNKNOWN if token is None else None


def refusal(db: Connection, token: Token) -> Refusal | None:
    """Say that a token holds no longer, where something is read for who showed it; None when it does."""
    return None if tokens.holds(db, token, _now()) else UNKNOWN


def _open(scope: Scope, given: Sequence[str], paths: frozenset[str]) -> bool:
    if scope["type"] == "websocket":
        return not given
    return scope["method"] in {"GET", "HEAD"} and scope["path"] in paths and not asked(scope)


def _now() -> str:
    return clock.utc_text(clock.system())

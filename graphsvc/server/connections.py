"""Connections that never ask anything: closed after a while, and at once when their place is needed.

Whoever can reach the port can open connections without a token; they must not keep the owner out.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST: Final = 256
HEAD_S: Final = 5.0  # from the connection to the end of the first request's head


class HttpConnection(H11Protocol):
    """A connection of the service: HTTP as uvicorn speaks it, with an end for those who do not speak."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 # uvicorn's own signature
        super().__init__(*args, **kwargs)
        self._since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin, in the place of the connection that has said nothing for longest when there is none left."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._late)
        waiting = [one for one in self.connections if isinstance(one, HttpConnection) and one.idle and one is not self]
        if len(self.connections) >= MOST and waiting:
            min(waiting, key=lambda one: one._since).end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer with the connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Say whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        """Close at once; the place is free from now on."""
        self.connections.discard(self)
        self.transport.abort()

    def _late(self) -> None:
        if self.cycle is None:
            self.end()

"""Connections that never ask anything, or do not read their answer: closed after a while, and when a place is needed.

Whoever can reach the port can open connections without a token; they must not keep the owner out.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST: Final = 256
HEAD_S: Final = 5.0  # from the connection to the end of the first request's head
READ_S: Final = 5.0  # without reading anything of an answer


class HttpConnection(H11Protocol):
    """A connection of the service: HTTP as uvicorn speaks it, with an end for those who do not speak."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 # uvicorn's own signature
        super().__init__(*args, **kwargs)
        self._since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin, in the place of the connection that has said nothing for longest when there is none left."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._late)
        waiting = [one for one in self.connections if isinstance(one, HttpConnection) and one.idle and one is not self]
        if len(self.connections) >= MOST and waiting:
            min(waiting, key=lambda one: one._since).end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer with the connection."""
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that what was sent is not read."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size() + 1)

    def resume_writing(self) -> None:
        """Note that something of it was read."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    @property
    def idle(self) -> bool:
        """Say whether no request is being answered, or nobody reads the answer."""
        return self.cycle is None or self.cycle.response_complete or self._unread is not None

    def end(self) -> None:
        """Close at once; the place is free from now on."""
        self.connections.discard(self)
        self.transport.abort()

    def _watch(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.end()
        else:
            self._unread = self.loop.call_later(READ_S, self._watch, left)

    def _late(self) -> None:
        if self.cycle is None:
            self.end()

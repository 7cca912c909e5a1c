"""Connections that never ask anything, or do not read their answer: closed after a while, and when a place is needed.

Whoever can reach the port can open connections without a token; they must not keep the owner out. What is being
answered, a stream too, keeps its place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set as AbstractSet
from typing import Any, Final, Protocol, runtime_checkable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from graphsvc.server.streams.sockets import KNOWN

MOST: Final = 256
ENDING: Final = 32  # more than that many are not counted yet as ended while others take their places
HEAD_S: Final = 5.0  # from the connection to the end of the first request's head
READ_S: Final = 8.0  # without reading anything of an answer; a stream that is not read ends itself before that
CLOSE_S: Final = 30.0  # for a client to take what was sent before the end


@runtime_checkable
class Guest(Protocol):
    """A connection as those see it that need its place."""

    since: float

    @property
    def idle(self) -> bool:
        """Say whether nothing is being answered."""

    def end(self) -> None:
        """Close at once; the place is free from now on."""


class HttpConnection(H11Protocol):
    """A connection of the service: HTTP as uvicorn speaks it, with an end for those who do not speak."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 # uvicorn's own signature
        super().__init__(*args, **kwargs)
        self.since = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin, in the place of the connection that has said nothing for longest when there is none left."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._late)
        _make_room(self.connections, self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers with the connection."""
        self._forget()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Leave the transport to the WebSocket."""
        self._forget()
        super().handle_websocket_upgrade(event)

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
        """End a connection whose client takes nothing, even one that was closed and waits for that client."""
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._unread = self.loop.call_later(READ_S, self._watch, left)
        else:
            self.end()

    def _late(self) -> None:
        if self.cycle is None:
            self.end()

    def _forget(self) -> None:
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket of the service; one without a token, or one that was closed, leaves its place to others."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 # uvicorn's own signature
        super().__init__(*args, **kwargs)
        self.since = time.monotonic()
        self._abandoned: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer with the connection."""
        if self._abandoned is not None:
            self._abandoned.cancel()
        self.connections.add(self)  # it is taken out once more
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:  # noqa: ANN401 # one of uvicorn's many types
        """Send a message; the last one waits for no room, and the client for no more than a while."""
        if message["type"] == "websocket.close":
            self.writable.set()
            self._abandoned = self.loop.call_later(CLOSE_S, self.transport.abort)
        await super().send(message)

    @property
    def idle(self) -> bool:
        """Say whether nobody is known to talk here."""
        return self.close_sent or KNOWN not in getattr(self, "scope", ())

    def end(self) -> None:
        """Close at once; the place is free from now on."""
        self.connections.discard(self)
        self.transport.abort()


def _make_room(connections: AbstractSet[object], newest: HttpConnection) -> None:
    waiting = [one for one in connections if isinstance(one, Guest) and one.idle and one is not newest]
    if len(connections) >= MOST and waiting:
        min(waiting, key=lambda one: one.since).end()

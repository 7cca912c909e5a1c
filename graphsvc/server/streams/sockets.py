"""GraphQL over WebSocket: the graphql-transport-ws protocol, with queries and mutations too.

Written here because the library's handler is not a public part of it, executes on the event loop and has no end for
clients that take nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final, NoReturn

from starlette.websockets import WebSocket, WebSocketDisconnect

from graphsvc.api.limits import LIMITS
from graphsvc.client import executor
from graphsvc.recall import budget
from graphsvc.recall.scope import Asker
from graphsvc.server import exchange
from graphsvc.server.access import Keys
from graphsvc.server.exchange import Question, Refused
from graphsvc.server.streams.answers import Answer, Streams, too_many, within
from graphsvc.server.workers import Busy

PROTOCOL: Final = "graphql-transport-ws"
INIT_S: Final = 5.0
_FIRST: Final = 8_192  # characters of a message from who has not shown a token yet
_LARGE: Final = 16_384  # characters of a message that is not read on the event loop
AGAIN: Final = 1013  # of WebSocket itself: try again later
SLOW: Final = 4490  # ours, beside the codes of the protocol
KNOWN: Final = "graphsvc.known"  # key of the scope: the token was given
_MAX_REASON: Final = 120  # bytes; a close frame has room for 123
_AUTHORIZATION: Final = "Authorization"
_NAMES: Final = frozenset(name.lower() for name in (_AUTHORIZATION, executor.VIEWER, executor.PROJECT, executor.CWD))


class Closed(Exception):  # what ends a conversation
    """The connection is closed with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Conversation:
    """One connection: who asks, and the operations that run on it."""

    def __init__(self, websocket: WebSocket, streams: Streams, keys: Keys) -> None:
        self._websocket = websocket
        self._streams = streams
        self._keys = keys
        self._asker: Asker | None = None
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._positions: dict[str, int] = {}  # up to which each subscription was delivered
        self._closing = False
        self._heard: Final[Mapping[str, Callable[[dict[str, Any]], Awaitable[None]]]] = {
            "connection_init": self._init,
            "ping": self._ping,
            "pong": self._pong,
            "subscribe": self._subscribe,
            "complete": self._complete,
        }

    async def run(self) -> None:
        """Talk until either side closes the connection."""
        if PROTOCOL not in self._websocket.scope["subprotocols"]:
            await self._websocket.accept()
            await self._websocket.close(4406, f"Subprotocol not acceptable: use {PROTOCOL}")
            return
        await self._websocket.accept(PROTOCOL)
        try:
            asker = await self._introduced()
            with self._keys.held(asker.token) as lost:
                await self._talk(lost)
        except Closed as closed:
            await self._close(closed)
        except WebSocketDisconnect:
            pass
        finally:
            self._closing = True
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _introduced(self) -> Asker:
        try:
            async with asyncio.timeout(INIT_S):
                while self._asker is None:
                    await self._hear(await self._message())
        except TimeoutError:
            raise Closed(4408, "Connection initialisation timeout") from None
        return self._asker

    async def _talk(self, lost: asyncio.Event) -> NoReturn:
        """Hear message after message, until the client's token holds no longer."""
        ended = asyncio.create_task(lost.wait())
        heard: asyncio.Task[dict[str, Any]] | None = None
        try:
            while True:
                heard = asyncio.create_task(self._message())
                await asyncio.wait((heard, ended), return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    raise Closed(4401, "Unauthorized: the token holds no longer; ask the owner for another one")
                await self._hear(heard.result())
        finally:
            for task in (ended, heard):
                if task is not None:
                    task.cancel()

    async def _message(self) -> dict[str, Any]:
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        text = message.get("text")
        if text is None:
            raise Closed(4400, "Invalid message: it must be text")
        if self._asker is None and len(text) > _FIRST:
            raise Closed(4400, "Invalid message: too long before connection_init")
        try:
            read = partial(exchange.decoded, text.encode(), "the message")
            value = await asyncio.to_thread(read) if len(text) > _LARGE else read()
        except Refused as refused:
            raise Closed(4400, f"Invalid message: {refused}") from None
        if not isinstance(value, dict):
            raise Closed(4400, "Invalid message: it must be a JSON object")
        return value

    async def _hear(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        heard = self._heard.get(kind) if isinstance(kind, str) else None
        if heard is None:
            raise Closed(4400, f"Invalid message: its type must be one of {', '.join(self._heard)}")
        await heard(message)

    async def _init(self, message: dict[str, Any]) -> None:
        if self._asker is not None:
            raise Closed(4429, "Too many initialisation requests")
        payload = message.get("payload") or {}
        if not isinstance(payload, dict) or not all(isinstance(value, str) for value in _own(payload).values()):
            raise Closed(4400, "Invalid message: the payload holds what headers hold, as strings")
        own = _own(payload)

        def values(name: str) -> list[str]:
            said = own.get(name.lower())
            return list(dict.fromkeys([*self._websocket.headers.getlist(name), *([said] if said is not None else [])]))

        try:
            token = await self._keys.shown(values(_AUTHORIZATION))
            if token is not None:
                self._keys.check(token)
        except TimeoutError:
            raise Closed(AGAIN, "no place to look the token up; try again in a second") from None
        except Busy as busy:
            limit = LIMITS[busy.limit]
            raise Closed(AGAIN, f"{limit.most} {limit.what} already; {limit.advice}") from None
        if token is None:
            raise Closed(4403, 'Forbidden: the payload needs {"Authorization": "Bearer TOKEN"}, of a token that holds')
        try:
            self._asker = exchange.asker(values, token)
        except Refused as refused:
            code, kind = (4403, "Forbidden: ") if refused.refusal.status == 403 else (4400, "")
            raise Closed(code, f"{kind}{refused}") from None
        self._websocket.scope[KNOWN] = True
        await self._send('{"type":"connection_ack"}')

    async def _ping(self, _: dict[str, Any]) -> None:
        await self._send('{"type":"pong"}')

    async def _pong(self, _: dict[str, Any]) -> None:
        """Take the sign of life for what it is."""

    async def _subscribe(self, message: dict[str, Any]) -> None:
        name, payload = message.get("id"), message.get("payload")
        if self._asker is None:
            raise Closed(4401, "Unauthorized: send connection_init and wait for connection_ack first")
        if not isinstance(name, str) or not name or not isinstance(payload, dict):
            raise Closed(4400, "Invalid message: subscribe needs an id and a payload")
        if name in self._operations:
            raise Closed(4409, f"Subscriber for {name} already exists")
        try:
            question = exchange.checked(payload)
        except Refused as refused:
            raise Closed(4400, f"Invalid message: {refused}") from None
        if len(self._operations) >= LIMITS["running"].most:
            await self._send(_error(name, too_many("running")))
            return
        task = asyncio.create_task(self._answer(name, question, self._asker))
        self._operations[name] = task
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _complete(self, message: dict[str, Any]) -> None:
        name = message.get("id")
        if not isinstance(name, str):
            raise Closed(4400, "Invalid message: complete needs an id")
        self._positions.pop(name, None)
        task = self._operations.pop(name, None)
        if task is not None:
            task.cancel()

    async def _answer(self, name: str, question: Question, asker: Asker) -> None:
        last = f'{{"id":{json.dumps(name)},"type":"complete"}}'
        try:
            async with aclosing(self._streams.answers(question, asker)) as answers:
                async for one in answers:
                    if one.errors:
                        last = _error(name, one)
                        break
                    if one.text:
                        await self._send(f'{{"id":{json.dumps(name)},"type":"next","payload":{one.text}}}')
                    if one.position is not None:
                        self._positions[name] = one.position
            # The id is free from here on: the client may use it again as soon as it has the last message.
            self._positions.pop(name, None)
            self._operations.pop(name, None)
            await self._send(last)
        except Closed as closed:
            await self._close(closed)
        except WebSocketDisconnect:
            pass  # the conversation ends on its own

    async def _send(self, text: str) -> None:
        if self._closing:
            return
        try:
            await within(self._websocket.send_text(text))
        except TimeoutError:
            place = f"resume after {min(self._positions.values())}" if self._positions else "ask again"
            raise Closed(SLOW, f"slow: {place}") from None

    async def _close(self, closed: Closed) -> None:
        if self._closing:
            return
        self._closing = True
        reason = closed.reason.encode()[:_MAX_REASON].decode(errors="ignore")
        with suppress(TimeoutError, WebSocketDisconnect):
            await within(self._websocket.close(closed.code, reason))


def _own(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return those entries of a payload that stand for headers of ours."""
    return {name.lower(): value for name, value in payload.items() if name.lower() in _NAMES}


def _error(name: str, answer: Answer) -> str:
    return f'{{"id":{json.dumps(name)},"type":"error","payload":{budget.line(answer.errors)}}}'

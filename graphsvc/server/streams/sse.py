"""GraphQL over an event stream: one operation a request (the protocol's distinct-connections mode)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing, suppress
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphsvc.server.exchange import STREAM
from graphsvc.server.streams.answers import Answer, within

KEEP_S: Final = 12.0  # between two signs of life
STOP_S: Final = 1.0
_HEADERS: Final = [
    (b"content-type", f"{STREAM}; charset=utf-8".encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream(Response):
    """Sends answers as events until they end, the client goes, the service stops, or the client takes them too slowly.

    `held` gives what is set when the client's token holds no longer; nothing is sent after that. Only answers that end
    are followed by `complete`; after any other end the client comes back with the last position.
    """

    def __init__(
        self,
        answers: AsyncGenerator[Answer, None],
        stopping: asyncio.Event,
        held: AbstractContextManager[asyncio.Event],
    ) -> None:
        super().__init__()
        self._answers = answers
        self._stopping = stopping
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        with self._held as lost:
            await self._run(lost, receive, send)

    async def _run(self, lost: asyncio.Event, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        told = asyncio.create_task(self._tell(send))
        ended = [asyncio.create_task(self._stopping.wait()), asyncio.create_task(lost.wait())]
        others = [asyncio.create_task(_keep(send)), asyncio.create_task(_gone(receive))]
        tasks = [told, *ended, *others]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                if not task.done():
                    task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        if True in results[:3]:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await send({"type": "http.response.body", "body": b""})

    async def _tell(self, send: Send) -> bool:
        async with aclosing(self._answers) as answers:
            async for one in answers:
                text = f"event: next\ndata: {one.text}" if one.text else f": behind position {one.position}"
                await _send(send, f"{text}\n\n")
        await _send(send, "event: complete\ndata:\n\n")
        return True


async def _keep(send: Send) -> None:
    while True:
        await asyncio.sleep(KEEP_S)
        await _send(send, ":\n\n")


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(send: Send, text: str) -> None:
    await within(send({"type": "http.response.body", "body": text.encode(), "more_body": True}))

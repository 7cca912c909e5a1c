"""What an operation is answered with over a stream: one response, or those of a subscription until somebody ends it.

The ledger is the queue. A subscription reads on only when its client took what was read before, a bounded slice at a
time and off the event loop, so a slow client costs no memory and finds everything where it stopped.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from graphsvc import bugs, clock
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.api.limits import LIMITS
from graphsvc.api.live import Reader
from graphsvc.client.operation import mutates
from graphsvc.graph.mirror import Mirror
from graphsvc.recall import budget
from graphsvc.recall.scope import Asker
from graphsvc.server import access
from graphsvc.server.checker import Checker, Invalid
from graphsvc.server.exchange import Question
from graphsvc.server.workers import Busy, Workers
from graphsvc.store import events
from graphsvc.store.access.tokens import OWN
from graphsvc.store.database import Connection

SEND_S: Final = 5.0  # a client that has not taken a message in this time is too slow
READ_S: Final = 5.0
POLL_S: Final = 0.25  # what other processes store is delivered after this time
READERS: Final = 2  # threads that subscriptions may hold at once; the others are for requests
_SLICE: Final = 262_144  # characters after which a slice ends
_SLICE_S: Final = 0.5
_TRIES: Final = 3
_SUBSCRIPTION: Final = "subscription"  # stands in every document that may be one
_OWN: Final = object()  # in the place of an asker: what subscriptions read is nobody's request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response as JSON, and the ledger position it takes a subscription to; the first one only says where it begins.

    `errors` are those of an operation that was not executed, or that cannot go on.
    """

    text: str = ""
    position: int | None = None
    errors: list[Any] = field(default_factory=list)


class Streams:
    """Answers operations over streams, and knows how many subscriptions this process has."""

    def __init__(
        self,
        workers: Workers,
        checker: Checker,
        wrote: Callable[[], None],
        stopping: asyncio.Event,
        mirror: Mirror | None = None,
    ) -> None:
        self.tail = Tail(workers)
        self.stopping = stopping
        self._workers = workers
        self._checker = checker
        self._wrote = wrote
        self._mirror = mirror
        self._open = 0
        self._under: Counter[int] = Counter()  # the number of a token
        self._turns = asyncio.Semaphore(READERS)

    def wrote(self) -> None:
        """Say that something was stored: it is indexed and delivered now."""
        self._wrote()
        self.tail.wake()

    async def answers(self, question: Question, asker: Asker) -> AsyncGenerator[Answer, None]:
        """Execute an operation; a subscription goes on until the generator is closed."""
        try:
            try:
                answer = await self._first(question, asker)
            except schema.Subscribes:
                async with aclosing(self._subscribed(question, asker)) as found:
                    async for one in found:
                        yield one
            else:
                if mutates(question.document):
                    self.wrote()
                yield answer
        except TimeoutError:
            yield failed("DEADLINE", f"not done within {READ_S:.0f} s; ask for less")
        except Busy as busy:
            yield too_many(busy.limit, "BUSY")
        except Exception as error:  # noqa: BLE001 # a bug ends one operation, not the others of its connection
            yield failed("BUG", bugs.told(bugs.log("a stream", error)))

    async def _first(self, question: Question, asker: Asker) -> Answer:
        """Execute what is executed once; raise Subscribes for what is not."""
        if _SUBSCRIPTION not in question.document:
            return await self._workers.run(lambda db: self._once(db, question, asker), READ_S, asker.who)
        # A client that comes back begins all its subscriptions at once; they take turns instead of its places.
        async with self._turns:
            return await self._workers.run(lambda db: self._once(db, question, asker), READ_S, _OWN)

    def _once(self, db: Connection, question: Question, asker: Asker) -> Answer:
        try:
            question = self._checker.checked(question, streams=True)
        except Invalid as invalid:
            return _failed(invalid.response)
        response = _respond(db, question, asker, None, self._mirror)
        return Answer(text=budget.line(response)) if "data" in response else _failed(response)

    async def _subscribed(self, question: Question, asker: Asker) -> AsyncGenerator[Answer, None]:
        if self._open >= LIMITS["subscriptions"].most:
            yield too_many("subscriptions")
            return
        own = asker.token.id
        if own != OWN.id and self._under[own] >= LIMITS["token_subscriptions"].most:
            yield too_many("token_subscriptions")
            return
        self._open += 1
        self._under[own] += 1
        try:
            reader: Reader | None = Reader()
            while reader is not None:
                found, reader = await self._slice(question, asker, reader)
                for one in found:
                    yield one
                if reader is not None and reader.position is not None and not reader.more:
                    await self.tail.beyond(reader.position)
        finally:
            self._open -= 1
            self._under[own] -= 1
            self._under += Counter()  # without those of none

    async def _slice(self, question: Question, asker: Asker, reader: Reader) -> tuple[list[Answer], Reader | None]:
        late = 0
        while True:
            try:
                async with self._turns:
                    return await self._workers.run(lambda db: _read(db, question, asker, reader), READ_S, _OWN)
            except Busy:
                await asyncio.sleep(POLL_S)
            except TimeoutError:
                # Others may have kept every thread for as long; what is too slow on its own stays so.
                late += 1
                if late == _TRIES:
                    raise


class Tail:
    """Knows where the ledger ends, whoever writes to it: the one who looks, for all who wait."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._end = 0
        self._waiting = 0
        self._woken = asyncio.Event()
        self._grown = asyncio.Event()

    def wake(self) -> None:
        """Say that something was stored, so that it is looked for now."""
        self._woken.set()

    async def beyond(self, position: int) -> None:
        """Wait until there is something behind a position."""
        self._waiting += 1
        self._woken.set()
        try:
            while self._end <= position:
                await self._grown.wait()
        finally:
            self._waiting -= 1

    async def watch(self) -> NoReturn:
        """Look where the ledger ends, as long as somebody waits for it."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S if self._waiting else None):
                    await self._woken.wait()
            self._woken.clear()
            if self._waiting:
                await self._look()

    async def _look(self) -> None:
        try:
            end = await self._workers.run(events.position, READ_S, _OWN)
        except (Busy, TimeoutError):
            return
        except Exception as error:  # noqa: BLE001 # whatever it is, the next look may succeed
            bugs.log("the end of the ledger", error)
            return
        if end > self._end:
            self._end = end
            self._grown.set()
            self._grown = asyncio.Event()


async def within(sending: Awaitable[None]) -> None:
    """Send a message; raise TimeoutError when the client does not make room for it in time."""
    async with asyncio.timeout(SEND_S):
        await sending
    # Where there is room, nothing was waited for: others take their turn, and the end of the connection is heard.
    await asyncio.sleep(0)


def failed(code: str, message: str) -> Answer:
    """Answer an operation that cannot be executed."""
    return _failed({"errors": [{"message": message, "extensions": {"code": code}}]})


def too_many(limit: str, code: str = "TOO_MANY") -> Answer:
    """Answer an operation that there is no place for."""
    exceeded = LIMITS[limit]
    return failed(code, f"{exceeded.most} {exceeded.what} already; {exceeded.advice}")


async def refused(response: Mapping[str, Any]) -> AsyncGenerator[Answer, None]:
    """Answer an operation that is not executed by the response that says why."""
    yield _failed(response)


def _failed(response: Mapping[str, Any]) -> Answer:
    return Answer(text=budget.line(response), errors=response["errors"])


def _read(db: Connection, question: Question, asker: Asker, reader: Reader) -> tuple[list[Answer], Reader | None]:
    """Read on until the ledger or the slice ends; without a reader the subscription cannot go on.

    The reader that was given is left alone: whoever gave it may have stopped waiting.
    """
    here = Reader(position=reader.position, session=reader.session)
    answers: list[Answer] = []
    size, until = 0, time.monotonic() + _SLICE_S
    while True:
        here.found = None
        response = _respond(db, question, asker, here)
        if here.began is not None:
            answers.append(Answer(position=here.began))
            here.began = None
        if here.found:
            answers.append(Answer(text=budget.line(response), position=here.position))
            size += len(answers[-1].text)
        elif here.found is None:
            return [*answers, _failed(response) if "errors" in response else _nothing()], None
        if not here.more or size > _SLICE or time.monotonic() > until:
            return answers, here


def _nothing() -> Answer:
    return failed("BAD_REQUEST", "the subscription leaves out its one field")


def _respond(
    db: Connection, question: Question, asker: Asker, reader: Reader | None, mirror: Mirror | None = None
) -> dict[str, Any]:
    lost = access.refusal(db, asker.token)
    if lost is not None:
        return {"errors": [{"message": lost.message, "extensions": {"code": lost.code}}]}
    context = Context(db=db, asker=asker, clock=clock.system, mirror=mirror)
    return schema.respond(question.document, question.variables, question.operation, context, reader=reader)

"""Threads for what blocks, each with a SQLite connection of its own; nobody has all of them, and no work has for ever.

A thread cannot be ended from outside. Its statements end because the connection looks at the clock, and what Python
does between them because an exception is sent to the thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from graphsvc.api.limits import LIMITS
from graphsvc.config import Settings
from graphsvc.store import database
from graphsvc.store.database import Connection

THREADS: Final = 4
ASKER_THREADS: Final = 3  # of them that one asker may hold
GRACE_S: Final = 0.25  # for statements to end before the thread is sent an exception
STOP_S: Final = 5.0  # for the work at hand when the service ends

T = TypeVar("T")


class Busy(Exception):  # a state of the pool, not an error of anyone
    """No place is left; `limit` names which of `LIMITS` that is."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Overtime(BaseException):  # whoever catches Exception must not go on
    """Sent to a thread whose work is not done in its time."""


@dataclass(eq=False, slots=True, kw_only=True)
class _Job:
    work: Callable[[Connection], Any]
    asker: Hashable
    until: float
    future: Future[Any] = field(default_factory=Future)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    thread: int | None = None  # that does it now


class Workers:
    """Runs functions of a connection off the event loop, each within its time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._changed = threading.Condition()
        # All of these belong to whoever holds `_changed`.
        self._waiting: list[_Job] = []
        self._inside: Counter[Hashable] = Counter()
        self._running: Counter[Hashable] = Counter()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._here = threading.local()

    async def run(self, work: Callable[[Connection], T], seconds: float, asker: Hashable = None) -> T:
        """Run `work`; raise Busy when there is no place, TimeoutError when it is not done in time."""
        job = _Job(work=work, asker=asker, until=time.monotonic() + seconds)
        self._admit(job)
        overtime = asyncio.get_running_loop().call_later(seconds + GRACE_S, self._stop, job, GRACE_S)
        try:
            async with asyncio.timeout(seconds):
                value: T = await asyncio.wrap_future(job.future)
        except BaseException:
            self._withdraw(job)
            raise
        finally:
            if job.future.done():
                overtime.cancel()
        return value

    def close(self) -> None:
        """Wait for what runs; what waits is not begun."""
        with self._changed:
            self._closed = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for job in waiting:
            job.future.cancel()
        end = time.monotonic() + STOP_S
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def check(self, asker: Hashable) -> None:
        """Raise Busy when there is no place, before anything is read for one who asks."""
        with self._changed:
            if self._inside[asker] >= LIMITS["asker_waiting"].most:
                raise Busy("asker_waiting")
            if self._inside.total() >= LIMITS["waiting"].most:
                raise Busy("waiting")

    def _admit(self, job: _Job) -> None:
        with self._changed:
            self.check(job.asker)
            self._inside[job.asker] += 1
            self._waiting.append(job)
            self._changed.notify()
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if len(self._threads) < THREADS:
                thread = threading.Thread(target=self._serve, name="graphsvc-worker", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _withdraw(self, job: _Job) -> None:
        """Free the place of a job that nobody waits for; one that runs keeps it until its thread is free again."""
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
                self._leave(job)

    def _stop(self, job: _Job, pause: float) -> None:
        with self._changed:
            if job.thread is None:
                return
            _send(job.thread, Overtime)
        # SQLite swallows one that arrives while it asks whether to go on.
        asyncio.get_running_loop().call_later(pause, self._stop, job, 2 * pause)

    def _serve(self) -> None:
        try:
            while (job := self._take()) is not None:
                try:
                    value = self._do(job)
                except Overtime:
                    self._release(job)
                    self._disconnect()  # it may be in the middle of anything
                    job.future.set_exception(TimeoutError())
                except BaseException as error:  # noqa: BLE001 # it is raised where the result is awaited
                    job.future.set_exception(error)
                else:
                    job.future.set_result(value)
        finally:
            self._disconnect()

    def _do(self, job: _Job) -> object:
        try:
            with database.within(self._connection(), job.until) as db:
                return job.context.run(job.work, db)
        finally:
            self._release(job)

    def _connection(self) -> Connection:
        db: Connection | None = getattr(self._here, "db", None)
        if db is None:
            db = self._here.db = database.connect(self._settings)
        return db

    def _disconnect(self) -> None:
        db: Connection | None = self._here.__dict__.pop("db", None)
        if db is not None:
            db.close()

    def _take(self) -> _Job | None:
        """Wait for the next job: the longest waiting of those whose askers hold the fewest threads."""
        with self._changed:
            while not self._closed:
                ready = [job for job in self._waiting if self._running[job.asker] < ASKER_THREADS]
                if not ready:
                    self._changed.wait()
                    continue
                job = min(ready, key=lambda one: self._running[one.asker])
                self._waiting.remove(job)
                if job.future.set_running_or_notify_cancel():
                    self._running[job.asker] += 1
                    job.thread = threading.get_ident()
                    return job
                self._leave(job)
        return None

    def _release(self, job: _Job) -> None:
        """Take the thread from its job; from here on no exception is sent to it."""
        with self._changed:
            if job.thread is None:
                return
            _send(job.thread, None)  # first, so that one under way finds nothing half done
            job.thread = None
            self._running[job.asker] -= 1
            self._leave(job)
            self._changed.notify_all()

    def _leave(self, job: _Job) -> None:
        self._inside[job.asker] -= 1
        if not self._inside[job.asker]:
            del self._inside[job.asker], self._running[job.asker]


def _send(thread: int, error: type[BaseException] | None) -> None:
    """Send an exception to a thread, or take back one that has not arrived."""
    value = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)

"""Threads for what blocks, each with a SQLite connection of its own: some for requests, one for the index."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final, TypeVar

from graphsvc.config import Settings
from graphsvc.recall import index
from graphsvc.store import database
from graphsvc.store.database import Connection

THREADS: Final = 4
WAITING: Final = 64  # requests inside; more are turned away
POLL_S: Final = 0.5  # what others store is indexed after this time
STOP_S: Final = 5.0  # a large text may take longer; the process ends without it, and it is indexed at the next start
_SLICE_MS: Final = 500  # between two looks whether to stop
_STEPS: Final = 20_000  # virtual machine steps of SQLite between two looks at the clock

_LOG: Final = logging.getLogger("graphsvc")

T = TypeVar("T")


class Busy(Exception):  # a state of the pool, not an error of anyone
    """All places are taken."""


class Workers:
    """Runs functions of a connection off the event loop, each within its time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="graphsvc")
        self._here = threading.local()
        self._opened: list[Connection] = []
        self._places = threading.BoundedSemaphore(WAITING)

    async def run(self, work: Callable[[Connection], T], seconds: float) -> T:
        """Run `work`; raise Busy when there is no place, TimeoutError when it is not done in time.

        A thread cannot be stopped from outside, so the connection stops it: statements end when the time is over.
        """
        if not self._places.acquire(blocking=False):
            raise Busy
        job = self._pool.submit(self._work, work, time.monotonic() + seconds)
        # The place is taken until the thread is free again, not until the asker gave up.
        job.add_done_callback(lambda _: self._places.release())
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Wait for what runs and close the connections."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for db in self._opened:
            db.close()

    def _work(self, work: Callable[[Connection], T], until: float) -> T:
        db = self._connection()
        db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            return work(db)
        finally:
            db.set_progress_handler(None, 0)

    def _connection(self) -> Connection:
        db: Connection | None = getattr(self._here, "db", None)
        if db is None:
            db = self._here.db = database.connect(self._settings)
            self._opened.append(db)
        return db


class Indexer:
    """Keeps the word index at the end of the ledger, in a thread of its own: a large text takes its time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphsvc-index", daemon=True)

    def start(self) -> None:
        """Begin to index, and go on until `stop`."""
        self._thread.start()

    def wake(self) -> None:
        """Say that something was stored."""
        self._woken.set()

    def stop(self) -> None:
        """End after the text at hand."""
        self._stopped.set()
        self._woken.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        with closing(database.connect(self._settings)) as db:
            while not self._stopped.is_set():
                self._woken.clear()
                try:
                    passed = index.catch_up(db, _SLICE_MS)
                except database.Error:
                    _LOG.exception("indexing failed, and goes on in a moment")
                    passed = 0
                if not passed:
                    self._woken.wait(POLL_S)

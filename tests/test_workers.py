"""The pool of the service: nobody has all of it, and whatever is done in it has an end."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager

import pytest

from graphsvc.api.limits import LIMITS
from graphsvc.server.workers import ASKER_THREADS, THREADS, Busy, Workers
from graphsvc.store import database

MINE = LIMITS["asker_waiting"].most
ALL = LIMITS["waiting"].most


def pooled(settings, story):
    """Run a story with a pool: `story(workers)` is a coroutine."""

    async def run():
        workers = Workers(settings)
        try:
            return await story(workers)
        finally:
            await asyncio.to_thread(workers.close)

    return asyncio.run(run())


@contextmanager
def gate():
    """Yield work that waits until the block is over."""
    opened = threading.Event()
    try:
        yield lambda _: opened.wait(20)
    finally:
        opened.set()


async def settled(tasks, count):
    """Wait until that many of the tasks have ended."""
    while sum(task.done() for task in tasks) < count:
        await asyncio.sleep(0.01)


def at_once(workers, work, asker, many):
    return [asyncio.create_task(workers.run(work, 10, asker)) for _ in range(many)]


def test_one_asker_takes_a_part_of_the_places_and_leaves_a_thread(settings):
    async def story(workers):
        with gate() as blocks:
            mine = at_once(workers, blocks, "me", MINE + 5)
            await settled(mine, 5)
            refused = [task.exception() for task in mine if task.done()]
            begun = time.monotonic()
            other = await workers.run(lambda _: "answered", 10, "another")
            return refused, other, time.monotonic() - begun

    refused, other, seconds = pooled(settings, story)

    assert [error.limit for error in refused] == ["asker_waiting"] * 5
    assert other == "answered"
    assert seconds < 5, "while every other thread is held"
    assert ASKER_THREADS < THREADS


def test_all_askers_together_have_so_many_places(settings):
    async def story(workers):
        with gate() as blocks:
            tasks = [task for asker in range(ALL // MINE) for task in at_once(workers, blocks, asker, MINE)]
            await asyncio.sleep(0)
            with pytest.raises(Busy) as one_more:
                await workers.run(blocks, 10, "late")
        await asyncio.gather(*tasks)
        return one_more.value, await workers.run(lambda _: "answered", 10, "late")

    busy, after = pooled(settings, story)

    assert busy.limit == "waiting"
    assert after == "answered", "places are free again when the work is done"


def test_place_is_free_when_nobody_waits_for_it_any_more(settings):
    async def story(workers):
        with gate() as blocks:
            held = at_once(workers, blocks, "me", MINE)
            await asyncio.sleep(0.1)
            for task in held[ASKER_THREADS:]:
                task.cancel()
            await settled(held, MINE - ASKER_THREADS)
            again = at_once(workers, lambda _: "answered", "me", MINE - ASKER_THREADS)
            await asyncio.sleep(0)
            with pytest.raises(Busy):
                await asyncio.wait_for(workers.run(blocks, 10, "me"), 5)
        return await asyncio.gather(*again)

    assert pooled(settings, story) == ["answered"] * (MINE - ASKER_THREADS)


def test_who_holds_the_fewest_threads_is_next(settings):
    begun = []

    async def story(workers):
        with gate() as rest:
            with gate() as first:
                held = at_once(workers, first, "me", 1) + at_once(workers, rest, "me", ASKER_THREADS - 1)
                held += at_once(workers, rest, "another", 1)
                await asyncio.sleep(0.2)
                mine = at_once(workers, lambda _: begun.append("me"), "me", 3)
                late = at_once(workers, lambda _: begun.append("late"), "late", 1)
                await asyncio.sleep(0.2)
            await asyncio.gather(*mine, *late)  # by the one thread that is free
        await asyncio.gather(*held)

    pooled(settings, story)

    assert begun == ["late", "me", "me", "me"]


def spin(_):
    """Work that never asks the store anything."""
    while True:
        sum(range(1_000))


def stubborn(db):
    """Work that goes on whatever its statements say."""
    while True:
        try:
            db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n")
        except database.Error:
            continue


def writing(db):
    with database.transaction(db):
        spin(db)


# The exception may hit a callback of the garbage collector that a test tool has; it is sent again then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", [spin, stubborn, writing])
def test_work_of_python_ends_with_its_time_too(settings, work):
    async def story(workers):
        begun = time.monotonic()
        ran = [workers.run(work, 0.3, asker) for asker in range(THREADS)]
        late = await asyncio.gather(*ran, return_exceptions=True)
        answered = time.monotonic() - begun
        after = [workers.run(lambda db: db.execute("SELECT 1").fetchone()[0], 10, asker) for asker in range(THREADS)]
        values = await asyncio.gather(*after)
        with_lock = await workers.run(lambda db: db.execute("BEGIN IMMEDIATE").execute("ROLLBACK"), 10)
        return late, answered, values, with_lock, time.monotonic() - begun

    late, answered, values, _, seconds = pooled(settings, story)

    assert {type(error) for error in late} <= {TimeoutError, database.BusyError}
    assert answered < 5
    assert values == [1] * THREADS
    assert seconds < 10


def test_waiting_for_the_write_lock_ends_with_the_time(settings, db):
    def write(db):
        with database.transaction(db):
            raise AssertionError("the lock is held by another")

    async def story(workers):
        begun = time.monotonic()
        [error] = await asyncio.gather(workers.run(write, 2), return_exceptions=True)
        return error, time.monotonic() - begun

    with database.transaction(db):
        error, seconds = pooled(settings, story)

    assert isinstance(error, database.BusyError)
    assert seconds < 5


def test_error_of_the_work_is_the_askers(settings):
    def fail(_):
        raise KeyError("mine")

    async def story(workers):
        with pytest.raises(KeyError, match="mine"):
            await workers.run(fail, 10)
        return await workers.run(lambda _: "answered", 10)

    assert pooled(settings, story) == "answered"


def test_what_waits_at_the_end_is_not_begun(settings):
    begun = []

    async def story(workers):
        with gate() as blocks:
            held = at_once(workers, blocks, "me", ASKER_THREADS)
            waiting = at_once(workers, begun.append, "me", 2)
            await asyncio.sleep(0.1)
            closing = asyncio.create_task(asyncio.to_thread(workers.close))
            await settled(waiting, 2)
        await closing
        return await asyncio.gather(*held, *waiting, return_exceptions=True)

    ended = pooled(settings, story)

    assert begun == []
    assert [type(one) for one in ended[-2:]] == [asyncio.CancelledError] * 2

"""Replay the ledger: into the projections, or beside them to prove that they are what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphsvc.config import Settings
from graphsvc.memory.apply import apply
from graphsvc.store import database, events, rows, words
from graphsvc.store.database import Connection
from graphsvc.store.view import View

Progress = Callable[[int, int], None]  # position reached, newest position


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what the ledger gives."""

    table: str
    id: str
    problem: str


def rebuild(db: Connection, progress: Progress) -> int:
    """Drop every projection and apply the whole ledger, in one transaction; return how many events it holds."""
    with database.transaction(db):
        rows.recreate(db)
        done = _replay(db, progress)
        words.reset(db)
    return done


def check(settings: Settings, progress: Progress) -> list[Difference]:
    """Apply the ledger into a scratch file and list the rows of the store that differ from it."""
    with rows.scratch(settings.database) as db:
        _replay(db, progress)
        return [
            Difference(table, number, problem)
            for room, tables in ((rows, rows.tables()), (words, words.TABLES))
            for table in tables
            for number, problem in room.differences(db, table)
        ]


def _replay(db: Connection, progress: Progress) -> int:
    view, newest, done = View(db), events.position(db), 0
    for event in events.after(db, 0):
        for row in apply(event, view):
            rows.put(db, row)
        done += 1
        if done % 500 == 0:
            progress(event.id, newest)
    progress(newest, newest)
    return done

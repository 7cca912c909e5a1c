"""Replay the ledger: into the projections, or beside them to prove that they are what it gives.

A store whose tables were written by other rules is replayed when it is opened: a better rule needs no migration.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from graphsvc.config import Settings
from graphsvc.memory.apply import VERSION, apply
from graphsvc.memory.erase.clean import clean
from graphsvc.store import database, events, rows
from graphsvc.store.database import Connection
from graphsvc.store.erase import traces
from graphsvc.store.index import words
from graphsvc.store.view import View

_PATIENCE_S: Final = 0.5  # of whoever opens the store, for what was forgotten to leave the files
Progress = Callable[[int, int], None]  # position reached, newest position


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what the ledger gives."""

    table: str
    id: str
    problem: str


def connect(settings: Settings, progress: Progress | None = None) -> Connection:
    """Open the store of this home as these rules know it; raise StoreError when it cannot be used."""
    with ExitStack() as stack:
        db = stack.enter_context(closing(database.connect(settings)))
        if rows.version(db) != VERSION:
            with database.transaction(db):
                # Another process may have been first.
                if rows.version(db) != VERSION:
                    rebuild(db, progress or _silent)
        if traces.remains(db):
            clean(db, patience_s=_PATIENCE_S)
        stack.pop_all()  # the connection is the caller's
    return db


def rebuild(db: Connection, progress: Progress) -> int:
    """Drop every projection and apply the whole ledger, in one transaction; return how many events it holds."""
    with database.transaction(db):
        rows.recreate(db)
        done = _replay(db, progress)
        words.reset(db)
        rows.stamp(db, VERSION)
    return done


def check(settings: Settings, progress: Progress, index: tuple[words.Analyse, str] | None = None) -> list[Difference]:
    """Apply the ledger into a scratch file and list the rows of the store that differ from it.

    With `index`, the analyser and its version, the words that the index holds are compared as well as its ids.
    """
    with rows.scratch(settings.database) as db:
        _replay(db, progress)
        found = [(table, rows.differences(db, table)) for table in rows.tables()]
        found += [(table, words.differences(db, table)) for table in words.TABLES]
        if index is not None:
            found += [(table, words.contents(db, table, *index)) for table in words.TABLES]
        return [Difference(table, number, problem) for table, wrong in found for number, problem in wrong]


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


def _silent(position: int, newest: int) -> None:
    del position, newest

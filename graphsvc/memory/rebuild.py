"""Replay the ledger: into the projections, or beside them to prove that they are what it gives."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphsvc.config import Settings
from graphsvc.memory.apply import apply
from graphsvc.store import database, events, rows, words
from graphsvc.store.database import Connection
from graphsvc.store.view import View

Progress = Callable[[int, int], None]  # (events done, events in all)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what the ledger gives."""

    table: str
    id: str
    problem: str


def rebuild(db: Connection, progress: Progress) -> int:
    """Drop every projection and apply the ledger from the first event, in one transaction; return the events applied."""
    with database.transaction(db):
        rows.recreate(db)
        done = _replay(db, progress)
        words.reset(db)
    return done


def check(settings: Settings, progress: Progress) -> list[Difference]:
    """Apply the ledger into a scratch file and list the rows of the store that differ from it.

    The scratch file has the projections only: `events` resolves to the attached store, which is opened read-only.
    """
    with tempfile.TemporaryDirectory(prefix="graphsvc-check-") as folder:
        db = sqlite3.connect(Path(folder) / "replay.db", isolation_level=None, uri=True)
        try:
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("ATTACH ? AS store", (f"file:{settings.database}?mode=ro",))
            db.execute("BEGIN")  # one state of the store for the replay and the comparison
            database.run_script(db, database.projection_ddl())
            _replay(db, progress)
            found = [
                Difference(table, number, problem)
                for table in rows.tables()
                for number, problem in _differences(db, table)
            ]
            db.execute("ROLLBACK")
        finally:
            db.close()
    return found


def _replay(db: Connection, progress: Progress) -> int:
    view, total, done = View(db), events.position(db), 0
    for event in events.after(db, 0):
        for row in apply(event, view):
            rows.put(db, row)
        done += 1
        if done % 500 == 0:
            progress(event.id, total)
    progress(total, total)
    return done


def _differences(db: Connection, table: str) -> list[tuple[str, str]]:
    try:
        return rows.differences(db, table, "store")
    except sqlite3.OperationalError as error:
        return [("*", f"cannot be read: {error}")]

"""SQLite: which files were imported, and what could not be read of them. Operational, not rebuilt from the ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass

from graphsvc.store.database import Connection, transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A file as it was when it was imported. `gaps` are (line, reason)."""

    size: int
    mtime_ns: int
    format: str
    records: int
    events: int
    sessions: tuple[str, ...] = ()
    gaps: tuple[tuple[int, str], ...] = ()


def known(db: Connection, path: str) -> Done | None:
    """Return what is known of a file, None for a new one."""
    row = db.execute("SELECT * FROM imports WHERE path = ?", (path,)).fetchone()
    if row is None:
        return None
    gaps = db.execute("SELECT line, reason FROM gaps WHERE path = ? ORDER BY line", (path,))
    return Done(
        size=row["size"],
        mtime_ns=row["mtime_ns"],
        format=row["format"],
        records=row["records"],
        events=row["events"],
        sessions=tuple(json.loads(row["sessions"])),
        gaps=tuple((gap["line"], gap["reason"]) for gap in gaps),
    )


def record(db: Connection, path: str, done: Done, at: str) -> None:
    """Remember a file as imported, in place of what was known of it."""
    with transaction(db):
        db.execute(
            "INSERT INTO imports (path, size, mtime_ns, format, records, events, sessions, imported_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET size = excluded.size,"
            " mtime_ns = excluded.mtime_ns, format = excluded.format, records = excluded.records,"
            " events = excluded.events, sessions = excluded.sessions, imported_at = excluded.imported_at",
            (
                path,
                done.size,
                done.mtime_ns,
                done.format,
                done.records,
                done.events,
                json.dumps(done.sessions),
                at,
            ),
        )
        db.execute("DELETE FROM gaps WHERE path = ?", (path,))
        db.executemany(
            "INSERT INTO gaps (path, line, reason) VALUES (?, ?, ?)",
            [(path, line, reason) for line, reason in done.gaps],
        )

"""SQLite: which files were imported, what could not be read of them, and when nothing was to be recorded.

Operational, not rebuilt from the ledger.
"""

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
    forgotten: int = 0  # events that were forgotten, and stayed out
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
        forgotten=row["forgotten"],
        sessions=tuple(json.loads(row["sessions"])),
        gaps=tuple((gap["line"], gap["reason"]) for gap in gaps),
    )


def record(db: Connection, path: str, done: Done, at: str) -> None:
    """Remember a file as imported, in place of what was known of it."""
    with transaction(db):
        db.execute(
            "INSERT INTO imports (path, size, mtime_ns, format, records, events, forgotten, sessions, imported_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET size = excluded.size,"
            " mtime_ns = excluded.mtime_ns, format = excluded.format, records = excluded.records,"
            " events = excluded.events, forgotten = excluded.forgotten, sessions = excluded.sessions,"
            " imported_at = excluded.imported_at",
            (
                path,
                done.size,
                done.mtime_ns,
                done.format,
                done.records,
                done.events,
                done.forgotten,
                json.dumps(done.sessions),
                at,
            ),
        )
        db.execute("DELETE FROM gaps WHERE path = ?", (path,))
        db.executemany(
            "INSERT INTO gaps (path, line, reason) VALUES (?, ?, ?)",
            [(path, line, reason) for line, reason in done.gaps],
        )


def unread(db: Connection) -> dict[str, int]:
    """Return the files with lines that could not be read, and how many, most first."""
    rows = db.execute("SELECT path, COUNT(*) AS count FROM gaps GROUP BY path ORDER BY count DESC, path")
    return {row["path"]: row["count"] for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A time in which nothing of a project is recorded. `project` is its key, None for all; `until` None: it lasts."""

    project: str | None
    since: str
    until: str | None = None


def pause(db: Connection, project: str | None, at: str) -> Pause:
    """Begin a pause of a project, or of all; return the one that lasts already if there is one."""
    with transaction(db):
        db.execute(
            "INSERT INTO pauses (project, since) SELECT ?, ?"
            " WHERE NOT EXISTS (SELECT 1 FROM pauses WHERE project IS ? AND until IS NULL)",
            (project, at, project),
        )
        row = db.execute(
            "SELECT project, since, until FROM pauses WHERE project IS ? AND until IS NULL", (project,)
        ).fetchone()
    return Pause(**dict(row))


def resume(db: Connection, project: str | None, at: str) -> list[Pause]:
    """End the pause of a project, or every pause there is; return what ended."""
    rows = db.execute(
        "UPDATE pauses SET until = MAX(?, since) WHERE until IS NULL AND (? IS NULL OR project = ?)"
        " RETURNING project, since, until",
        (at, project, project),
    ).fetchall()
    return [Pause(**dict(row)) for row in rows]


def pauses(db: Connection) -> list[Pause]:
    """List the pauses that last, oldest first."""
    rows = db.execute("SELECT project, since, until FROM pauses WHERE until IS NULL ORDER BY since, id")
    return [Pause(**dict(row)) for row in rows]


def paused(db: Connection, project: str, moment: str) -> Pause | None:
    """Return a pause of the project that holds the moment; the one that lasts before others."""
    row = db.execute(
        "SELECT project, since, until FROM pauses WHERE (project = ? OR project IS NULL) AND since <= ?"
        " AND (until IS NULL OR until > ?) ORDER BY until IS NOT NULL, since LIMIT 1",
        (project, moment, moment),
    ).fetchone()
    return Pause(**dict(row)) if row else None

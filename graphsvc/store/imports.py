"""SQLite: which files were imported, what could not be read of them, when nothing was to be recorded, what is set.

Operational, not rebuilt from the ledger.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

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
    """A time in which nothing of a project is recorded. `project` is its key, None for all; `until` None: it lasts.

    `folder`: the one whose file says so, of what is said below; None when the owner paused.
    """

    project: str | None
    since: str
    until: str | None = None
    folder: str | None = None


_PAUSE: Final = "project, since, until, folder"


def pause(db: Connection, project: str | None, at: str, folder: str | None = None) -> Pause:
    """Begin a pause of a project, or of all; return the one that lasts already if there is one."""
    with transaction(db):
        db.execute(
            "INSERT INTO pauses (project, since, folder) SELECT ?, ?, ?"
            " WHERE NOT EXISTS (SELECT 1 FROM pauses WHERE project IS ? AND folder IS ? AND until IS NULL)",
            (project, at, folder, project, folder),
        )
        row = db.execute(
            f"SELECT {_PAUSE} FROM pauses WHERE project IS ? AND folder IS ? AND until IS NULL", (project, folder)
        ).fetchone()
    return Pause(**dict(row))


def resume(db: Connection, project: str | None, at: str, folder: str | None = None) -> list[Pause]:
    """End the owner's pause of a project, or all that the owner began, or the one of a folder; return what ended."""
    rows = db.execute(
        "UPDATE pauses SET until = MAX(?, since) WHERE until IS NULL AND folder IS ? AND (? IS NULL OR project = ?)"
        f" RETURNING {_PAUSE}",
        (at, folder, project, project),
    ).fetchall()
    return [Pause(**dict(row)) for row in rows]


def pauses(db: Connection) -> list[Pause]:
    """List the pauses that last, oldest first."""
    rows = db.execute(f"SELECT {_PAUSE} FROM pauses WHERE until IS NULL ORDER BY since, id")
    return [Pause(**dict(row)) for row in rows]


def paused(db: Connection, project: str, moment: str, cwd: str | None = None) -> Pause | None:
    """Return a pause that holds the moment in a folder of the project; the one that lasts before others."""
    row = db.execute(
        f"SELECT {_PAUSE} FROM pauses WHERE (project = ? OR project IS NULL) AND since <= ?"
        " AND (until IS NULL OR until > ?) AND (folder IS NULL OR folder = project OR folder = ?"
        " OR substr(?, 1, length(folder) + 1) = folder || '/') ORDER BY until IS NOT NULL, since LIMIT 1",
        (project, moment, moment, cwd, cwd),
    ).fetchone()
    return Pause(**dict(row)) if row else None


def set_(db: Connection, project: str | None, name: str, value: str) -> None:
    """Set what the owner wants of a project, or of all."""
    with transaction(db):
        unset(db, project, name)
        db.execute("INSERT INTO settings (project, name, value) VALUES (?, ?, ?)", (project, name, value))


def unset(db: Connection, project: str | None, name: str) -> bool:
    """Take back what was set; say whether anything was."""
    done = db.execute("DELETE FROM settings WHERE project IS ? AND name = ?", (project, name))
    return done.rowcount > 0


def owners(db: Connection, project: str) -> dict[str, tuple[str, str]]:
    """Return the owner's settings that hold for a project by their names, each with who says so."""
    rows = db.execute(
        "SELECT name, value, project FROM settings WHERE project IS NULL OR project = ? ORDER BY project IS NOT NULL",
        (project,),
    )
    return {
        row["name"]: (row["value"], "the owner" if row["project"] is not None else "the owner, for all projects")
        for row in rows
    }

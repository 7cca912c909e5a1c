"""What is kept of what was forgotten: salted digests of the names it went by, and which files are to be cleaned."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from graphsvc.store.database import BUSY_MS, BusyError, Connection, transaction

FILE, LOG, COPIES, GRAPH = "file", "log", "copies", "graph"
ASKED: Final = "asked"  # the graph, which the process that keeps it was asked to make anew
ALL: Final = (FILE, LOG, COPIES, GRAPH)  # in the order in which they are cleaned
_ISOLATED: Final = "isolated"
_SALT: Final = 32  # bytes


def begin(db: Connection) -> None:
    """Note that something leaves the store, so that nothing given to it is given again and its bytes are cleaned."""
    with transaction(db):
        db.execute(
            "INSERT INTO forgetting VALUES (1, ?, 0, 0, '[]') ON CONFLICT (id) DO NOTHING",
            (secrets.token_bytes(_SALT),),
        )
        db.execute(
            "UPDATE forgetting SET remains = ?, project = MAX(project, (SELECT COALESCE(MAX(id), 0) FROM projects)),"
            " session = MAX(session, (SELECT COALESCE(MAX(id), 0) FROM sessions))",
            (json.dumps(ALL),),
        )


def remember(db: Connection, names: Iterable[tuple[str, str, str]]) -> None:
    """Remember events as forgotten, each by (key of its project, host's id of its session, origin)."""
    salt = _salt(db)
    if salt is not None:
        digests = ((digest,) for name in names for digest in _digests(salt, *name))
        db.executemany("INSERT INTO forgotten VALUES (?) ON CONFLICT DO NOTHING", digests)


def kept(db: Connection) -> bool:
    """Say whether anything was ever forgotten here."""
    return _salt(db) is not None


def forgotten(db: Connection, project: str, session: str, origin: str) -> bool:
    """Say whether an event was forgotten: by its origin in the project, or in the session wherever that is filed."""
    salt = _salt(db)
    if salt is None:
        return False
    row = db.execute(
        "SELECT 1 FROM forgotten WHERE digest IN (?, ?)", _digests(salt, project, session, origin)
    ).fetchone()
    return row is not None


def take_back(db: Connection, project: str, session: str, origin: str) -> None:
    """Remember an event as forgotten no longer."""
    salt = _salt(db)
    if salt is not None:
        db.execute("DELETE FROM forgotten WHERE digest IN (?, ?)", _digests(salt, project, session, origin))


def remember_isolated(db: Connection, session: str) -> None:
    """Remember that a session was isolated when it was forgotten."""
    salt = _salt(db)
    if salt is not None:
        db.execute("INSERT INTO forgotten VALUES (?) ON CONFLICT DO NOTHING", (_digest(salt, _ISOLATED, session),))


def was_isolated(db: Connection, session: str) -> bool:
    """Say whether a session of this id was isolated when it was forgotten."""
    salt = _salt(db)
    if salt is None:
        return False
    found = db.execute("SELECT 1 FROM forgotten WHERE digest = ?", (_digest(salt, _ISOLATED, session),)).fetchone()
    return found is not None


def remains(db: Connection) -> tuple[str, ...]:
    """Return which of ALL are to be cleaned still; ASKED may stand in the place of the graph."""
    row = db.execute("SELECT remains FROM forgetting").fetchone()
    return tuple(json.loads(row["remains"])) if row else ()


def cleaned(db: Connection, step: str, then: str | None = None) -> None:
    """Note that a step is done, and which one comes in its place."""
    with transaction(db):
        left = [one for one in (*remains(db), then) if one not in {step, None}]
        db.execute("UPDATE forgetting SET remains = ?", (json.dumps(left),))


def forget_files(db: Connection, sessions: Iterable[str]) -> None:
    """Forget which files the sessions were imported from, and what could not be read of those."""
    listed = json.dumps(list(sessions))
    about = (
        "SELECT i.path FROM imports i WHERE EXISTS (SELECT 1 FROM json_each(i.sessions) s"
        " WHERE s.value IN (SELECT value FROM json_each(?)))"
    )
    db.execute(f"DELETE FROM gaps WHERE path IN ({about})", (listed,))
    db.execute(f"DELETE FROM imports WHERE path IN ({about})", (listed,))


def file_texts(db: Connection) -> list[tuple[str, str]]:
    """Return for each imported file its path, and with it all that is kept of it."""
    rows = db.execute(
        "SELECT i.path, i.path || char(10) || i.sessions || char(10) || COALESCE("
        "(SELECT group_concat(g.reason, char(10)) FROM gaps g WHERE g.path = i.path), '') AS text FROM imports i"
    )
    return [(row["path"], row["text"]) for row in rows]


def forget_paths(db: Connection, paths: Iterable[str]) -> None:
    """Forget that files were imported; they are read again when they are imported next."""
    listed = json.dumps(list(paths))
    for table in ("gaps", "imports"):
        db.execute(f"DELETE FROM {table} WHERE path IN (SELECT value FROM json_each(?))", (listed,))


def write_anew(db: Connection) -> None:
    """Write the database file anew, so that no page of it holds what is gone; raise BusyError or another Error."""
    try:
        db.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise BusyError("another graphsvc is writing") from error
        raise


def empty_log(db: Connection, seconds: float) -> bool:
    """Bring the log into the file and empty it; False when others still read what was before, after so many seconds."""
    end = time.monotonic() + seconds
    db.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
    try:
        while True:
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")


def path_of(db: Connection) -> Path:
    """Return the file that a connection has open."""
    return Path(db.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()["file"])


def remove_copies(path: Path) -> None:
    """Remove the copies that migrations left beside the file: they hold what was stored then."""
    for one in path.parent.glob(f"{path.name}.schema-*"):
        one.unlink(missing_ok=True)


def _salt(db: Connection) -> bytes | None:
    row = db.execute("SELECT salt FROM forgetting").fetchone()
    return row["salt"] if row else None


def _digests(salt: bytes, project: str, session: str, origin: str) -> tuple[bytes, bytes]:
    return _digest(salt, "project", project, origin), _digest(salt, "session", session, origin)


def _digest(salt: bytes, *names: str) -> bytes:
    text = json.dumps(names).encode()
    return hashlib.blake2b(text, key=salt, digest_size=16).digest()

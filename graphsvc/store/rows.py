"""The projections: writing what `memory.apply` computed, dropping it, and comparing it with what a replay gives."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Final

from graphsvc.model import (
    Asset,
    Covered,
    Edge,
    Hidden,
    Membership,
    Mention,
    Published,
    Record,
    Row,
    Session,
    State,
    ToolCall,
    Version,
)
from graphsvc.store.database import Connection, projection_ddl, run_script

# Row type → its table and primary key.
TABLES: Final[dict[type, tuple[str, tuple[str, ...]]]] = {
    Session: ("session_state", ("session",)),
    Membership: ("membership", ("session", "event")),
    Hidden: ("hidden", ("event",)),
    ToolCall: ("tool_calls", ("session", "tool_use_id")),
    Record: ("records", ("id",)),
    State: ("record_states", ("record", "event")),
    Asset: ("knowledge_assets", ("id",)),
    Version: ("asset_versions", ("event",)),
    Mention: ("mentions", ("project", "path", "src_type", "src", "rule")),
    Edge: ("lineage_edges", ("src_type", "src", "type", "dst_type", "dst")),
}
# Tables that no row is put into: these are filled by triggers, the last one by what is delivered.
_OTHER: Final = {
    "past_edges": (*TABLES[Edge][1], "begin_event"),
    "edge_events": ("event",),
    "thread_meta": ("session", "key"),
}


def _upsert(kind: type) -> str:
    table, key = TABLES[kind]
    names = [item.name for item in fields(kind)]
    rest = [name for name in names if name not in key]
    update = ", ".join(f"{name} = excluded.{name}" for name in rest)
    action = f"DO UPDATE SET {update}" if rest else "DO NOTHING"
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) ON CONFLICT ({', '.join(key)}) {action}"


_UPSERTS: Final = {kind: _upsert(kind) for kind in TABLES}


def put(db: Connection, row: Row) -> None:
    """Write one row, replacing the one with its key."""
    if isinstance(row, Published):
        db.execute("DELETE FROM hidden WHERE event = ?", (row.event,))
        return
    if isinstance(row, Covered):
        db.execute(
            "UPDATE asset_versions SET ref = ?, ref_event = ? WHERE event = ?", (row.ref, row.ref_event, row.event)
        )
        return
    db.execute(_UPSERTS[type(row)], [_value(item.name, getattr(row, item.name)) for item in fields(row)])


def every(db: Connection, kind: type[Row]) -> Iterator[sqlite3.Row]:
    """Read the whole table of one type of rows."""
    return iter(db.execute(f"SELECT * FROM {TABLES[kind][0]}"))


def version(db: Connection) -> str | None:
    """Return the version of the rules that wrote the projections; None when nothing says so."""
    row = db.execute("SELECT version FROM read_models WHERE name = 'projections'").fetchone()
    return row["version"] if row else None


def stamp(db: Connection, version: str) -> None:
    """Say which rules wrote the projections."""
    db.execute(
        "INSERT INTO read_models (name, position, version) VALUES ('projections', 0, ?)"
        " ON CONFLICT (name) DO UPDATE SET version = excluded.version",
        (version,),
    )


def recreate(db: Connection) -> None:
    """Drop every projection, whatever state it is in, and create it empty."""
    found = db.execute(
        "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'table') ORDER BY type DESC"
    ).fetchall()
    ours = {*tables(), *_views()}
    for kind, name in found:
        if name in ours:
            db.execute(f"DROP {kind} {name}")
    run_script(db, projection_ddl())


@contextmanager
def scratch(store: Path) -> Iterator[Connection]:
    """Open empty projections beside a store, on one state of it.

    The scratch database has the projections only: `events` and the other names of the ledger resolve to the attached
    store. It has no name, so that nothing of it stays on the disk, however this process ends.
    """
    with closing(sqlite3.connect("", isolation_level=None, uri=True, factory=Connection)) as db:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("ATTACH ? AS store", (f"{store.absolute().as_uri()}?mode=ro",))
        db.execute("BEGIN")
        run_script(db, projection_ddl())
        yield db
        db.rollback()


def differences(db: Connection, table: str) -> list[tuple[str, str]]:
    """Compare a projection of the attached store with the same table of the scratch file.

    Return (id, problem) pairs; the id is the row's primary key.
    """
    try:
        return _differences(db, table)
    except sqlite3.OperationalError as error:
        return [("*", f"cannot be read: {error}")]


def _differences(db: Connection, table: str) -> list[tuple[str, str]]:
    key = ", ".join({**dict(TABLES.values()), **_OTHER}[table])
    wrong: dict[str, str] = {}
    for here, there, problem in (("main", "store", "not in the ledger"), ("store", "main", "missing")):
        query = f"SELECT {key} FROM (SELECT * FROM {there}.{table} EXCEPT SELECT * FROM {here}.{table})"
        for row in db.execute(query):
            name = "/".join(str(part) for part in row)
            wrong[name] = "not what the ledger gives" if name in wrong else problem
    return sorted(wrong.items())


def tables() -> list[str]:
    """List the projection tables."""
    return [*(name for name, _ in TABLES.values()), *_OTHER]


def _views() -> list[str]:
    return ["goals", "decisions", "feedback", "pending_candidates", "todos"]


def _value(name: str, value: object) -> object:
    if isinstance(value, tuple):
        return json.dumps(value)
    if name == "content" and isinstance(value, str):
        return zlib.compress(value.encode("utf-8", "surrogatepass"))
    return value

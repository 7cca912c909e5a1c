"""The one place where events leave the ledger, or are written again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from graphsvc.model import EventKind
from graphsvc.store import database, events
from graphsvc.store.database import Connection
from graphsvc.store.events import ROW, ROW_FROM, EventRow, read


@contextmanager
def unlocked(db: Connection) -> Iterator[None]:
    """Let the block of the open transaction change the ledger; after it the ledger is append-only as the schema says.

    Whoever is killed meanwhile leaves the transaction open, so the triggers are never seen missing.
    """
    if not db.in_transaction:
        raise RuntimeError("the ledger is changed in a transaction only")
    db.execute("PRAGMA secure_delete = ON")  # pages that become free are overwritten
    made = database.ledger_triggers()
    for name in made:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
    yield
    for statement in made.values():
        db.execute(statement)


def blank(db: Connection, numbers: Collection[int], title: str) -> None:
    """Put blanks in the place of events of a copy of a ledger; its tables are to be rebuilt then.

    A blank has the position, session, time and origin of the event and no content. A switch of isolation stays one, and
    what publishes goes on publishing. A session of which something is isolated is called `title` wherever it was named:
    a host may have made its name from that.
    """
    listed = (json.dumps(list(numbers)),)
    with database.transaction(db), unlocked(db):
        db.execute(
            "UPDATE events SET actor = NULL,"
            " kind = CASE WHEN kind IN ('isolation', 'publish') THEN kind ELSE 'raw' END,"
            " body = CASE kind WHEN 'isolation' THEN body ELSE x'' END,"
            " meta = CASE kind WHEN 'isolation' THEN json_object('action', json_extract(meta, '$.action'))"
            " WHEN 'publish' THEN json_object('of', json_extract(meta, '$.of')) ELSE '{}' END"
            " WHERE id IN (SELECT value FROM json_each(?)) AND NOT (kind = 'publish' AND meta IS NULL)",
            listed,
        )
        db.execute(
            "DELETE FROM bodies WHERE event IN (SELECT value FROM json_each(?))"
            " AND EXISTS (SELECT 1 FROM events e WHERE e.id = bodies.event AND e.meta IS NOT NULL)",
            listed,
        )
        titled = db.execute(
            "SELECT e.id FROM events e LEFT JOIN bodies b ON b.event = e.id WHERE e.kind <> 'asset' AND e.session IN"
            " (SELECT o.session FROM json_each(?) n JOIN events o ON o.id = n.value)"
            " AND json_extract(COALESCE(e.meta, inflated(b.meta)), '$.title') IS NOT NULL",
            listed,
        ).fetchall()
        for row in titled:
            event = events.get(db, row["id"])
            if event is not None:
                events.rewrite(db, event.id, event.body, {**event.meta, "title": title})


def heads(db: Connection, numbers: Collection[int]) -> dict[int, EventRow]:
    """Read events without their texts, whoever may see them."""
    rows = db.execute(
        f"SELECT {ROW} FROM {ROW_FROM} WHERE e.id IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),)
    )
    return {row["id"]: read(row) for row in rows}


def remove(db: Connection, numbers: Collection[int]) -> None:
    """Remove events with their bodies."""
    listed = (json.dumps(list(numbers)),)
    db.execute("DELETE FROM bodies WHERE event IN (SELECT value FROM json_each(?))", listed)
    db.execute("DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))", listed)


def remove_empty(db: Connection, sessions: Collection[int], projects: Collection[int]) -> None:
    """Remove those of the sessions and projects that no event belongs to any more."""
    db.execute(
        "DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.session = sessions.id)",
        (json.dumps(list(sessions)),),
    )
    db.execute(
        "DELETE FROM projects WHERE id IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.project = projects.id)"
        " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.project = projects.id)",
        (json.dumps(list(projects)),),
    )


def names(db: Connection, table: str, column: str) -> dict[int, str]:
    """Return the names in one of the ledger's columns that hold names, by number; empty ones are left out."""
    rows = db.execute(f"SELECT id, {column} AS name FROM {table} WHERE {column} IS NOT NULL")
    return {row["id"]: row["name"] for row in rows}


def rename(db: Connection, table: str, column: str, number: int, name: str) -> None:
    """Write such a name again."""
    db.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (name, number))


def numbers(
    db: Connection,
    *,
    session: int | None = None,
    project: int | None = None,
    since: str | None = None,
    until: str | None = None,
    without: Collection[EventKind] = (),
) -> list[int]:
    """List the events of a session, of a project, between two times (both included), without some kinds."""
    conditions, values = ["1"], list[object]()
    for condition, value in (
        ("session = ?", session),
        ("project = ?", project),
        ("at >= ?", since),
        ("at <= ?", until),
        ("kind NOT IN (SELECT value FROM json_each(?))", json.dumps(sorted(without)) if without else None),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    rows = db.execute(f"SELECT id FROM events WHERE {' AND '.join(conditions)} ORDER BY id", values)
    return [row["id"] for row in rows]


def answers(db: Connection, calls: Collection[int]) -> list[int]:
    """List the results of tool calls, as their ids tell."""
    rows = db.execute(
        "SELECT result FROM tool_calls WHERE event IN (SELECT value FROM json_each(?)) AND result IS NOT NULL",
        (json.dumps(list(calls)),),
    )
    return [row["result"] for row in rows]


def unnamed(db: Connection, calls: Collection[int]) -> list[int]:
    """Return those of the tool calls that have no id."""
    rows = db.execute(
        "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM tool_calls t WHERE t.event = value)",
        (json.dumps(list(calls)),),
    )
    return [row["value"] for row in rows]


def next_of_tools(db: Connection, call: int) -> int | None:
    """Return the result right behind a call, when that is what its session and actor did next with tools."""
    row = db.execute(
        "SELECT e.id, e.kind FROM events e JOIN events c ON c.id = ? WHERE e.session = c.session AND e.seq > c.seq"
        " AND e.kind IN ('tool_call', 'tool_result') AND e.actor IS c.actor ORDER BY e.seq LIMIT 1",
        (call,),
    ).fetchone()
    return row["id"] if row and row["kind"] == EventKind.TOOL_RESULT else None


def holders(db: Connection, numbers: Collection[int]) -> list[int]:
    """List the sessions that hold copies of events."""
    rows = db.execute(
        "SELECT DISTINCT session FROM membership WHERE event IN (SELECT value FROM json_each(?)) ORDER BY session",
        (json.dumps(list(numbers)),),
    )
    return [row["session"] for row in rows]


def copies(db: Connection, session: int) -> list[int]:
    """List the events of other sessions that a session holds copies of."""
    rows = db.execute("SELECT event FROM membership WHERE session = ? ORDER BY event", (session,))
    return [row["event"] for row in rows]


def of_asset(db: Connection, asset: int) -> list[int]:
    """List the events that an asset's versions came of, and the calls that read it."""
    rows = db.execute(
        "SELECT event FROM asset_versions WHERE asset = ? UNION SELECT call FROM asset_versions WHERE asset = ?"
        " UNION SELECT result FROM asset_versions WHERE asset = ? UNION SELECT m.src FROM mentions m"
        " JOIN knowledge_assets a ON a.project = m.project AND a.path = m.path"
        " WHERE a.id = ? AND m.src_type = 'event'",
        [asset] * 4,
    )
    return sorted(row[0] for row in rows if row[0] is not None)


def asset_of(db: Connection, event: int) -> int | None:
    """Return the asset that an event wrote a version of."""
    row = db.execute("SELECT asset FROM asset_versions WHERE event = ?", (event,)).fetchone()
    return row["asset"] if row else None

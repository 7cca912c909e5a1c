"""Goals, decisions, feedback, candidates and todos as a viewer may see them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from graphsvc.model import NodeType, Record
from graphsvc.store.database import Connection
from graphsvc.store.view import record
from graphsvc.store.visibility import Viewer, clause, stands


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A record that has another status than before; `before` is None for a new one."""

    record: Record
    before: str | None
    after: str


def get(db: Connection, number: int) -> Record | None:
    """Return a record by its number, whoever may see it."""
    row = db.execute("SELECT * FROM records WHERE id = ?", (number,)).fetchone()
    return record(row) if row else None


def many(db: Connection, viewer: Viewer, numbers: Iterable[int]) -> list[Record]:
    """Return those of the records that the viewer may see."""
    condition, values = clause(viewer, "r.id")
    rows = db.execute(
        f"SELECT r.* FROM records r WHERE r.id IN (SELECT value FROM json_each(?)) AND {condition} ORDER BY r.id",
        [json.dumps(list(numbers)), *values],
    )
    return [record(row) for row in rows]


def superseded_by(db: Connection, viewer: Viewer, numbers: Iterable[int]) -> list[Record]:
    """List the visible decisions that these ones replaced."""
    condition, values = clause(viewer, "r.id")
    rows = db.execute(
        "SELECT r.* FROM records r WHERE r.superseded_by IN (SELECT value FROM json_each(?))"
        f" AND {condition} ORDER BY r.id",
        [json.dumps(list(numbers)), *values],
    )
    return [record(row) for row in rows]


def moved(db: Connection, record: Record) -> list[int]:
    """List the events that recorded and changed a record, in order."""
    rows = db.execute(
        "SELECT e.id, COALESCE(e.meta, inflated(b.meta)) AS meta FROM events e LEFT JOIN bodies b ON b.event = e.id"
        " WHERE e.project = ? AND e.kind = ? AND e.id >= ? ORDER BY e.id",
        (record.project, record.type, record.id),
    )
    origin = db.execute("SELECT origin FROM events WHERE id = ?", (record.id,)).fetchone()["origin"]
    return [row["id"] for row in rows if row["id"] == record.id or json.loads(row["meta"]).get("of") == origin]


def changes(db: Connection, event: int) -> list[Change]:
    """List the statuses that an event changed, what it moved first. What changed nothing, a late loser, has none."""
    rows = db.execute(
        "SELECT r.*, s.status AS after, (SELECT b.status FROM record_states b WHERE b.record = s.record"
        " AND b.event < s.event ORDER BY b.event DESC LIMIT 1) AS before"
        " FROM record_states s JOIN records r ON r.id = s.record WHERE s.event = ?"
        " ORDER BY s.record = s.event, s.record",
        (event,),
    )
    return [Change(record=record(row), before=row["before"], after=row["after"]) for row in rows]


def steps(db: Connection, viewer: Viewer, numbers: Iterable[int]) -> list[tuple[int, int, str, str]]:
    """List every status that the records have had, oldest first, as (record, event, time, status)."""
    condition, values = clause(viewer, "s.event")
    rows = db.execute(
        "SELECT s.record, s.event, s.at, s.status FROM json_each(?) j JOIN record_states s ON s.record = j.value"
        f" WHERE {condition} ORDER BY s.event, s.record",
        [json.dumps(list(numbers)), *values],
    )
    return [tuple(row) for row in rows]


def subjects(db: Connection, named: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """Return the records that events name as (project, origin of the event that created it)."""
    rows = db.execute(
        "SELECT e.project, e.origin, r.id FROM json_each(?) j JOIN events e"
        " ON e.project = json_extract(j.value, '$[0]') AND e.origin = json_extract(j.value, '$[1]')"
        " JOIN records r ON r.id = e.id",
        (json.dumps(list(named)),),
    )
    return {(row["project"], row["origin"]): row["id"] for row in rows}


def of_session(db: Connection, viewer: Viewer, session: int, *, pending_todos: bool = False) -> list[Record]:
    """List the visible records of a session, oldest first; or only its pending todos."""
    condition, values = clause(viewer, "r.id")
    only = " AND r.type = 'todo' AND r.status = 'pending'" if pending_todos else ""
    rows = db.execute(
        "SELECT r.* FROM records r WHERE (r.session = ? OR r.id IN (SELECT event FROM membership WHERE session = ?))"
        f" AND {condition}{only} ORDER BY r.id",
        [session, session, *values],
    )
    return [record(row) for row in rows]


def caused_by(db: Connection, viewer: Viewer, event: int) -> list[Record]:
    """List the visible records that have an event as their evidence."""
    condition, values = clause(viewer, "r.id")
    rows = db.execute(
        "SELECT r.* FROM records r WHERE r.session = (SELECT session FROM events WHERE id = ?)"
        f" AND EXISTS (SELECT 1 FROM json_each(r.evidence) WHERE value = ?) AND {condition} ORDER BY r.id",
        [event, event, *values],
    )
    return [record(row) for row in rows]


def standing_on(db: Connection, viewer: Viewer, event: int, project: int) -> list[Record]:
    """List the visible decisions and candidates of a project that an event is evidence of, oldest first."""
    condition, values = clause(viewer, "r.id")
    begun, seen = clause(viewer, "g.begin_event")
    standing, ended = stands(viewer, "g")
    rows = db.execute(
        f"SELECT r.* FROM lineage_edges g JOIN records r ON r.id = g.src WHERE g.dst_type = 'event' AND g.dst = ?"
        f" AND g.type = 'evidence' AND g.src_type = 'decision' AND {standing} AND {begun} AND {condition}"
        " UNION ALL SELECT r.* FROM records r WHERE r.project = ? AND r.type = 'candidate'"
        f" AND EXISTS (SELECT 1 FROM json_each(r.evidence) WHERE value = ?) AND {condition} ORDER BY id",
        [event, *ended, *seen, *values, project, event, *values],
    )
    return [record(row) for row in rows]


def decided_until(db: Connection, viewer: Viewer, session: int, at: str, most: int) -> list[Record]:
    """List the visible decisions that a session recorded up to a time, the newest ones first."""
    condition, values = clause(viewer, "r.id")
    rows = db.execute(
        f"SELECT r.* FROM records r WHERE r.session = ? AND r.type = 'decision' AND r.at <= ? AND {condition}"
        " ORDER BY r.at DESC, r.id DESC LIMIT ?",
        [session, at, *values, most],
    )
    return [record(row) for row in rows]


def nearest(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> int | None:
    """Return the number of the record of that kind in scope that is nearest to a number."""
    condition, values = clause(viewer, "r.id")
    scope, project = ("1", []) if viewer.project is None else ("r.project = ?", [viewer.project])
    row = db.execute(
        f"SELECT r.id FROM records r WHERE r.type = ? AND {scope} AND {condition} ORDER BY ABS(r.id - ?), r.id LIMIT 1",
        [kind, *project, *values, min(number, 2**62)],
    ).fetchone()
    return row["id"] if row else None

"""Goals, decisions, feedback, candidates and todos as a viewer may see them."""

from __future__ import annotations

from graphsvc.model import NodeType, Record
from graphsvc.store.database import Connection
from graphsvc.store.view import record
from graphsvc.store.visibility import Viewer, clause


def get(db: Connection, number: int) -> Record | None:
    """Return a record by its number, whoever may see it."""
    row = db.execute("SELECT * FROM records WHERE id = ?", (number,)).fetchone()
    return record(row) if row else None


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


def nearest(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> int | None:
    """Return the number of the record of that kind in scope that is nearest to a number."""
    condition, values = clause(viewer, "r.id")
    scope, project = ("1", []) if viewer.project is None else ("r.project = ?", [viewer.project])
    row = db.execute(
        f"SELECT r.id FROM records r WHERE r.type = ? AND {scope} AND {condition} ORDER BY ABS(r.id - ?), r.id LIMIT 1",
        [kind, *project, *values, min(number, 2**62)],
    ).fetchone()
    return row["id"] if row else None

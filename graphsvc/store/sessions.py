"""Sessions as they are asked for: one by its id, pages of them, the most recent active one."""

from __future__ import annotations

import difflib
import sqlite3
from dataclasses import dataclass
from typing import Final

from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

_SELECT: Final = (
    "SELECT s.id, s.host_id, s.project, p.key AS project_key, t.host, t.title, t.parent, t.relation, t.started_at,"
    " t.last_at, t.last_event, t.ended, t.isolated,"
    " EXISTS (SELECT 1 FROM hidden h JOIN events e ON e.id = h.event WHERE e.session = s.id) AS hides"
    " FROM sessions s JOIN session_state t ON t.session = s.id JOIN projects p ON p.id = s.project"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session with its place and state. `hides`: some of its events are isolated."""

    number: int
    session_id: str
    project: int
    project_key: str
    host: str | None
    title: str | None
    parent: str | None
    relation: str | None
    started_at: str
    last_at: str
    last_event: int
    ended: bool
    isolated: bool
    hides: bool


def find(db: Connection, name: str) -> SessionRow | None:
    """Find a session by the host's id, bare or as `session-<id>`; some hosts' own ids begin with `session-`."""
    for host_id in dict.fromkeys((name, name.removeprefix("session-"))):
        row = db.execute(f"{_SELECT} WHERE s.host_id = ?", (host_id,)).fetchone()
        if row:
            return _row(row)
    return None


def by_number(db: Connection, number: int) -> SessionRow | None:
    """Find a session by the store's number."""
    row = db.execute(f"{_SELECT} WHERE s.id = ?", (number,)).fetchone()
    return _row(row) if row else None


def latest(db: Connection, viewer: Viewer) -> SessionRow | None:
    """Return the most recent active session: newest ledger position, not ended, not isolated, no sub-agent."""
    where, values = _scope(viewer)
    row = db.execute(
        f"{_SELECT} WHERE {where} AND t.ended = 0 AND t.isolated = 0 AND COALESCE(t.relation, '') <> 'delegation'"
        " ORDER BY t.last_event DESC LIMIT 1",
        values,
    ).fetchone()
    return _row(row) if row else None


def page(db: Connection, viewer: Viewer, after: int | None, first: int) -> list[SessionRow]:
    """List sessions newest first, those behind the position `after` (a session's `last_event`)."""
    where, values = _scope(viewer)
    rows = db.execute(
        f"{_SELECT} WHERE {where} AND t.last_event < ? ORDER BY t.last_event DESC LIMIT ?",
        [*values, after if after is not None else 2**62, first],
    )
    return [_row(row) for row in rows]


def count(db: Connection, viewer: Viewer) -> int:
    """Count the sessions in the viewer's scope."""
    where, values = _scope(viewer)
    return int(
        db.execute(
            f"SELECT COUNT(*) FROM sessions s JOIN session_state t ON t.session = s.id WHERE {where}", values
        ).fetchone()[0]
    )


def nearest(db: Connection, viewer: Viewer, name: str) -> str | None:
    """Return the session id in scope that is spelled most like this one, among the newest 500."""
    wanted = name.removeprefix("session-")
    ids = [row.session_id for row in page(db, viewer, None, 500)]
    begins = [one for one in ids if wanted and one.startswith(wanted)]
    close = begins or difflib.get_close_matches(wanted[:200], ids, n=1, cutoff=0.5)
    return close[0] if close else None


def _scope(viewer: Viewer) -> tuple[str, list[object]]:
    return ("1", []) if viewer.project is None else ("s.project = ?", [viewer.project])


def _row(row: sqlite3.Row) -> SessionRow:
    values = dict(row)
    return SessionRow(
        number=values.pop("id"),
        session_id=values.pop("host_id"),
        ended=bool(values.pop("ended")),
        isolated=bool(values.pop("isolated")),
        hides=bool(values.pop("hides")),
        **values,
    )

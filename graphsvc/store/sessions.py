"""Sessions as they are asked for: one by its id, pages of them, the most recent active one."""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from graphsvc import clock
from graphsvc.model import OWN_HOST
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

_COLUMNS: Final = {"number": "id", "session_id": "host_id"}
PREFIX: Final = "session-"  # of a session's node id; hosts' own ids may begin with it too
# The host's times; a session without any goes by when its events were received.
SELECT: Final = (
    "SELECT s.id, s.host_id, s.project, p.key AS project_key, t.host, t.title, t.parent, t.relation,"
    " COALESCE(t.started_at, (SELECT MIN(at) FROM events WHERE session = s.id)) AS started_at,"
    " COALESCE(t.last_at, (SELECT MAX(at) FROM events WHERE session = s.id)) AS last_at,"
    " t.last_event, t.ended, t.isolated,"
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

    def known_as(self, viewer: Viewer) -> str | None:
        """Return the title; to others none while something is isolated, since the host may have made it from that."""
        return self.title if self._open_to(viewer) else None

    def tells(self, viewer: Viewer, meta: Mapping[str, object]) -> dict[str, object]:
        """Return what the meta of one of its events tells a viewer: of the title no more than `known_as` does."""
        return {name: value for name, value in meta.items() if name != "title" or self._open_to(viewer)}

    def _open_to(self, viewer: Viewer) -> bool:
        return not self.hides or viewer.session == self.number


def find(db: Connection, viewer: Viewer, name: str) -> SessionRow | None:
    """Find a session in the viewer's reach by the host's id, as an answer's `session_id` gives it, or its node id."""
    bare = name.strip()
    names = (name, name.removeprefix(PREFIX), bare, bare.removeprefix(PREFIX))
    found = (by_host_id(db, viewer, host_id) for host_id in dict.fromkeys(names))
    return next((session for session in found if session is not None), None)


def by_host_id(db: Connection, viewer: Viewer, host_id: str) -> SessionRow | None:
    """Find a session in the viewer's reach by exactly the host's id."""
    row = db.execute(f"{SELECT} WHERE s.host_id = ?", (host_id,)).fetchone()
    return read(row) if row and viewer.reaches(row["project"]) else None


def by_number(db: Connection, number: int) -> SessionRow | None:
    """Find a session by the store's number."""
    row = db.execute(f"{SELECT} WHERE s.id = ?", (number,)).fetchone()
    return read(row) if row else None


def by_numbers(db: Connection, numbers: Iterable[int]) -> dict[int, SessionRow]:
    """Find sessions by the store's numbers, in one statement."""
    rows = db.execute(f"{SELECT} WHERE s.id IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),))
    return {row["id"]: read(row) for row in rows}


def latest(db: Connection, viewer: Viewer) -> SessionRow | None:
    """Return the most recent active session: newest by its events' times, not ended, not isolated, no sub-agent.

    Nor our own, which holds what was recorded outside of any session.
    Not by position: an import takes the newest history first, so the oldest session would be the most recent one.
    """
    where, values = _scope(viewer)
    row = db.execute(
        f"{SELECT} WHERE {where} AND t.ended = 0 AND t.isolated = 0 AND COALESCE(t.relation, '') <> 'delegation'"
        " AND COALESCE(t.host, '') <> ? ORDER BY last_at DESC, t.last_event DESC LIMIT 1",
        [*values, OWN_HOST],
    ).fetchone()
    return read(row) if row else None


def page(db: Connection, viewer: Viewer, after: tuple[int, int] | None, first: int) -> list[SessionRow]:
    """List sessions, the most recently active first; those behind the `place` of the last one of the page before."""
    where, values = _scope(viewer)
    edge = (clock.from_micros(after[0]), after[1]) if after is not None else ("\U0010ffff", 0)
    rows = db.execute(
        f"SELECT * FROM ({SELECT} WHERE {where}) WHERE (last_at, last_event) < (?, ?)"
        " ORDER BY last_at DESC, last_event DESC LIMIT ?",
        [*values, *edge, first],
    )
    return [read(row) for row in rows]


def place(session: SessionRow) -> tuple[int, int]:
    """Say where a session stands in the order of `page`."""
    return clock.to_micros(session.last_at), session.last_event


def nearest(db: Connection, viewer: Viewer, name: str) -> str | None:
    """Return the session id in scope that is spelled most like this one, among the newest 500."""
    wanted = name.removeprefix(PREFIX)
    ids = [row.session_id for row in page(db, viewer, None, 500)]
    begins = [one for one in ids if wanted and one.startswith(wanted)]
    close = begins or difflib.get_close_matches(wanted[:200], ids, n=1, cutoff=0.5)
    return close[0] if close else None


def _scope(viewer: Viewer) -> tuple[str, list[object]]:
    return ("1", []) if viewer.project is None else ("s.project = ?", [viewer.project])


def read(row: sqlite3.Row) -> SessionRow:
    """Read a row of SELECT."""
    values = {item.name: row[_COLUMNS.get(item.name, item.name)] for item in fields(SessionRow)}
    return SessionRow(**{**values, **{name: bool(values[name]) for name in ("ended", "isolated", "hides")}})

"""The append-only event stream, and the dictionaries of projects and sessions it points at."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from graphsvc.model import Event, EventKind, Stored
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer, clause, visible

INLINE: Final = 4096  # bytes of body and meta that stay in the row; more goes compressed to `bodies`
PAGE: Final = 500
STRETCH: Final = 5_000  # positions that one look behind a position covers
_COLUMNS: Final = (
    "e.id, e.project, e.session, s.host_id, e.seq, e.kind, e.origin, e.ts, e.at, e.received_at, e.actor,"
    " e.body, e.meta, e.isolated, b.body AS packed_body, b.meta AS packed_meta"
)
ROW: Final = (
    "e.id, e.project, p.key AS project_key, e.session, s.host_id AS session_id, e.seq, e.kind, e.origin, e.ts, e.at,"
    " e.received_at, e.actor, e.isolated"
)
ROW_FROM: Final = "events e JOIN sessions s ON s.id = e.session JOIN projects p ON p.id = e.project"
# A number that was given to nothing before, not even to what was forgotten.
_FRESH: Final = "1 + MAX((SELECT COALESCE(MAX(id), 0) FROM {0}s), COALESCE((SELECT {0} FROM forgetting), 0))"
_FROM: Final = "events e JOIN sessions s ON s.id = e.session LEFT JOIN bodies b ON b.event = e.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """An event without its body and meta: `texts` reads those of several, when they are asked for."""

    id: int
    project: int
    project_key: str
    session: int
    session_id: str
    seq: int
    kind: EventKind
    origin: str
    ts: str | None
    at: str
    received_at: str
    actor: str | None
    isolated: bool


def append(
    db: Connection, event: Event, *, project: int, session: int, at: str, received_at: str, isolated: bool
) -> Stored:
    """Write one event at the end of the ledger; its origin must be new in the project."""
    texts, packed = _written(event.body, event.meta)
    row = db.execute(
        "INSERT INTO events (project, session, seq, kind, origin, ts, at, received_at, actor, body, meta, isolated)"
        " VALUES (?, ?, (SELECT COALESCE(MAX(seq), 0) + 1 FROM events WHERE session = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " RETURNING id, seq",
        (
            project, session, session, event.kind, event.origin, event.ts, at, received_at, event.actor,
            *texts, isolated,
        ),
    ).fetchone()  # fmt: skip
    if packed is not None:
        db.execute("INSERT INTO bodies (event, body, meta, size) VALUES (?, ?, ?, ?)", (row["id"], *packed))
    return Stored(
        id=row["id"],
        project=project,
        session=session,
        session_id=event.session_id,
        seq=row["seq"],
        kind=event.kind,
        origin=event.origin,
        body=event.body,
        ts=event.ts,
        at=at,
        received_at=received_at,
        actor=event.actor,
        meta=event.meta,
        isolated=isolated,
    )


def rewrite(db: Connection, number: int, body: str, meta: Mapping[str, object]) -> None:
    """Write the text of an event again; the ledger must be unlocked for that."""
    texts, packed = _written(body, meta)
    db.execute("DELETE FROM bodies WHERE event = ?", (number,))
    db.execute("UPDATE events SET body = ?, meta = ? WHERE id = ?", (*texts, number))
    if packed is not None:
        db.execute("INSERT INTO bodies (event, body, meta, size) VALUES (?, ?, ?, ?)", (number, *packed))


def _written(
    text: str, about: Mapping[str, object]
) -> tuple[tuple[bytes | None, str | None], tuple[bytes, bytes, int] | None]:
    """Return what stands of a text in the row of its event, and what in `bodies`: packed body and meta, and size."""
    body, meta = encode(text), json.dumps(about, sort_keys=True, separators=(",", ":"))
    if len(body) + len(meta) <= INLINE:
        return (body, meta), None
    return (None, None), (zlib.compress(body), zlib.compress(meta.encode()), len(body))


def encode(text: str) -> bytes:
    """Return the bytes a body is stored as; lone surrogates survive."""
    return text.encode("utf-8", "surrogatepass")


def get(db: Connection, number: int) -> Stored | None:
    """Read one event with its whole body."""
    row = db.execute(f"SELECT {_COLUMNS} FROM {_FROM} WHERE e.id = ?", (number,)).fetchone()
    return _stored(row) if row else None


def many(db: Connection, numbers: Iterable[int]) -> dict[int, Stored]:
    """Read events by their ids, in one statement."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE e.id IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),)
    )
    return {row["id"]: _stored(row) for row in rows}


def rows(db: Connection, viewer: Viewer, numbers: Iterable[int]) -> dict[int, EventRow]:
    """Read those of the events that the viewer may see, without their texts, in one statement."""
    condition, values = clause(viewer, "e.id")
    found = db.execute(
        f"SELECT {ROW} FROM {ROW_FROM} WHERE e.id IN (SELECT value FROM json_each(?)) AND {condition}",
        [json.dumps(list(numbers)), *values],
    )
    return {row["id"]: read(row) for row in found}


def times(db: Connection, numbers: Iterable[int]) -> dict[int, str]:
    """Return the times that events are ordered by, whoever may see them: when something changed is no secret."""
    rows = db.execute(
        "SELECT id, at FROM events WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),)
    )
    return {row["id"]: row["at"] for row in rows}


def texts(db: Connection, numbers: Iterable[int]) -> dict[int, tuple[str, Mapping[str, object]]]:
    """Read the bodies and metas of events, in one statement."""
    return {number: (event.body, event.meta) for number, event in many(db, numbers).items()}


def by_origin(db: Connection, project: int, origin: str) -> Stored | None:
    """Find the event of that origin in the project."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE e.project = ? AND e.origin = ?", (project, origin)
    ).fetchone()
    return _stored(row) if row else None


def ids_of_origins(db: Connection, project: int, origins: Sequence[str]) -> list[int]:
    """Find the ids of those origins that the project holds, in ledger order."""
    rows = db.execute(
        "SELECT id FROM events WHERE project = ? AND origin IN (SELECT value FROM json_each(?)) ORDER BY id",
        (project, json.dumps(list(origins))),
    )
    return [row["id"] for row in rows]


def after(db: Connection, position: int) -> Iterator[Stored]:
    """Read the ledger from behind a position, in pages, so that no cursor stays open while others write."""
    while True:
        rows = db.execute(
            f"SELECT {_COLUMNS} FROM {_FROM} WHERE e.id > ? ORDER BY e.id LIMIT ?", (position, PAGE)
        ).fetchall()
        if not rows:
            return
        yield from map(_stored, rows)
        position = rows[-1]["id"]


def shown_between(db: Connection, viewer: Viewer, since: int, until: int) -> Iterator[int]:
    """List the events in scope that the viewer may see, behind one position and up to another, in pages."""
    condition, values = clause(viewer, "e.id")
    scope, project = ("1", []) if viewer.project is None else ("e.project = ?", [viewer.project])
    while True:
        rows = db.execute(
            f"SELECT e.id FROM events e WHERE e.id > ? AND e.id <= ? AND {scope} AND {condition} ORDER BY e.id LIMIT ?",
            [since, until, *project, *values, PAGE],
        ).fetchall()
        if not rows:
            return
        yield from (row["id"] for row in rows)
        since = rows[-1]["id"]


def in_session(db: Connection, session: int, kind: EventKind, until: int) -> list[Stored]:
    """List the events of one kind in a session, up to a position."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE e.session = ? AND e.kind = ? AND e.id <= ? ORDER BY e.seq",
        (session, kind, until),
    )
    return [_stored(row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What a look behind a position found: one event or none, how far it saw, and whether the ledger goes on there."""

    events: tuple[int, ...]
    position: int
    more: bool


def behind(
    db: Connection,
    viewer: Viewer,
    place: int,
    *,
    kinds: Collection[str] = (),
    session: int | None = None,
    project: int | None = None,
) -> Next:
    """Find the first event behind a position that the viewer may see, among those of a kind, session and project."""
    end = position(db)
    far = min(end, place + STRETCH)
    condition, own = clause(viewer, "e.id")
    conditions, values = ["e.id > ?", "e.id <= ?", condition], [place, far, *own]
    # The plus keeps the indexes of these columns out: a stretch is read in ledger order.
    if kinds:
        conditions.append("+e.kind IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(kinds)))
    if session is not None:
        conditions.append("+e.session = ?")
        values.append(session)
    if project is not None:
        conditions.append("+e.project = ?")
        values.append(project)
    row = db.execute(
        f"SELECT e.id FROM events e WHERE {' AND '.join(conditions)} ORDER BY e.id LIMIT 1", values
    ).fetchone()
    seen = row["id"] if row else max(far, place)
    return Next(events=(seen,) if row else (), position=seen, more=seen < end)


def of_kind(db: Connection, project: int, kind: EventKind, *, after: int, before: int) -> list[Stored]:
    """Read the events of a kind between two positions of a project."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE e.project = ? AND e.kind = ? AND e.id > ? AND e.id < ? ORDER BY e.id",
        (project, kind, after, before),
    )
    return [_stored(row) for row in rows]


def position(db: Connection) -> int:
    """Return the newest position of the ledger; 0 when it is empty."""
    return int(db.execute("SELECT COALESCE(MAX(id), 0) FROM events").fetchone()[0])


def shown_since(db: Connection, position: int) -> bool:
    """Say whether something was published or forgotten behind a position, so that others may be seen than before."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM events WHERE id > ? AND kind IN ('publish', 'forget'))", (position,)
    ).fetchone()
    return bool(row[0])


def shown(db: Connection, viewer: Viewer, numbers: Iterable[int]) -> set[int]:
    """Return those of the events that the viewer may see."""
    condition, values = clause(viewer, "e.id")
    rows = db.execute(
        f"SELECT e.id FROM events e WHERE e.id IN (SELECT value FROM json_each(?)) AND {condition}",
        [json.dumps(list(numbers)), *values],
    )
    return {row["id"] for row in rows}


def marks(db: Connection, viewer: Viewer, session: int) -> list[Stored]:
    """Return what a session is known by: first prompts, checkpoints, newest words; the visible ones, in order."""
    condition, values = clause(viewer, "e.id")
    # What is counted are visible ones: a hidden one takes no place.
    own = f"SELECT e.id, e.seq FROM events e WHERE e.session = ? AND e.actor IS NULL AND {condition} AND e.kind"
    rows = db.execute(
        f"SELECT id FROM ({own} = 'user_message' ORDER BY e.seq LIMIT 5)"
        f" UNION SELECT id FROM ({own} = 'compact_checkpoint' ORDER BY e.seq LIMIT 50)"
        f" UNION SELECT id FROM ({own} IN ('user_message', 'assistant_message') ORDER BY e.seq DESC LIMIT 5)",
        [session, *values] * 3,
    )
    found = many(db, [row["id"] for row in rows])
    return sorted(found.values(), key=lambda event: event.seq)


def told_before(db: Connection, viewer: Viewer, session: int, actor: str | None, at: str, number: int) -> int | None:
    """Return the last words of a user to an actor of a session before a place in time.

    None when there are none, or when something that the viewer may not see came after them: that may have been words.
    """
    condition, values = clause(viewer, "e.id")
    row = db.execute(
        f"SELECT e.id, {condition} AS seen FROM events e WHERE (e.session = ?"
        " OR e.id IN (SELECT event FROM membership WHERE session = ?)) AND (e.at, e.id) < (?, ?)"
        f" AND ((e.kind = 'user_message' AND e.actor IS ?) OR NOT {condition}) ORDER BY e.at DESC, e.id DESC LIMIT 1",
        [*values, session, session, at, number, actor, *values],
    ).fetchone()
    return row["id"] if row and row["seen"] else None


def around(db: Connection, viewer: Viewer, event: Stored) -> list[tuple[str, Stored]]:
    """Return the visible events next to one, each with what it is to it: cause, call, result, before, after."""
    places: list[tuple[str, int]] = []
    cause, tool_use_id = event.meta.get("cause"), event.meta.get("tool_use_id")
    if isinstance(cause, str):
        row = db.execute("SELECT id FROM events WHERE project = ? AND origin = ?", (event.project, cause)).fetchone()
        places += [("cause", row["id"])] if row else []
    if isinstance(tool_use_id, str):
        row = db.execute(
            "SELECT event AS call, result FROM tool_calls WHERE session = ? AND tool_use_id = ?",
            (event.session, tool_use_id),
        ).fetchone()
        name = "call" if event.kind is EventKind.TOOL_RESULT else "result"
        places += [(name, row[name])] if row and row[name] else []
    for name, sign, order in (("before", "<", "DESC"), ("after", ">", "ASC")):
        row = db.execute(
            f"SELECT id FROM events WHERE session = ? AND seq {sign} ? ORDER BY seq {order} LIMIT 1",
            (event.session, event.seq),
        ).fetchone()
        places += [(name, row["id"])] if row else []
    found = many(db, [number for _, number in places])
    return [(name, found[number]) for name, number in places if visible(db, viewer, number)]


def nearest(db: Connection, viewer: Viewer, number: int) -> int | None:
    """Return the visible event in scope that is nearest to a number."""
    condition, values = clause(viewer, "e.id")
    scope, project = ("1", []) if viewer.project is None else ("e.project = ?", [viewer.project])
    number = min(number, 2**62)
    found = [
        row["id"]
        for sign, order in (("<=", "DESC"), (">", "ASC"))
        for row in db.execute(
            f"SELECT e.id FROM events e WHERE e.id {sign} ? AND {scope} AND {condition} ORDER BY e.id {order} LIMIT 1",
            [number, *project, *values],
        )
    ]
    return min(found, key=lambda one: abs(one - number), default=None)


def of_session(db: Connection, session: int) -> list[int]:
    """List the ids of a session's events: what it shares with earlier sessions first, then its own in order."""
    rows = db.execute(
        "SELECT event AS id, 0 AS own, event AS place FROM membership WHERE session = ?"
        " UNION ALL SELECT id, 1, seq FROM events WHERE session = ? ORDER BY own, place",
        (session, session),
    )
    return [row["id"] for row in rows]


def last_at(db: Connection, session: int) -> str | None:
    """Return the time of the session's newest event."""
    row = db.execute("SELECT at FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,)).fetchone()
    return row["at"] if row else None


def project_key(db: Connection, project: int) -> str:
    """Return the key of a project."""
    return str(db.execute("SELECT key FROM projects WHERE id = ?", (project,)).fetchone()["key"])


def find_project(db: Connection, key: str) -> int | None:
    """Find the number of a project by its key."""
    row = db.execute("SELECT id FROM projects WHERE key = ?", (key,)).fetchone()
    return row["id"] if row else None


def project_keys(db: Connection) -> list[str]:
    """List the keys of all projects."""
    return [row["key"] for row in db.execute("SELECT key FROM projects ORDER BY key")]


def intern_project(db: Connection, key: str) -> int:
    """Return the number of a project, giving it one at its first event."""
    found = find_project(db, key)
    if found is not None:
        return found
    row = db.execute(f"INSERT INTO projects (id, key) VALUES ({_FRESH.format('project')}, ?) RETURNING id", (key,))
    return int(row.fetchone()["id"])


def find_session(db: Connection, session_id: str) -> tuple[int, int] | None:
    """Find a session by the host's id, as (session, project)."""
    row = db.execute("SELECT id, project FROM sessions WHERE host_id = ?", (session_id,)).fetchone()
    return (row["id"], row["project"]) if row else None


def intern_session(db: Connection, session_id: str, project: int) -> int:
    """Give a session its number at its first event; it stays in that project."""
    row = db.execute(
        f"INSERT INTO sessions (id, host_id, project) VALUES ({_FRESH.format('session')}, ?, ?) RETURNING id",
        (session_id, project),
    ).fetchone()
    return int(row["id"])


def read(row: sqlite3.Row) -> EventRow:
    """Read a row of ROW."""
    values = {item.name: row[item.name] for item in fields(EventRow)}
    return EventRow(**{**values, "kind": EventKind(values["kind"]), "isolated": bool(values["isolated"])})


def _stored(row: sqlite3.Row) -> Stored:
    body, meta = row["body"], row["meta"]
    if body is None:
        body, meta = zlib.decompress(row["packed_body"]), zlib.decompress(row["packed_meta"])
    return Stored(
        id=row["id"],
        project=row["project"],
        session=row["session"],
        session_id=row["host_id"],
        seq=row["seq"],
        kind=EventKind(row["kind"]),
        origin=row["origin"],
        body=body.decode("utf-8", "surrogatepass"),
        ts=row["ts"],
        at=row["at"],
        received_at=row["received_at"],
        actor=row["actor"],
        meta=json.loads(meta),
        isolated=bool(row["isolated"]),
    )

"""What all may see of the graph, for the mirror: all of it, or what changed behind a position of the ledger.

Nothing here belongs to an isolated event: no node, no edge that one began or that ends at one, no name, no time. A row
that is shared stays shared; one that was isolated becomes shared by a `publish` event, or, when it ends at an asset, by
the first shared version of it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from graphsvc.model import EdgeType, NodeId, NodeType
from graphsvc.store import events, sessions
from graphsvc.store.database import Connection
from graphsvc.store.edges.intervals import PAGE, TABLES, Interval, Intervals
from graphsvc.store.visibility import Viewer

TITLE: Final = 120  # characters
_READ: Final = 1_000  # bytes of a body that a title is looked for in
_TYPES: Final = {str(kind): kind for kind in NodeType}

T = TypeVar("T")


class Node(NamedTuple):
    """A node as the mirror holds it; the fields are told in `schema/kuzu/graph.cypher`."""

    id: str
    type: NodeType
    number: int
    project: str
    session: str
    kind: str | None
    status: str | None
    title: str | None
    path: str | None
    superseded_by: str | None
    at: str
    updated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is different behind a position: nodes to be replaced, and edges with all the intervals they have now.

    `redrawn` are those of the edges, as (type, source, target), of which the mirror may hold intervals.
    """

    nodes: list[Node]
    intervals: list[Interval]
    redrawn: list[tuple[EdgeType, str, str]]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows of a type there are, and sums over them: two tables that differ hardly agree in all of them."""

    rows: int
    largest: int  # number of a node, begin_event of an edge
    total: int  # of the same
    ended: int  # sum of the end_event of edges; 0 of nodes

    def plus(self, other: Tally) -> Tally:
        """Return the tally of both together."""
        largest = max(self.largest, other.largest)
        return Tally(self.rows + other.rows, largest, self.total + other.total, self.ended + other.ended)


def _hidden(event: str) -> str:
    return f"EXISTS (SELECT 1 FROM hidden h WHERE h.event = {event})"


# The columns of a node, and behind them what its title is read from: a text, or the body of an event.
_RECORDS: Final = (
    "SELECT r.type || '-' || r.id, r.type, r.id AS number, p.key, s.host_id, r.kind, r.status, NULL, NULL,"
    " r.type || '-' || b.id, r.at, COALESCE(c.at, r.at),"
    f" substr(r.text, 1, {_READ}), NULL, NULL"
    " FROM records r JOIN sessions s ON s.id = r.session JOIN projects p ON p.id = r.project"
    f" LEFT JOIN events c ON c.id = r.changed_event AND NOT {_hidden('c.id')}"
    f" LEFT JOIN records b ON b.id = r.superseded_by AND NOT {_hidden('b.id')}"
    f" WHERE NOT {_hidden('r.id')}"
)
_ASSETS: Final = (
    "SELECT 'asset-' || f.event, 'asset' AS type, f.event AS number, p.key, s.host_id, f.kind, NULL, NULL, a.path,"
    " NULL, f.at, n.at, n.title, NULL, NULL"
    " FROM (SELECT v.asset, v.title, v.at, MIN(v.event) OVER (PARTITION BY v.asset) AS first,"
    " ROW_NUMBER() OVER (PARTITION BY v.asset ORDER BY v.at DESC, v.event DESC) AS newest FROM asset_versions v"
    f" WHERE NOT {_hidden('v.event')}{{where}}) n JOIN asset_versions f ON f.event = n.first"
    " JOIN knowledge_assets a ON a.id = n.asset JOIN projects p ON p.id = a.project"
    " JOIN sessions s ON s.id = f.session WHERE n.newest = 1"
)
_EVENTS: Final = (
    "SELECT 'event-' || e.id, 'event', e.id, p.key, s.host_id, e.kind, NULL, NULL, NULL, NULL, e.at, e.at,"
    f" NULL, substr(e.body, 1, {_READ}), CASE WHEN e.body IS NULL THEN b.body END"
    f" FROM {events.ROW_FROM} LEFT JOIN bodies b ON b.event = e.id WHERE e.id IN (SELECT value FROM json_each(?))"
)


class Everything:
    """One state of a store, read in one go: the edges first, for they say which events are nodes."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._intervals = Intervals(db)

    def intervals(self) -> Iterator[list[Interval]]:
        """Read all edges with all their intervals, in pages."""
        return self._intervals.all()

    def nodes(self) -> Iterator[list[Node]]:
        """Read all nodes, in pages. Events are nodes when shared edges touch them: those that were read before."""
        yield from _pages(_nodes(self._db, _RECORDS))
        yield from _pages(_nodes(self._db, _ASSETS.format(where="")))
        yield from _pages(_session(sessions.read(row)) for row in self._db.execute(sessions.SELECT))
        yield from _pages(_nodes(self._db, _EVENTS, json.dumps(sorted(self._intervals.events))))

    def tallies(self) -> dict[str, Tally]:
        """Count what a mirror holds: nodes by type and status (`decision active`), intervals by type, in capitals."""
        found: dict[str, Tally] = {}
        for page in self._intervals.all():
            for kind in {one.type for one in page}:
                begun = [one.begin_event for one in page if one.type == kind]
                ended = sum(one.end_event or 0 for one in page if one.type == kind)
                tally = Tally(len(begun), max(begun), sum(begun), ended)
                found[kind.upper()] = found[kind.upper()].plus(tally) if kind.upper() in found else tally
        numbers = " UNION ALL ".join((
            f"SELECT type || ' ' || status AS type, number FROM ({_RECORDS})",
            f"SELECT type, number FROM ({_ASSETS.format(where='')})",
            "SELECT 'session', s.id FROM sessions s JOIN session_state t ON t.session = s.id",
        ))  # fmt: skip
        rows = self._db.execute(f"SELECT type, COUNT(*), MAX(number), SUM(number) FROM ({numbers}) GROUP BY type")
        found |= {kind: Tally(count, largest, total, 0) for kind, count, largest, total in rows}
        if touched := self._intervals.events:
            found["event"] = Tally(len(touched), max(touched), sum(touched), 0)
        return found


def changes(db: Connection, position: int, most: int) -> Changes | None:
    """Read what changed behind a position; None when it is more than `most` rows, or events became shared.

    Whoever writes all of it stands at the newest position of the state that was read.
    """
    if _many(db, position, most) or _unhides(db, position):
        return None
    drawn = Intervals(db)
    intervals = drawn.changed(position)
    redrawn = {(one.type, one.source, one.target) for one in intervals if one.begin_event <= position}
    found = [*_nodes(db, f"{_RECORDS} AND r.changed_event > ?", position)]
    where = " AND v.asset IN (SELECT asset FROM asset_versions WHERE event > ?)"
    found += _nodes(db, _ASSETS.format(where=where), position)
    active = [row["session"] for row in db.execute("SELECT DISTINCT session FROM events WHERE id > ?", (position,))]
    found += map(_session, sessions.by_numbers(db, active).values())
    found += _nodes(db, _EVENTS, json.dumps(sorted(drawn.events)))
    return Changes(nodes=found, intervals=intervals, redrawn=sorted(redrawn))


def size(db: Connection) -> int:
    """Return about how many rows `nodes` and `intervals` read: what is isolated counts, events do not."""
    counts = " + ".join(f"(SELECT COUNT(*) FROM {table})" for table in (*TABLES, "records", "knowledge_assets"))
    return int(db.execute(f"SELECT {counts}").fetchone()[0])


def ledger(db: Connection, position: int) -> str:
    """Say which ledger this is, up to a position: by its first event and the one there; empty before the first."""
    rows = db.execute(
        "SELECT e.id, p.key, e.origin, e.received_at FROM events e JOIN projects p ON p.id = e.project"
        " WHERE e.id IN ((SELECT MIN(id) FROM events), ?) ORDER BY e.id",
        (position,),
    )
    told = [list(row) for row in rows]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest() if told else ""


def _many(db: Connection, position: int, most: int) -> bool:
    """Say whether more rows than that changed."""
    changed = " UNION ALL ".join((
        *(f"SELECT 1 FROM {table} WHERE changed_event > ?" for table in (*TABLES, "records")),
        "SELECT 1 FROM asset_versions WHERE event > ?",
    ))  # fmt: skip
    asked = [*[position] * (len(TABLES) + 2), most + 1]
    row = db.execute(f"SELECT COUNT(*) FROM (SELECT 1 FROM ({changed}) LIMIT ?)", asked).fetchone()
    return bool(row[0] > most)


def _unhides(db: Connection, position: int) -> bool:
    """Say whether something may have become shared, or gone, that older rows tell of."""
    row = db.execute("SELECT 1 FROM events WHERE id > ? AND kind IN ('publish', 'forget') LIMIT 1", (position,))
    return row.fetchone() is not None


def _nodes(db: Connection, sql: str, *values: object) -> Iterator[Node]:
    cursor = db.cursor()
    cursor.row_factory = None  # there are many
    for (
        identity,
        kind,
        number,
        project,
        session,
        about,
        status,
        _,
        path,
        superseded_by,
        at,
        updated_at,
        *said,
    ) in cursor.execute(sql, values):
        text, body, packed = said
        if packed is not None:
            body = zlib.decompressobj().decompress(packed, _READ)
        title = _title((body or b"").decode("utf-8", "replace") if text is None else text)
        yield Node(
            identity, _TYPES[kind], number, project, session, about, status, title, path, superseded_by, at, updated_at
        )


def _session(row: sessions.SessionRow) -> Node:
    return Node(
        id=str(NodeId(NodeType.SESSION, row.session_id)),
        type=NodeType.SESSION,
        number=row.number,
        project=row.project_key,
        session=row.session_id,
        kind=None,
        status=None,
        title=_title(row.known_as(Viewer()) or ""),
        path=None,
        superseded_by=None,
        at=row.started_at,
        updated_at=row.last_at,
    )


def _title(text: str) -> str | None:
    """Return the first line that says something."""
    return next((line.strip()[:TITLE] for line in text.splitlines() if line.strip()), None)


def _pages(rows: Iterable[T]) -> Iterator[list[T]]:
    left = iter(rows)
    while page := list(islice(left, PAGE)):
        yield page

"""What all may see of the graph, for the mirror: all of it, or what changed behind a position of the ledger.

Nothing here belongs to an isolated event: no node, no edge that one began or that ends at one, no name, no time. A row
that is shared stays shared; one that was isolated becomes shared by a `publish` event, or, when it ends at an asset, by
the first shared version of it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Final, TypeVar

from graphsvc.model import EdgeType, NodeId, NodeType
from graphsvc.store import events, sessions
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

TITLE: Final = 120  # characters
PAGE: Final = 20_000  # rows that are read together
_READ: Final = 1_000  # bytes of a body that a title is looked for in

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as the mirror holds it; the fields are told in `schema/kuzu/graph.cypher`."""

    id: str
    type: NodeType
    number: int
    project: str
    session: str
    kind: str | None = None
    status: str | None = None
    title: str | None = None
    path: str | None = None
    superseded_by: str | None = None
    at: str
    updated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A time during which an edge stood; an edge that was drawn again has several."""

    type: EdgeType
    source: str
    target: str
    rule: str
    confidence: str
    begin_event: int
    begin_at: str
    end_event: int | None
    end_at: str | None


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


def _hidden(event: str) -> str:
    return f"EXISTS (SELECT 1 FROM hidden h WHERE h.event = {event})"


# The first version of an asset that all may see is what the asset goes by.
_FIRST: Final = f"(SELECT MIN(v.event) FROM asset_versions v WHERE v.asset = {{}} AND NOT {_hidden('v.event')})"


def _id(kind: str, number: str) -> str:
    """The id of an end of an edge; NULL when it is not shared."""
    return (
        f"CASE {kind} WHEN 'session' THEN (SELECT 'session-' || s.host_id FROM sessions s WHERE s.id = {number})"
        f" WHEN 'asset' THEN 'asset-' || {_FIRST.format(number)}"
        f" WHEN 'event' THEN (SELECT 'event-' || e.id FROM events e WHERE e.id = {number} AND NOT {_hidden('e.id')})"
        f" ELSE (SELECT r.type || '-' || r.id FROM records r WHERE r.id = {number} AND NOT {_hidden('r.id')}) END"
    )


_KEY: Final = ("type", "src_type", "src", "dst_type", "dst")
_TABLES: Final = ("lineage_edges", "past_edges")
_INTERVAL: Final = (
    f"SELECT g.type, {_id('g.src_type', 'g.src')} AS source, {_id('g.dst_type', 'g.dst')} AS target, g.rule,"
    " g.confidence, g.begin_event, g.begin_at,"
    f" CASE WHEN NOT {_hidden('g.end_event')} THEN g.end_event END AS end_event,"
    f" CASE WHEN NOT {_hidden('g.end_event')} THEN g.end_at END AS end_at,"
    " CASE g.src_type WHEN 'event' THEN g.src END AS source_event,"
    " CASE g.dst_type WHEN 'event' THEN g.dst END AS target_event FROM"
)
_SHARED: Final = f"NOT {_hidden('g.begin_event')}"
_BOTH_ENDS: Final = "source IS NOT NULL AND target IS NOT NULL"
_INTERVALS: Final = (
    "SELECT * FROM (" + " UNION ALL ".join(f"{_INTERVAL} {table} g WHERE {_SHARED}" for table in _TABLES) + ")"
    f" WHERE {_BOTH_ENDS}"
)
# The edges that changed behind a position, by their own rows, or because an asset that they end at is shared since.
_KEYS: Final = (
    "WITH asked (position) AS (SELECT ?), fresh (asset) AS (SELECT n.asset FROM asset_versions n"
    f" WHERE n.event > (SELECT position FROM asked) AND n.event = {_FIRST.format('n.asset')}), keys AS ("
    + " UNION ".join(
        f"SELECT {', '.join(_KEY)} FROM {table} WHERE {where}"
        for table in _TABLES
        for where in (
            "changed_event > (SELECT position FROM asked)",
            "src_type = 'asset' AND src IN (SELECT asset FROM fresh)",
            "dst_type = 'asset' AND dst IN (SELECT asset FROM fresh)",
        )
    )
    + ")"
)
_ON: Final = " AND ".join(f"g.{name} = k.{name}" for name in _KEY)
_CHANGED: Final = (
    f"{_KEYS} SELECT * FROM ("
    + " UNION ALL ".join(f"{_INTERVAL} keys k CROSS JOIN {table} g ON {_ON} WHERE {_SHARED}" for table in _TABLES)
    + f") WHERE {_BOTH_ENDS}"
)
_RECORDS: Final = (
    "SELECT r.type || '-' || r.id AS id, r.type, r.id AS number, p.key AS project, s.host_id AS session, r.kind,"
    f" r.status, substr(r.text, 1, {_READ}) AS text, r.type || '-' || b.id AS superseded_by, r.at,"
    " COALESCE(c.at, r.at) AS updated_at"
    " FROM records r JOIN sessions s ON s.id = r.session JOIN projects p ON p.id = r.project"
    f" LEFT JOIN events c ON c.id = r.changed_event AND NOT {_hidden('c.id')}"
    f" LEFT JOIN records b ON b.id = r.superseded_by AND NOT {_hidden('b.id')}"
    f" WHERE NOT {_hidden('r.id')}"
)
# SQLite takes the bare columns of a MAX() group from the row that holds the maximum: the newest shared version.
_ASSETS: Final = (
    "SELECT 'asset-' || f.event AS id, 'asset' AS type, f.event AS number, p.key AS project, s.host_id AS session,"
    " f.kind, n.title AS text, a.path, f.at, n.at AS updated_at"
    " FROM (SELECT v.asset, v.title, v.at, MIN(v.event) OVER (PARTITION BY v.asset) AS first,"
    " ROW_NUMBER() OVER (PARTITION BY v.asset ORDER BY v.at DESC, v.event DESC) AS newest FROM asset_versions v"
    f" WHERE NOT {_hidden('v.event')}{{where}}) n JOIN asset_versions f ON f.event = n.first"
    " JOIN knowledge_assets a ON a.id = n.asset JOIN projects p ON p.id = a.project"
    " JOIN sessions s ON s.id = f.session WHERE n.newest = 1"
)
_EVENTS: Final = (
    "SELECT 'event-' || e.id AS id, 'event' AS type, e.id AS number, p.key AS project, s.host_id AS session, e.kind,"
    f" substr(e.body, 1, {_READ}) AS body, CASE WHEN e.body IS NULL THEN b.body END AS packed, e.at, e.at AS updated_at"
    f" FROM {events.ROW_FROM} LEFT JOIN bodies b ON b.event = e.id"
    " WHERE e.id IN ({which})"
)


_TOUCHED: Final = (
    f"WITH shared AS ({_INTERVALS}) SELECT source_event AS event FROM shared WHERE source_event IS NOT NULL"
    " UNION SELECT target_event FROM shared WHERE target_event IS NOT NULL"
)


def nodes(db: Connection) -> Iterator[list[Node]]:
    """Read all nodes, in pages. Events are nodes when shared edges touch them."""
    yield from _pages(map(_node, db.execute(_RECORDS)))
    yield from _pages(map(_node, db.execute(_ASSETS.format(where=""))))
    yield from _pages(_session(sessions.read(row)) for row in db.execute(sessions.SELECT))
    yield from _pages(map(_node, db.execute(_EVENTS.format(which=_TOUCHED))))


def intervals(db: Connection) -> Iterator[list[Interval]]:
    """Read all edges with all their intervals, in pages."""
    yield from _pages(map(_interval, db.execute(_INTERVALS)))


def changes(db: Connection, position: int, most: int) -> Changes | None:
    """Read what changed behind a position; None when it is more than `most` rows, or events became shared.

    Whoever writes all of it stands at the newest position of the state that was read.
    """
    if _many(db, position, most) or _unhides(db, position):
        return None
    drawn = db.execute(_CHANGED, (position,)).fetchall()
    redrawn = {(row["type"], row["source"], row["target"]) for row in drawn if row["begin_event"] <= position}
    touched = {row[name] for row in drawn for name in ("source_event", "target_event")} - {None}
    found = [*map(_node, db.execute(f"{_RECORDS} AND r.changed_event > ?", (position,)))]
    where = " AND v.asset IN (SELECT asset FROM asset_versions WHERE event > ?)"
    found += map(_node, db.execute(_ASSETS.format(where=where), (position,)))
    active = [row["session"] for row in db.execute("SELECT DISTINCT session FROM events WHERE id > ?", (position,))]
    found += map(_session, sessions.by_numbers(db, active).values())
    which = "SELECT value FROM json_each(?)"
    found += map(_node, db.execute(_EVENTS.format(which=which), (json.dumps(sorted(touched)),)))
    keys = [(EdgeType(kind), source, target) for kind, source, target in sorted(redrawn)]
    return Changes(nodes=found, intervals=[*map(_interval, drawn)], redrawn=keys)


def tallies(db: Connection) -> dict[str, Tally]:
    """Count what a mirror holds: nodes by type and status (`decision active`), intervals by type, in capitals."""
    numbers = " UNION ALL ".join((
        f"SELECT type || ' ' || status AS type, number FROM ({_RECORDS})",
        f"SELECT type, number FROM ({_ASSETS.format(where='')})",
        "SELECT 'session', s.id FROM sessions s JOIN session_state t ON t.session = s.id",
        f"SELECT 'event', event FROM ({_TOUCHED})",
    ))  # fmt: skip
    rows = db.execute(
        f"SELECT type, COUNT(*) AS rows, MAX(number) AS largest, SUM(number) AS total, 0 AS ended FROM ({numbers})"
        " GROUP BY type UNION ALL SELECT upper(type), COUNT(*), MAX(begin_event), SUM(begin_event),"
        f" COALESCE(SUM(end_event), 0) FROM ({_INTERVALS}) GROUP BY type"
    )
    return {row["type"]: Tally(row["rows"], row["largest"], row["total"], row["ended"]) for row in rows}


def size(db: Connection) -> int:
    """Return about how many rows `nodes` and `intervals` read: what is isolated counts, events do not."""
    counts = " + ".join(f"(SELECT COUNT(*) FROM {table})" for table in (*_TABLES, "records", "knowledge_assets"))
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
        *(f"SELECT 1 FROM {table} WHERE changed_event > ?" for table in (*_TABLES, "records")),
        "SELECT 1 FROM asset_versions WHERE event > ?",
    ))  # fmt: skip
    asked = [*[position] * (len(_TABLES) + 2), most + 1]
    row = db.execute(f"SELECT COUNT(*) FROM (SELECT 1 FROM ({changed}) LIMIT ?)", asked).fetchone()
    return bool(row[0] > most)


def _unhides(db: Connection, position: int) -> bool:
    """Say whether something may have become shared, or gone, that older rows tell of."""
    row = db.execute("SELECT 1 FROM events WHERE id > ? AND kind IN ('publish', 'forget') LIMIT 1", (position,))
    return row.fetchone() is not None


def _node(row: sqlite3.Row) -> Node:
    told = dict(row)
    if "text" not in told:
        packed, body = told.pop("packed"), told.pop("body")
        body = zlib.decompressobj().decompress(packed, _READ) if packed is not None else body
        told["text"] = (body or b"").decode("utf-8", "replace")  # substr() makes NULL of an empty one
    title = _title(told.pop("text"))
    return Node(**{**told, "type": NodeType(told["type"]), "title": title})


def _session(row: sessions.SessionRow) -> Node:
    return Node(
        id=str(NodeId(NodeType.SESSION, row.session_id)),
        type=NodeType.SESSION,
        number=row.number,
        project=row.project_key,
        session=row.session_id,
        title=_title(row.known_as(Viewer()) or ""),
        at=row.started_at,
        updated_at=row.last_at,
    )


def _interval(row: sqlite3.Row) -> Interval:
    told = {item.name: row[item.name] for item in fields(Interval)}
    return Interval(**{**told, "type": EdgeType(told["type"])})


def _title(text: str) -> str | None:
    """Return the first line that says something."""
    return next((line.strip()[:TITLE] for line in text.splitlines() if line.strip()), None)


def _pages(rows: Iterable[T]) -> Iterator[list[T]]:
    left = iter(rows)
    while page := list(islice(left, PAGE)):
        yield page

"""Lineage edges around one node, one hop."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final

from graphsvc.model import CAUSE_FIRST, Direction, Edge, EdgeType, NodeType
from graphsvc.store.database import Connection
from graphsvc.store.view import edge
from graphsvc.store.visibility import Viewer, clause

_NAMES: Final = tuple(item.name for item in fields(Edge))
_COLUMNS: Final = ", ".join(f"g.{name}" for name in _NAMES)
_ENDS: Final = ("end_event", "end_at")
# Where an edge stands among those of a node: ends that are events last, standing before ended, oldest first.
_PLACE: Final = (
    "g.other_type = 'event'",
    "g.end_event IS NOT NULL",
    "g.begin_event",
    "g.type",
    "g.other_type",
    # An asset is known by its first version that the viewer may see, not by what the store keeps it under.
    "CASE g.other_type WHEN 'asset'"
    " THEN (SELECT MIN(f.event) FROM asset_versions f WHERE f.asset = g.other AND {known}) ELSE g.other END",
)
Place = tuple[int, int, int, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which edges of a node: towards its causes, its results or both, of these types, behind a place."""

    direction: Direction = Direction.BOTH
    types: tuple[EdgeType, ...] = ()
    after: Place | None = None


def around(
    db: Connection,
    viewer: Viewer,
    kind: NodeType,
    number: int,
    limit: int,
    *,
    offset: int = 0,
    skip: Iterable[NodeType] = (),
) -> list[Edge]:
    """List the edges of a node whose other end the viewer may see too; `skip` names types of ends.

    Ends that are events come last, they are many; standing edges before ended ones, then the oldest first, documents
    by path: what the store keeps them under may be the number of an isolated event.
    """
    touching, values = _where(viewer, kind, number, skip)
    shown, more = _shown(viewer)
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM {touching} AND {shown}"
        " ORDER BY g.other_type = 'event', g.end_event IS NOT NULL, g.begin_event, g.type,"
        " CASE g.other_type WHEN 'asset' THEN (SELECT path FROM knowledge_assets WHERE id = g.other) END, g.other"
        " LIMIT ? OFFSET ?",
        [*values, *more, limit, offset],
    )
    return [edge(row) for row in rows]


def count(
    db: Connection, viewer: Viewer, kind: NodeType, number: int, *, skip: Iterable[NodeType] = ()
) -> tuple[int, bool]:
    """Count what `around` lists in all; and say whether there are edges whose other end the viewer may not see."""
    touching, values = _where(viewer, kind, number, skip)
    shown, more = _shown(viewer)
    row = db.execute(
        f"SELECT COUNT(*), COALESCE(SUM(shown), 0) FROM (SELECT {shown} AS shown FROM {touching})", [*more, *values]
    ).fetchone()
    return row[1], row[0] > row[1]


def beside(
    db: Connection, viewer: Viewer, kind: NodeType, numbers: Iterable[int], chosen: Filter, first: int
) -> dict[int, list[tuple[Place, Edge]]]:
    """List the first edges of each of several nodes; only those whose other end the viewer may see."""
    touching, values = _beside(viewer, kind, numbers, chosen)
    shown, more = _shown(viewer)
    known, first_version = clause(viewer, "f.event")
    columns = ", ".join(f"{column} AS place_{index}" for index, column in enumerate(_PLACE)).format(known=known)
    behind = f" WHERE ({', '.join(f'place_{index}' for index in range(len(_PLACE)))}) > (?, ?, ?, ?, ?, ?)"
    rows = db.execute(
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY own ORDER BY place_0, place_1, place_2, place_3,"
        f" place_4, place_5) AS number FROM (SELECT {_COLUMNS}, g.own, {columns} FROM {touching} AND {shown})"
        f"{behind if chosen.after else ''}) WHERE number <= ? ORDER BY own, number",
        [*first_version, *values, *more, *(chosen.after or ()), first],
    )
    found: dict[int, list[tuple[Place, Edge]]] = {}
    for row in rows:
        place = tuple(row[f"place_{index}"] for index in range(len(_PLACE)))
        found.setdefault(row["own"], []).append((place, edge(row)))
    return found


def counts_beside(
    db: Connection, viewer: Viewer, kind: NodeType, numbers: Iterable[int], chosen: Filter
) -> dict[int, tuple[int, bool]]:
    """Count what `beside` lists of each node in all; and say whether others end at what the viewer may not see."""
    touching, values = _beside(viewer, kind, numbers, chosen)
    shown, more = _shown(viewer)
    rows = db.execute(
        f"SELECT own, COUNT(*) AS edges, SUM(shown) AS shown FROM (SELECT g.own, {shown} AS shown FROM {touching})"
        " GROUP BY own",
        [*more, *values],
    )
    return {row["own"]: (row["shown"], row["edges"] > row["shown"]) for row in rows}


def _beside(viewer: Viewer, kind: NodeType, numbers: Iterable[int], chosen: Filter) -> tuple[str, list[object]]:
    """Return the edges of several nodes with their other ends, filtered by type and direction, and the parameters."""
    wanted: Sequence[EdgeType] = chosen.types or tuple(EdgeType)
    keys = json.dumps(list(numbers))
    out = [one for one in wanted if _leaves(one, chosen.direction)]
    back = [one for one in wanted if _arrives(one, chosen.direction)]
    columns, ended = _columns(viewer)
    touching = (
        f"(SELECT {columns}, e.src AS own, e.dst_type AS other_type, e.dst AS other FROM lineage_edges e"
        f" WHERE e.src_type = ? AND e.src IN (SELECT value FROM json_each(?)) AND e.type IN ({_marks(out)})"
        f" UNION ALL SELECT {columns}, e.dst, e.src_type, e.src FROM lineage_edges e"
        f" WHERE e.dst_type = ? AND e.dst IN (SELECT value FROM json_each(?)) AND e.type IN ({_marks(back)})) g"
    )
    where, values = _readable(viewer)
    return f"{touching} WHERE {where}", [*ended, kind, keys, *out, *ended, kind, keys, *back, *values]


def _leaves(kind: EdgeType, direction: Direction) -> bool:
    """Say whether edges of this type that begin at a node lead in the direction."""
    leads = Direction.DOWNSTREAM if kind in CAUSE_FIRST else Direction.UPSTREAM
    return direction in {Direction.BOTH, leads}


def _arrives(kind: EdgeType, direction: Direction) -> bool:
    leads = Direction.UPSTREAM if kind in CAUSE_FIRST else Direction.DOWNSTREAM
    return direction in {Direction.BOTH, leads}


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def leads(
    db: Connection, viewer: Viewer, start: tuple[NodeType, int], end: tuple[NodeType, int], most: int
) -> bool | None:
    """Say whether a way leads downstream from one node to another, over what stands and the viewer may see.

    None: it was not found among the first `most` nodes, and there are more.
    """
    condition, values = clause(viewer, "g.begin_event")
    shown, more = _shown(viewer)
    columns, ended = _columns(viewer)
    first = ", ".join(f"'{kind}'" for kind in sorted(CAUSE_FIRST))

    def step(way: str, near: str, far: str) -> str:
        return (
            f" UNION SELECT g.other_type, g.other FROM reached r CROSS JOIN (SELECT {columns}, e.{far}_type AS"
            f" other_type, e.{far} AS other FROM lineage_edges e) g ON g.{near}_type = r.type AND g.{near} = r.number"
            f" WHERE g.type {way} ({first}) AND g.end_event IS NULL AND {condition} AND {shown}"
        )

    row = db.execute(
        f"WITH RECURSIVE reached (type, number) AS (SELECT ?, ?{step('IN', 'src', 'dst')}"
        f"{step('NOT IN', 'dst', 'src')} LIMIT ?)"
        " SELECT COUNT(*), COALESCE(MAX(type = ? AND number = ?), 0) FROM reached",
        [*start, *ended, *values, *more, *ended, *values, *more, most, *end],
    ).fetchone()
    if row[1]:
        return True
    return None if row[0] >= most else False


def _where(viewer: Viewer, kind: NodeType, number: int, skip: Iterable[NodeType]) -> tuple[str, list[object]]:
    left_out = list(skip)
    where, values = _readable(viewer)
    columns, ended = _columns(viewer)
    touching = (
        f"(SELECT {columns}, e.dst_type AS other_type, e.dst AS other FROM lineage_edges e"
        " WHERE e.src_type = ? AND e.src = ?"
        f" UNION ALL SELECT {columns}, e.src_type, e.src FROM lineage_edges e WHERE e.dst_type = ? AND e.dst = ?) g"
    )
    return (
        f"{touching} WHERE {where} AND g.other_type NOT IN ({_marks(left_out)})",
        [*ended, kind, number, *ended, kind, number, *values, *left_out],
    )


def _columns(viewer: Viewer) -> tuple[str, list[object]]:
    """The columns of an edge, without an end that the viewer may not see: to it the edge stands."""
    seen, values = clause(viewer, "e.end_event")
    shown = [f"CASE WHEN {seen} THEN e.{name} END AS {name}" if name in _ENDS else f"e.{name}" for name in _NAMES]
    return ", ".join(shown), values * len(_ENDS)


def _readable(viewer: Viewer) -> tuple[str, list[object]]:
    """The edges that the viewer may see; those to sessions of projects that are closed to it are left out."""
    condition, values = clause(viewer, "g.begin_event")
    reach, project = viewer.reach("s.project")
    return (
        f"{condition} AND CASE"
        f" WHEN g.other_type = 'session' THEN EXISTS (SELECT 1 FROM sessions s WHERE s.id = g.other AND {reach})"
        # A host may name as basis what only moved a record.
        " WHEN g.other_type NOT IN ('asset', 'event') THEN EXISTS (SELECT 1 FROM records r WHERE r.id = g.other)"
        " ELSE 1 END",
        [*values, *project],
    )


def _shown(viewer: Viewer) -> tuple[str, list[object]]:
    """Whether the viewer may see the other end: a session always, an asset by its versions, all else by its event."""
    version, values = clause(viewer, "v.event")
    event, more = clause(viewer, "g.other")
    return (
        "CASE g.other_type WHEN 'session' THEN 1"
        f" WHEN 'asset' THEN EXISTS (SELECT 1 FROM asset_versions v WHERE v.asset = g.other AND {version})"
        f" ELSE {event} END",
        [*values, *more],
    )

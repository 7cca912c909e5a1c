"""Lineage edges around one node, one hop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from graphsvc.model import Edge, NodeType
from graphsvc.store.database import Connection
from graphsvc.store.view import edge
from graphsvc.store.visibility import Viewer, clause

_COLUMNS: Final = ", ".join(f"g.{item.name}" for item in fields(Edge))
# The edges of a node, with their other ends.
_TOUCHING: Final = (
    "(SELECT *, dst_type AS other_type, dst AS other FROM lineage_edges WHERE src_type = ? AND src = ?"
    " UNION ALL SELECT *, src_type, src FROM lineage_edges WHERE dst_type = ? AND dst = ?) g"
)


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


def _where(viewer: Viewer, kind: NodeType, number: int, skip: Iterable[NodeType]) -> tuple[str, list[object]]:
    """The visible edges of a node; those to sessions of projects that are closed to the viewer are left out."""
    condition, values = clause(viewer, "g.begin_event")
    left_out = list(skip)
    others = f"g.other_type NOT IN ({', '.join('?' * len(left_out))})"
    reach, project = viewer.reach("s.project")
    return (
        f"{_TOUCHING} WHERE {condition} AND {others} AND CASE"
        f" WHEN g.other_type = 'session' THEN EXISTS (SELECT 1 FROM sessions s WHERE s.id = g.other AND {reach})"
        # A host may name as basis what only moved a record.
        " WHEN g.other_type NOT IN ('asset', 'event') THEN EXISTS (SELECT 1 FROM records r WHERE r.id = g.other)"
        " ELSE 1 END",
        [kind, number, kind, number, *values, *left_out, *project],
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

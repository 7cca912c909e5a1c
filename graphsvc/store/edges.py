"""Lineage edges around one node, one hop."""

from __future__ import annotations

from graphsvc.model import Edge, NodeType
from graphsvc.store.database import Connection
from graphsvc.store.view import edge
from graphsvc.store.visibility import Viewer, clause


def around(db: Connection, viewer: Viewer, kind: NodeType, number: int, limit: int) -> list[Edge]:
    """List the visible edges that touch a node, standing ones first, oldest first."""
    condition, values = clause(viewer, "g.begin_event")
    rows = db.execute(
        "SELECT * FROM (SELECT * FROM lineage_edges WHERE src_type = ? AND src = ?"
        " UNION SELECT * FROM lineage_edges WHERE dst_type = ? AND dst = ?) g"
        f" WHERE {condition} ORDER BY end_event IS NOT NULL, begin_event, type, src, dst LIMIT ?",
        [kind, number, kind, number, *values, limit],
    )
    return [edge(row) for row in rows]

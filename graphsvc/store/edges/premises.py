"""What stands on a decision that no longer holds, and what decisions may disagree about: as one viewer may see it.

The rules are those of `stale_premises` and `conflicts` in `queries/insights`, which answer for what all may see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from graphsvc.model import NodeType
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer, clause, stands

CHAIN: Final = 6  # edges at most


@dataclass(frozen=True, slots=True)
class Stale:
    """An active decision or a pending todo, and the decision that it stands on, which is superseded or revoked."""

    type: NodeType
    number: int
    premise: int
    premise_status: str
    length: int  # of the shortest chain from the one to the other, in ids


@dataclass(frozen=True, slots=True)
class Conflict:
    """An asset, by the store's key, that active decisions of several sessions are about."""

    asset: int
    decisions: tuple[int, ...]
    sessions: int


def stale(db: Connection, viewer: Viewer, most: int, offset: int = 0) -> list[Stale]:
    """List what stands on a decision that no longer holds, decisions first, in order of their numbers."""
    edge, edge_values = _standing(viewer)
    old, old_values = clause(viewer, "o.id")
    one, one_values = clause(viewer, "r.id")
    asset, asset_values = clause(viewer, "v.event")
    source, source_values = clause(viewer, "g.src")
    within, project = _within(viewer, "o.project")
    seen = f"EXISTS (SELECT 1 FROM asset_versions v WHERE v.asset = g.src AND {asset})"
    # From the event that recorded the old decision to whatever leads to it. No edge of these types ends at a decision.
    rows = db.execute(
        "WITH RECURSIVE old (id, status, heir) AS MATERIALIZED ("
        " SELECT o.id, o.status, o.superseded_by FROM records o"
        f" WHERE o.type = 'decision' AND o.status IN ('superseded', 'revoked') AND {within} AND {old}),"
        " led (premise, kind, number, steps) AS ("
        " SELECT id, 'event', id, 0 FROM old UNION"
        " SELECT l.premise, g.src_type, g.src, l.steps + 1 FROM led l CROSS JOIN lineage_edges g"
        " ON g.dst_type = l.kind AND g.dst = l.number AND g.type IN ('evidence', 'references')"
        f" WHERE l.steps < {CHAIN} AND {edge}"
        f" AND CASE g.src_type WHEN 'asset' THEN {seen} ELSE {source} END),"
        " near (premise, status, kind, number, length) AS ("
        " SELECT id, status, 'decision', id, 1 FROM old UNION ALL"
        " SELECT l.premise, o.status, l.kind, l.number, MIN(l.steps) + 2 FROM led l JOIN old o ON o.id = l.premise"
        " WHERE l.kind = 'asset' OR (l.kind = 'decision' AND l.number NOT IN (o.id, COALESCE(o.heir, 0)))"
        " GROUP BY l.premise, l.kind, l.number),"
        " found (premise, status, number, length) AS ("
        " SELECT premise, status, number, length FROM near WHERE kind = 'decision' UNION ALL"
        " SELECT n.premise, n.status, g.dst, n.length + 1 FROM near n CROSS JOIN lineage_edges g"
        " ON g.src_type = n.kind AND g.src = n.number AND g.type = 'next_step' AND g.dst_type = 'todo'"
        f" WHERE {edge})"
        " SELECT r.type, r.id, f.premise, f.status, MIN(f.length) AS length"
        " FROM found f JOIN records r ON r.id = f.number"
        " WHERE (r.type, r.status) IN (VALUES ('decision', 'active'), ('todo', 'pending'))"
        f" AND {one} GROUP BY r.id, f.premise ORDER BY r.type, r.id, f.premise LIMIT ? OFFSET ?",
        [*project, *old_values, *edge_values, *asset_values, *source_values, *edge_values, *one_values, most, offset],
    )
    return [Stale(NodeType(row["type"]), row["id"], row["premise"], row["status"], row["length"]) for row in rows]


def conflicts(db: Connection, viewer: Viewer, most: int, offset: int = 0) -> list[Conflict]:
    """List the assets that active decisions of several sessions are about, those with the most decisions first."""
    edge, edge_values = _standing(viewer)
    decision, decision_values = clause(viewer, "r.id")
    asset, asset_values = clause(viewer, "v.event")
    within, project = _within(viewer, "r.project")
    rows = db.execute(
        "SELECT g.dst AS asset, COUNT(DISTINCT r.id) AS decisions, COUNT(DISTINCT r.session) AS sessions,"
        " group_concat(DISTINCT r.id) AS numbers,"
        f" (SELECT MIN(v.event) FROM asset_versions v WHERE v.asset = g.dst AND {asset}) AS first"
        " FROM records r JOIN lineage_edges g"
        " ON g.src_type = 'decision' AND g.src = r.id AND g.type = 'evidence' AND g.dst_type = 'asset'"
        f" WHERE r.type = 'decision' AND r.status = 'active' AND {within} AND {decision}"
        f" AND {edge} GROUP BY g.dst HAVING sessions > 1 AND first IS NOT NULL"
        " ORDER BY decisions DESC, first LIMIT ? OFFSET ?",
        [*asset_values, *project, *decision_values, *edge_values, most, offset],
    )
    return [Conflict(row["asset"], tuple(sorted(map(int, row["numbers"].split(",")))), row["sessions"]) for row in rows]


def _standing(viewer: Viewer) -> tuple[str, list[object]]:
    """Return whether an edge stands, and the viewer may see it."""
    begun, values = clause(viewer, "g.begin_event")
    standing, more = stands(viewer, "g")
    return f"{begun} AND {standing}", [*values, *more]


def _within(viewer: Viewer, column: str) -> tuple[str, list[object]]:
    return ("1", []) if viewer.project is None else (f"{column} = ?", [viewer.project])

"""The graph in Python's own dicts, and `lineage` over it: what a walk costs at least that asks no database.

It answers what `lineage` answers, by the same rules: who may see which edge, which end is hidden, in which order nodes
are met, how many edges each has. Only the answer is plain tuples.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from graphsvc.lineage.walk import Budget
from graphsvc.model import CAUSE_FIRST, Edge, EdgeType, NodeType, Version
from graphsvc.store import rows
from graphsvc.store.database import Connection
from graphsvc.store.edges import ends
from graphsvc.store.edges.walk import Key, Moment
from graphsvc.store.view import edge
from graphsvc.store.visibility import Viewer, unseen


class Beside(NamedTuple):
    """An edge as seen from one of its ends, in the order of an answer: causes first."""

    down: bool
    type: EdgeType
    kind: NodeType
    place: int
    other: Key
    edge: Edge


class Dicts:
    """The edges of a store that stand, for one viewer."""

    def __init__(self, db: Connection, viewer: Viewer) -> None:
        self.edges: dict[Key, list[tuple[bool, Key, Edge]]] = {}
        self._hidden = set(unseen(db, viewer))
        self._versions: dict[int, list[int]] = {}
        for row in rows.every(db, Version):
            self._versions.setdefault(row["asset"], []).append(row["event"])
        for one in map(edge, rows.every(db, Edge)):
            source, target = (one.src_type, one.src), (one.dst_type, one.dst)
            forward = one.type in CAUSE_FIRST
            self.edges.setdefault(source, []).append((forward, target, one))
            self.edges.setdefault(target, []).append((not forward, source, one))
        self.named = ends.named(db, viewer, self.edges, Moment())

    def lineage(self, root: Key, depth: int, budget: Budget) -> tuple[list[tuple[object, ...]], list[Edge]]:
        """Walk both ways; return nodes as tuples, and the edges between them."""
        order, reached, via = [root], {root: 0}, {root: root}
        beside: dict[Key, tuple[list[Beside], bool]] = {}
        waiting = deque([root])
        while waiting and len(order) <= budget.nodes:
            node = waiting.popleft()
            listed, _ = beside[node] = self._beside(node)
            for down in (False, True):
                for one in [one for one in listed if one.down is down][: budget.fanout]:
                    if one.other not in reached:
                        order.append(one.other)
                        reached[one.other], via[one.other] = reached[node] + 1, node
                        if reached[one.other] < depth:
                            waiting.append(one.other)
        index = {node: number for number, node in enumerate(order)}
        nodes: list[tuple[object, ...]] = []
        edges: list[Edge] = []
        for node in order[: budget.nodes]:
            listed, hidden = beside.get(node) or self._beside(node)
            own = index[node]
            back = [one.edge for one in listed if index.get(one.other, own) < own]
            if len(edges) + len(back) > budget.edges:
                break
            edges += back
            name = self.named[node]
            results = sum(one.down for one in listed)
            nodes.append((
                name.id, name.label, name.status, name.at, reached[node], self.named[via[node]].id,
                len(listed) - results, results, hidden,
            ))  # fmt: skip
        return nodes, edges

    def _beside(self, node: Key) -> tuple[list[Beside], bool]:
        """List the neighbours of a node that the viewer may see, in order, and say whether there are others."""
        hides, listed, hidden = self._hidden, [], False
        for down, other, one in self.edges.get(node, ()):
            if one.begin_event in hides or (one.end_event is not None and one.end_event not in hides):
                continue
            place = self._place(other)
            if place is None:
                hidden = True
            else:
                listed.append(Beside(down, one.type, other[0], place, other, one))
        listed.sort()
        return listed, hidden

    def _place(self, node: Key) -> int | None:
        """Return what a node is sorted by, None when the viewer may not see it."""
        kind, number = node
        if kind is NodeType.ASSET:
            return next((event for event in self._versions[number] if event not in self._hidden), None)
        return None if kind is not NodeType.SESSION and number in self._hidden else number

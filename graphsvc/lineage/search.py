"""The order in which a walk meets nodes: breadth first, the same each time for the same moment.

A node with many neighbours shows the first few of them in each round, so that it neither fills an answer nor costs more
than others; when nothing else is left, the next round goes on behind them. Whoever walks on starts the same walk again
and passes over what was returned: nothing is kept between two answers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from graphsvc.model import Direction, EdgeType
from graphsvc.store.edges.walk import START, Degree, Key, Mark, Neighbour, Neighbours

SIDES: Final = (Direction.UPSTREAM, Direction.DOWNSTREAM)
_FEW, _PAGE = 4, 256  # neighbours that are looked at first, and then, for one that was not met
_CHUNK: Final = 128  # nodes whose neighbours are read together
_MANY: Final = 400  # edges of a node; those of one with more are not read at once


class Search:
    """One walk. `order` holds the nodes met so far, `depth` their distance from the root on the way they were met."""

    def __init__(self, near: Neighbours, root: Key, direction: Direction, depth: int, fanout: int) -> None:
        self.order: list[Key] = [root]
        self.depth: dict[Key, int] = {root: 0}
        self.via: dict[Key, Key] = {}
        self.open: deque[tuple[Key, Direction, Mark]] = deque()  # neighbours of which only the first were met
        self._near = near
        self._sides = [side for side in SIDES if direction in {side, Direction.BOTH}]
        self._limit = depth
        self._fanout = fanout
        self._queue: deque[Key] = deque([root] if depth else [])
        self._degrees: dict[Key, Degree] = {}
        self._beside: dict[Key, list[Neighbour]] = {}

    def grow(self, count: int, until: float = float("inf")) -> bool:
        """Meet more than `count` nodes, in as many rounds as that needs; return whether it was done in time."""
        while len(self.order) <= count:
            if time.monotonic() > until:
                return False
            if self._queue:
                self._expand()
            elif self.open:
                self._round()
            else:
                return True
        return True

    def drain(self, count: int, until: float) -> bool:
        """Meet what is left of this round, up to more than `count` nodes; return whether that was done in time."""
        while self._queue and len(self.order) <= count:
            if time.monotonic() > until:
                return False
            self._expand()
        return True

    @property
    def waiting(self) -> Sequence[Key]:
        """The nodes whose neighbours were not all met."""
        return list(dict.fromkeys([*self._queue, *(node for node, _, _ in self.open)]))

    def last(self) -> list[Key]:
        """List the nodes at the greatest depth that was asked for, which were not walked through."""
        return [node for node in self.order if self.depth[node] == self._limit]

    def degrees(self, nodes: Sequence[Key]) -> dict[Key, Degree]:
        """Count the edges of nodes."""
        self.read(nodes)
        return {node: self._degrees[node] for node in nodes}

    def read(self, nodes: Sequence[Key]) -> None:
        """Read the neighbours of nodes; of those with very many only how many they are."""
        missing = [node for node in nodes if node not in self._degrees]
        if not missing:
            return
        for node, around in self._near.around(self._near.few(missing, _MANY)).items():
            self._beside[node], self._degrees[node] = around.neighbours, around.degree
        many = [node for node in missing if node not in self._degrees]
        if many:
            found = self._near.degrees(many)
            self._degrees.update({node: found.get(node, Degree()) for node in many})

    def back(self, node: Key, index: dict[Key, int]) -> list[Neighbour]:
        """List the edges of a node to nodes that were met before it."""
        own = index[node]
        listed = self._beside.get(node)
        if listed is None:
            listed = self._near.between(node, [one for one in self.order[:own] if one != node])
        return [one for one in listed if index.get(one.other, own) < own]

    def beyond(self, node: Key) -> bool:
        """Say whether a node has neighbours in the direction of the walk that were not met."""
        self.read([node])
        listed = self._beside.get(node)
        if listed is not None:
            return any(one.other not in self.depth for one in listed if one.side in self._sides)
        degree = self._degrees[node]
        edges = {Direction.UPSTREAM: degree.upstream, Direction.DOWNSTREAM: degree.downstream}
        if any(edges[side] > len(EdgeType) * len(self.depth) for side in self._sides):
            return True  # more than all that were met could have
        return any(one.other not in self.depth for side in self._sides for one in self._all(node, side))

    def _expand(self) -> None:
        chunk = [self._queue.popleft() for _ in range(min(_CHUNK, len(self._queue)))]
        self.read(chunk)
        for node in chunk:
            for side in self._sides:
                self._meet(node, side, START)

    def _round(self) -> None:
        for _ in range(len(self.open)):
            self._meet(*self.open.popleft())

    def _meet(self, node: Key, side: Direction, mark: Mark) -> None:
        """Meet the next neighbours of a node on one side, behind a mark."""
        listed = self._beside.get(node)
        if listed is not None:
            down = side is Direction.DOWNSTREAM
            behind = [one for one in listed if one.down is down and (mark is START or one.mark > mark)]
        else:
            behind = self._near.behind(node, side, mark, self._fanout + 1, self._degrees[node].types)
        depth = self.depth[node] + 1
        for one in behind[: self._fanout]:
            known = self.depth.get(one.other)
            if known is None:
                self.order.append(one.other)
                self.via[one.other] = node
            if known is None or depth < known:
                # A shorter way may be found in a later round: what lies behind is then nearer, too.
                self.depth[one.other] = depth
                if depth < self._limit:
                    self._queue.append(one.other)
        if len(behind) > self._fanout:
            self.open.append((node, side, behind[self._fanout - 1].mark))

    def _all(self, node: Key, side: Direction) -> Iterator[Neighbour]:
        mark, most = START, _FEW
        while listed := self._near.behind(node, side, mark, most, self._degrees[node].types):
            yield from listed
            mark, most = listed[-1].mark, min(4 * most, _PAGE)

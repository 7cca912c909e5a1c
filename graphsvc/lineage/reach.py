"""Which nodes are reached at all, and how far away they are: breadth first over other ends alone, no edge is read.

`impact` counts them whole and lists them in pages, `path` meets in the middle.
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from strawberry import ID

from graphsvc.envelope import DateTime, Long
from graphsvc.errors import InvalidInput
from graphsvc.lineage.answer import Freshness, Impact, PathMode, PathSet, Reached, TypeCount
from graphsvc.lineage.walk import MAX_DEPTH, begin, digest, link
from graphsvc.model import Direction, NodeType
from graphsvc.store import events
from graphsvc.store.database import Connection, snapshot
from graphsvc.store.edges import ends
from graphsvc.store.edges.ends import End
from graphsvc.store.edges.walk import Filter, Key, Neighbour, Neighbours
from graphsvc.store.visibility import Viewer

MOST: Final = 20_000  # nodes that one answer looks at
DEADLINE_S: Final = 2.0
PAGE: Final = 50
MAX_PAGE: Final = 100
LENGTH: Final = 12
MAX_LENGTH: Final = 1_000
SUBGRAPH: Final = 500  # nodes of a subgraph that are answered
_CHUNK: Final = 512
_FEW: Final = 256  # edges of a node up to which all are read
_BACK: Final = {Direction.UPSTREAM: Direction.DOWNSTREAM, Direction.DOWNSTREAM: Direction.UPSTREAM}


@dataclass(slots=True)
class Reach:
    """What was reached so far, in order, and from where."""

    depth: dict[Key, int]
    via: dict[Key, Key] = field(default_factory=dict)
    edge: list[Key] = field(default_factory=list)  # the nodes to go on from
    whole: bool = True

    def step(self, near: Neighbours, direction: Direction, until: float) -> None:
        """Reach the nodes behind the outermost ones; say so when there are too many, or there is no time."""
        outermost, self.edge = self.edge, []
        for start in range(0, len(outermost), _CHUNK):
            if len(self.depth) > MOST or time.monotonic() > until:
                self.whole = False
                return
            chunk = outermost[start : start + _CHUNK]
            found = near.others(chunk, direction)
            for node in chunk:
                for other in found.get(node, ()):
                    if other not in self.depth:
                        self.depth[other] = self.depth[node] + 1
                        self.via[other] = node
                        self.edge.append(other)


def reach(near: Neighbours, root: Key, direction: Direction, depth: int, until: float) -> Reach:
    """Reach everything that is at most so many edges away, as far as bounds allow."""
    found = Reach({root: 0}, edge=[root])
    for _ in range(depth):
        if not found.edge:
            break
        found.step(near, direction, until)
    return found


def impact(
    db: Connection,
    viewer: Viewer,
    root: Key,
    *,
    direction: Direction = Direction.DOWNSTREAM,
    depth: int = MAX_DEPTH,
    chosen: Filter,
    as_of: str | None = None,
    types: Sequence[NodeType] = (),
    first: int = PAGE,
    after: str | None = None,
) -> Impact:
    """Count what is reached from a node that the viewer may see, and list a page of it; raise InvalidInput."""
    begun = time.monotonic()
    if not 0 <= depth <= MAX_DEPTH:
        raise InvalidInput("depth", f"{depth} is out of range", f"0 to {MAX_DEPTH}")
    if not 0 <= first <= MAX_PAGE:
        raise InvalidInput("first", f"{first} is out of range", f"0 to {MAX_PAGE}")
    with snapshot(db):
        name = digest(db, viewer, root, direction, depth, chosen.edges, chosen.nodes, chosen.stated, as_of, types)
        position, passed = _cursor(db, name, after)
        near, then, newest = begin(db, viewer, root, chosen, as_of, position)
        stands = newest if position is None else position
        found = reach(near, root, direction, depth, begun + DEADLINE_S)
        counted = Counter(kind for kind, _ in found.depth)
        counted[root[0]] -= 1
        far = Counter(found.depth.values())
        listed = [node for node in found.depth if node != root and (not types or node[0] in types)]
        page = listed[passed : passed + first]
        known = ends.named(db, viewer, [root, *page], then)
        more = len(listed) > passed + first
        return Impact(
            root=ID(known[root].id),
            direction=direction,
            total=Long(len(found.depth) - 1),
            partial=not found.whole,
            by_type=[TypeCount(type=kind, count=Long(counted[kind])) for kind in NodeType if counted[kind]],
            by_depth=[Long(far[distance]) for distance in sorted(far) if distance],
            nodes=[_reached(known[node], node, found.depth[node]) for node in page],
            end_cursor=_written(stands, passed + first, name) if more and first else None,
            freshness=_fresh(newest, stands, as_of, begun),
        )


def path(
    db: Connection,
    viewer: Viewer,
    root: Key,
    target: Key,
    *,
    mode: PathMode = PathMode.SHORTEST,
    direction: Direction = Direction.BOTH,
    length: int = LENGTH,
    chosen: Filter,
    as_of: str | None = None,
) -> PathSet:
    """Find the shortest way from one node to another, or all that lies on ways of at most a length.

    In both directions a way may turn back, so what hangs on a short way is in the subgraph too.
    """
    begun = time.monotonic()
    if not 1 <= length <= MAX_LENGTH:
        raise InvalidInput("max_length", f"{length} is out of range", f"1 to {MAX_LENGTH}")
    with snapshot(db):
        near, then, newest = begin(db, viewer, root, chosen, as_of, None, target)
        here, there = _meet(near, root, target, direction, length, mode, begun + DEADLINE_S)
        both = {node: here.depth[node] + there.depth[node] for node in here.depth if node in there.depth}
        shortest = min((far for far in both.values() if far <= length), default=None)
        whole = here.whole and there.whole
        nodes: list[Key] = []
        if shortest is not None and mode is PathMode.SHORTEST:
            nodes = _way(here, there, next(node for node, far in both.items() if far == shortest))
        elif shortest is not None:
            nodes = sorted((node for node, far in both.items() if far <= length), key=lambda node: here.depth[node])
            whole, nodes = whole and len(nodes) <= SUBGRAPH, nodes[:SUBGRAPH]
        known = ends.named(db, viewer, nodes, then)
        steps = {node: number for number, node in enumerate(nodes)} if mode is PathMode.SHORTEST else here.depth
        edges = [
            one
            for node, listed in _beside(near, nodes).items()
            for one in listed
            if one.other in known and direction in {one.side, Direction.BOTH}
            and _leads(mode, node, one.other, steps, there.depth, length)
        ]  # fmt: skip
        unique = {(one.type, one.ends): one for one in edges}
        return PathSet(
            mode=mode,
            length=shortest,
            nodes=[_reached(known[node], node, steps[node]) for node in nodes],
            edges=[link(one, known) for one in unique.values()],
            partial=not whole,
            freshness=_fresh(newest, newest, as_of, begun),
        )


def _beside(near: Neighbours, nodes: Sequence[Key]) -> dict[Key, list[Neighbour]]:
    """Read the edges between nodes: of those with few all at once, of the others one by one."""
    few = near.around(near.few(nodes, _FEW))
    others = {node: near.between(node, [one for one in nodes if one != node]) for node in set(nodes) - few.keys()}
    return {**{node: around.neighbours for node, around in few.items()}, **others}


def _leads(mode: PathMode, node: Key, other: Key, near: Mapping[Key, int], far: Mapping[Key, int], length: int) -> bool:
    """Say whether a step from one node to another is on a way that is asked for."""
    if mode is PathMode.SHORTEST:
        return near[other] == near[node] + 1
    return near[node] + 1 + far[other] <= length


def _meet(
    near: Neighbours, root: Key, target: Key, direction: Direction, length: int, mode: PathMode, until: float
) -> tuple[Reach, Reach]:
    """Reach from both ends, the smaller side first, until they meet; for a subgraph as far as it goes."""
    here, there = Reach({root: 0}, edge=[root]), Reach({target: 0}, edge=[target])
    back = _BACK.get(direction, direction)
    for one, way in ((here, direction), (there, back)) if mode is PathMode.SUBGRAPH else ():
        for _ in range(length):
            one.step(near, way, until)
    taken = 0
    while mode is PathMode.SHORTEST and taken < length and not here.depth.keys() & there.depth.keys():
        if not (here.edge and there.edge and here.whole and there.whole):
            break
        one, way = (here, direction) if len(here.edge) <= len(there.edge) else (there, back)
        one.step(near, way, until)
        taken += 1
    return here, there


def _way(here: Reach, there: Reach, middle: Key) -> list[Key]:
    nodes = [middle]
    while nodes[0] in here.via:
        nodes.insert(0, here.via[nodes[0]])
    while nodes[-1] in there.via:
        nodes.append(there.via[nodes[-1]])
    return nodes


def _reached(end: End, node: Key, depth: int) -> Reached:
    return Reached(id=ID(end.id), type=node[0], label=end.label, status=end.status, at=DateTime(end.at), depth=depth)


def _fresh(newest: int, position: int, as_of: str | None, begun: float) -> Freshness:
    elapsed = round(1000 * (time.monotonic() - begun), 3)
    return Freshness(engine="sqlite", ledger=Long(newest), graph=Long(position), as_of=as_of, elapsed_ms=elapsed)


def _written(position: int, passed: int, name: str) -> str:
    return base64.urlsafe_b64encode(f"{position}.{passed}.{name}".encode()).decode().rstrip("=")


def _cursor(db: Connection, name: str, after: str | None) -> tuple[int | None, int]:
    """Read `after`; raise InvalidInput when it is of another question, or when other things may be seen since."""
    if after is None:
        return None, 0
    allowed = "the end_cursor of an answer to the same question, asked as the same viewer"
    try:
        numbers, _, of = base64.urlsafe_b64decode(f"{after}==").decode().rpartition(".")
        position, passed = (int(one) for one in numbers.split("."))
    except ValueError:
        raise InvalidInput("after", "is none", allowed) from None
    if of != name or not 0 <= position <= events.position(db) or passed < 0:
        raise InvalidInput("after", "is of another question", allowed)
    if events.shown_since(db, position):
        raise InvalidInput("after", "what may be seen has changed since", "the same question without after")
    return position, passed

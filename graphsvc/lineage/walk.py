"""`lineage`: the part of the graph around a node, bounded, and going on where it stopped.

An answer that says nothing of truncation holds everything that the viewer may see. The orders and the bounds are in
`search`; what is asked for, and what is told, is here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from strawberry import ID

from graphsvc import clock
from graphsvc.envelope import DateTime, Long
from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.lineage.answer import Freshness, Lineage, Link, Reason, Truncation, Vertex
from graphsvc.lineage.cycles import strongly_connected
from graphsvc.lineage.search import Search
from graphsvc.model import Direction
from graphsvc.store import events
from graphsvc.store.database import Connection, snapshot
from graphsvc.store.edges import ends
from graphsvc.store.edges.ends import End
from graphsvc.store.edges.walk import Filter, Key, Moment, Neighbour, Neighbours, changed_behind
from graphsvc.store.visibility import Viewer

DEPTH: Final = 2
MAX_DEPTH: Final = 10_000
MAX_WALKED: Final = 50_000  # nodes behind which a walk does not go on: narrower questions do
FRONTIER: Final = 20  # ids of it that an answer tells
_CHUNK: Final = 32  # nodes whose neighbours are read together: there may be room for a few more only
_EVENT: Final = re.compile(r"event-([0-9]{1,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much one answer may hold and take."""

    nodes: int = 200
    edges: int = 600
    fanout: int = 25  # neighbours of a node on one side, in each round
    deadline_ms: int = 800


HARD: Final = Budget(nodes=2_000, edges=6_000, fanout=200, deadline_ms=4_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A walk: from where, to where, how far, over which edges, as things stood when, and how much of it."""

    direction: Direction = Direction.BOTH
    depth: int = DEPTH
    chosen: Filter = field(default_factory=Filter)
    as_of: str | None = None
    budget: Budget = field(default_factory=Budget)
    resume: str | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an answer stopped: at this ledger position, behind so many nodes, and so many edges of the last of them."""

    position: int
    nodes: int = 0
    edges: int = 0


def moment(db: Connection, as_of: str | None, field: str = "as_of") -> Moment:
    """Read a moment: the id of an event, a ledger position, or a time; raise InvalidInput for anything else."""
    if as_of is None:
        return Moment()
    numbered = _EVENT.fullmatch(as_of) or re.fullmatch(r"([0-9]{1,18})", as_of)
    if numbered:
        newest = events.position(db)
        if not 0 <= int(numbered[1]) <= newest:
            raise InvalidInput(field, f"{as_of} is not in the ledger", f"event-1 to event-{newest}, or a time")
        return Moment(position=int(numbered[1]))
    return Moment(at=clock.bound(field, as_of, end=True))


def begin(
    db: Connection, viewer: Viewer, root: Key, chosen: Filter, as_of: str | None, position: int | None, *others: Key
) -> tuple[Neighbours, Moment, int]:
    """Return what to walk with, the moment that is told of, and the newest position of the ledger.

    What came behind `position` is left out, so that the pages of a walk fit together. Raise NotFoundError when the
    root, or one of the others, was not there at the moment.
    """
    newest = events.position(db)
    then = told = moment(db, as_of)
    if position is not None and position < newest:
        told = Moment(position=position if then.position is None else min(position, then.position), at=then.at)
        then = told if changed_behind(db, position) else then
    for node in (root, *others):
        if not ends.there(db, viewer, node, told):
            raise NotFoundError(f"{node[0]} at {as_of}", "ask without as_of")
    return Neighbours(db, viewer, root, chosen, then), told, newest


def lineage(db: Connection, viewer: Viewer, root: Key, asked: Asked) -> Lineage:
    """Walk from a node that the viewer may see; raise InvalidInput, or NotFoundError when it was not there then."""
    begun = time.monotonic()
    _check(asked)
    with snapshot(db):
        name = _digest(db, viewer, root, asked)
        place = _resumed(db, name, asked.resume) if asked.resume is not None else _Place(events.position(db))
        near, then, newest = begin(db, viewer, root, asked.chosen, asked.as_of, place.position)
        search = Search(near, root, asked.direction, asked.depth, asked.budget.fanout)
        page = _page(search, asked.budget, place)
        known = ends.named(db, viewer, page.needed(search), then)
        freshness = Freshness(
            engine="sqlite",
            ledger=Long(newest),
            graph=Long(place.position),
            as_of=asked.as_of,
            elapsed_ms=round(1000 * (time.monotonic() - begun), 3),
        )
        return _answer(search, page, known, asked, name, root, freshness)


@dataclass(slots=True)
class _Page:
    """What one answer holds: nodes, the edges of each to those before it, and where the next one goes on."""

    nodes: list[Key] = field(default_factory=list)
    edges: list[Neighbour] = field(default_factory=list)
    reasons: dict[Reason, None] = field(default_factory=dict)
    next: _Place | None = None
    waiting: list[Key] = field(default_factory=list)

    def needed(self, search: Search) -> list[Key]:
        """List the nodes that the answer names."""
        ends = (node for one in self.edges for node in (one.near, one.other))
        ways = (search.via[node] for node in self.nodes if node in search.via)
        return list(dict.fromkeys([search.order[0], *self.nodes, *ends, *ways, *self.waiting]))


def _page(search: Search, budget: Budget, place: _Place) -> _Page:
    page = _Page()
    # The node whose edges did not all fit was returned; it is passed over, and its other edges come first.
    first = place.nodes - 1 if place.edges else place.nodes
    search.grow(first)
    until = time.monotonic() + budget.deadline_ms / 1000  # to pass over what was returned takes what it takes
    in_time = search.grow(place.nodes, until) and search.drain(place.nodes + budget.nodes, until)
    chosen = search.order[first : place.nodes + budget.nodes]
    index = {node: number for number, node in enumerate(search.order)}
    reached, skipped = place.nodes, place.edges
    for number, node in enumerate(chosen):
        if number % _CHUNK == 0:
            search.read(chosen[number : number + _CHUNK])
        back = search.back(node, index)[skipped:]
        room = budget.edges - len(page.edges)
        if len(back) > room and (page.nodes or page.edges):
            page.reasons[Reason.EDGES] = None
            break
        if not skipped:
            page.nodes.append(node)
            reached = index[node] + 1
        page.edges += back[:room]
        if len(back) > room:
            page.reasons[Reason.EDGES] = None
            page.next = _Place(place.position, reached, skipped + room)
            break
        skipped = 0
    if not in_time:
        page.reasons[Reason.DEADLINE] = None
    if search.open:
        page.reasons[Reason.FANOUT] = None
    if len(search.order) > reached and Reason.EDGES not in page.reasons:
        page.reasons[Reason.NODES] = None
    moved = page.nodes or page.edges  # else the same again would end at the same place
    # Whoever walks on walks all of it again, so there is an end to that.
    if page.next is None and moved and reached <= MAX_WALKED and (search.waiting or len(search.order) > reached):
        page.next = _Place(place.position, reached)
    if len(search.order) > MAX_WALKED and page.next is None and search.waiting:
        page.reasons[Reason.NODES] = None
    page.waiting = list(search.waiting)[:FRONTIER] or _beyond(search, until, page)
    return page


def _beyond(search: Search, until: float, page: _Page) -> list[Key]:
    """List the first nodes at the greatest depth that have more behind them; note when that could not be told."""
    found: list[Key] = []
    last = search.last()
    for number, node in enumerate(last):
        if time.monotonic() > until:
            page.reasons[Reason.DEADLINE] = None
            break
        if number % _CHUNK == 0:
            search.read(last[number : number + _CHUNK])
        if search.beyond(node):
            page.reasons[Reason.DEPTH] = None
            found.append(node)
            if len(found) == FRONTIER:
                break
    return found


def _answer(
    search: Search,
    page: _Page,
    known: Mapping[Key, End],
    asked: Asked,
    name: str,
    root: Key,
    freshness: Freshness,
) -> Lineage:
    degrees = search.degrees(page.nodes)
    after = _results(page.edges)
    cycles = list(strongly_connected(after, [node for node in search.order if node in after]))
    turning = {node for cycle in cycles for node in cycle}
    return Lineage(
        root=ID(known[root].id),
        direction=asked.direction,
        nodes=[
            Vertex(
                id=ID(known[node].id),
                type=node[0],
                label=known[node].label,
                status=known[node].status,
                at=DateTime(known[node].at),
                depth=search.depth[node],
                via=ID(known[search.via[node]].id) if node in search.via else None,
                upstream_total=Long(degrees[node].upstream),
                downstream_total=Long(degrees[node].downstream),
                hidden=degrees[node].hidden,
                on_cycle=node in turning,
            )
            for node in page.nodes
        ],
        edges=[link(one, known) for one in page.edges],
        cycles=[[ID(known[node].id) for node in cycle] for cycle in cycles],
        truncation=Truncation(
            reasons=[*page.reasons],
            depth=max((search.depth[node] for node in page.nodes), default=0),
            seen=Long(len(search.order)),
            frontier=[ID(known[node].id) for node in page.waiting],
            resume=_written(page.next, name) if page.next is not None else None,
        ),
        freshness=freshness,
    )


def link(one: Neighbour, known: Mapping[Key, End]) -> Link:
    """Return an edge as it is answered."""
    source, target = one.ends
    rule, confidence, begin_at, end_event, end_at = one.about[-5:]
    return Link(
        type=one.type,
        source=ID(known[source].id),
        target=ID(known[target].id),
        rule=rule,
        confidence=confidence,
        begin_event=Long(one.begin_event),
        begin_at=DateTime(begin_at),
        end_event=Long(end_event) if end_event is not None else None,
        end_at=DateTime(end_at) if end_at is not None else None,
    )


def _results(edges: Sequence[Neighbour]) -> dict[Key, list[Key]]:
    """Return what comes of each node, from cause to result."""
    after: dict[Key, list[Key]] = {}
    for one in edges:
        cause, result = one.ways
        after.setdefault(cause, []).append(result)
    return after


def _check(asked: Asked) -> None:
    if not 0 <= asked.depth <= MAX_DEPTH:
        raise InvalidInput("depth", f"{asked.depth} is out of range", f"0 to {MAX_DEPTH}")
    for name in ("nodes", "edges", "fanout", "deadline_ms"):
        if not 1 <= getattr(asked.budget, name) <= getattr(HARD, name):
            shown = name if name in {"fanout", "deadline_ms"} else f"max_{name}"
            raise InvalidInput(shown, f"{getattr(asked.budget, name)} is out of range", f"1 to {getattr(HARD, name)}")


def digest(db: Connection, viewer: Viewer, root: Key, *about: object) -> str:
    """Name a question by all that the order of its answer depends on.

    The root goes by the id that the viewer knows: what the store keeps it under may be the number of an isolated event.
    """
    asker = [viewer.session, viewer.project, viewer.everywhere]
    names = [end.id for end in ends.named(db, viewer, [root], Moment()).values()]
    return hashlib.sha256(json.dumps([asker, names, *about]).encode()).hexdigest()[:12]


def _digest(db: Connection, viewer: Viewer, root: Key, asked: Asked) -> str:
    chosen = asked.chosen
    about = asked.direction, asked.depth, chosen.edges, chosen.nodes, chosen.stated, asked.as_of, asked.budget.fanout
    return digest(db, viewer, root, *about)


def _written(place: _Place, name: str) -> str:
    text = f"{name}.{place.position}.{place.nodes}.{place.edges}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _resumed(db: Connection, name: str, resume: str) -> _Place:
    """Read `resume`; raise InvalidInput when it is not of this question, or other things may be seen since."""
    allowed = "the resume of an answer to the same question, asked as the same viewer"
    try:
        text = base64.urlsafe_b64decode(f"{resume}==").decode()
        of, *numbers = text.split(".")
        place = _Place(*(int(one) for one in numbers))
    except (ValueError, TypeError):
        raise InvalidInput("resume", "is none", allowed) from None
    known = 0 <= place.position <= events.position(db) and 0 < place.nodes <= MAX_WALKED and place.edges >= 0
    if of != name or not known:
        raise InvalidInput("resume", "is of another walk", allowed)
    if events.shown_since(db, place.position):
        raise InvalidInput("resume", "what may be seen has changed since", "the same question without resume")
    return place

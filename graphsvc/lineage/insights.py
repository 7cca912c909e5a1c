"""Questions about the whole graph, one file each in `queries/insights`, as Kuzu answers them.

What is asked is what all may see: nothing of an isolated event is in the graph that answers. An answer is one of the
state of the ledger when it was asked, or later, or there is none and it says why.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from graphsvc import resources
from graphsvc.graph.mirror import WAIT_S, Mirror, Rows, Unanswered
from graphsvc.lineage.answer import Freshness
from graphsvc.model import Direction, NodeType
from graphsvc.store import events
from graphsvc.store.database import Connection

ANSWER_S: Final = 2.5  # for Kuzu, each time it is asked
MOST_EDGES: Final = 500_000  # that are read to find parts of the graph
MOST_EVIDENCE: Final = 50  # ids of a row
_LOOK_S: Final = 0.2  # between two looks at a mirror that is waited for
_TRIES: Final = 3  # at an answer of several questions, while the graph goes on between them


class InsightName(StrEnum):
    """What can be asked; each is the name of a file in `queries/insights`."""

    STALE_PREMISES = "stale_premises"
    CONFLICTS = "conflicts"
    ORPHANS = "orphans"
    HUBS = "hubs"
    ISLANDS = "islands"
    CLOSURE_IMPACT = "closure_impact"
    GOALS_WITHOUT_PROGRESS = "goals_without_progress"
    DECISIONS_NEVER_FOLLOWED = "decisions_never_followed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an insight is asked for. Which of these one takes stands in the catalogue, except for the last two."""

    node: str = ""  # an id as all see it
    since: str = ""  # UTC, as the ledger writes it
    type: str = ""  # of the nodes
    side: str = Direction.BOTH  # which edges count
    project: str = ""  # its key; empty: all
    first: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A node that an insight found. Of the `total` ids that prove it, `evidence` has the first ones."""

    id: str
    type: NodeType
    label: str
    status: str | None
    says: str  # what was found about it, in one sentence
    evidence: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A page of rows; `counts` has all of them by type, of the insights that know it."""

    rows: tuple[Row, ...]
    more: bool
    counts: Mapping[str, int] | None = None
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class Insight:
    """An entry of the catalogue: the arguments that it takes, and the sentence that its columns are put into."""

    name: InsightName
    says: str
    takes: tuple[str, ...] = ()
    types: tuple[NodeType, ...] = ()  # of what `type` may be
    needs: tuple[str, ...] = ()

    @property
    def titles(self) -> tuple[str, str]:
        """The question in English and in Chinese: the first two lines of its file."""
        english, chinese = resources.text(f"queries/insights/{self.name}.cypher").splitlines()[:2]
        return english.removeprefix("// "), chinese.removeprefix("// ")


_CONNECTED: Final = (NodeType.GOAL, NodeType.DECISION, NodeType.TODO, NodeType.ASSET)
CATALOGUE: Final = {
    insight.name: insight
    for insight in (
        Insight(InsightName.STALE_PREMISES, "stands on {premise}, which is {premise_status}"),
        Insight(InsightName.CONFLICTS, "active decisions about it: {total}, of sessions: {sessions}"),
        Insight(
            InsightName.ORPHANS,
            "no edge stands; nodes that it was connected to: {ended}",
            takes=("type",),
            types=_CONNECTED,
        ),
        Insight(
            InsightName.HUBS,
            "edges towards causes: {upstream}, towards results: {downstream}",
            takes=("type", "side"),
            types=tuple(NodeType),
        ),
        Insight(InsightName.ISLANDS, "the oldest of a part of its own; nodes in it: {total}"),
        Insight(
            InsightName.CLOSURE_IMPACT,
            "steps downstream: {steps}, the last one from {via}",
            takes=("node",),
            needs=("node",),
        ),
        Insight(
            InsightName.GOALS_WITHOUT_PROGRESS,
            "nothing was done about it; its pending todos: {pending}",
            takes=("since",),
        ),
        Insight(InsightName.DECISIONS_NEVER_FOLLOWED, "nothing came of it since {at}"),
    )
}


def ask(
    db: Connection, mirror: Mirror, name: InsightName, asked: Asked, *, wait_s: float = WAIT_S
) -> Found | Unanswered:
    """Answer from the mirror as soon as it has reached what the store holds now, or say why there is no answer."""
    begun = time.monotonic()
    ledger = events.position(db)
    for _ in range(_TRIES):
        asking = _Asking(mirror, ledger, begun + wait_s)
        try:
            listed, counts = _READERS.get(name, _read)(asking, name, asked)
        except _Missing as missing:
            return missing.why
        if len(asking.positions) == 1:
            elapsed = (time.monotonic() - begun) * 1000
            [position] = asking.positions
            rows = tuple(_row(one, CATALOGUE[name]) for one in listed[: asked.first])
            fresh = Freshness(engine="kuzu", ledger=ledger, graph=position, elapsed_ms=elapsed)
            return Found(rows=rows, more=len(listed) > asked.first, counts=counts, freshness=fresh)
    return Unanswered("behind", "the graph went on while it was read")


class _Missing(Exception):  # a state, not an error of anyone
    """There is no answer."""

    def __init__(self, why: Unanswered) -> None:
        super().__init__(why.why)
        self.why = why


@dataclass(slots=True)
class _Asking:
    """Asks the mirror what one answer needs; `positions` are those that it was answered at."""

    mirror: Mirror
    ledger: int
    until: float  # when the mirror must have reached the ledger, by the monotonic clock
    positions: set[int] = field(default_factory=set)

    def ask(self, name: str, **parameters: object) -> list[dict[str, Any]]:
        while True:
            wait_s = min(_LOOK_S, max(0.0, self.until - time.monotonic()))
            found = self.mirror.ask(name, parameters, after=self.ledger, wait_s=wait_s, seconds=ANSWER_S)
            if isinstance(found, Rows):
                self.positions.add(found.position)
                return found.rows
            if found.state not in {"building", "behind"} or time.monotonic() >= self.until:
                raise _Missing(found)

    def edges(self, name: str, project: str) -> list[tuple[str, str]]:
        """Return the edges that the shares of a question hold."""
        shares = self.ask(name, project=project, most=MOST_EDGES + 1)
        edges = [(source, target) for share in shares for source, target in share["edges"]]
        if len(edges) > MOST_EDGES:
            raise _Missing(Unanswered("large", f"more than {MOST_EDGES} edges stand"))
        return edges

    def nodes(self, ids: Sequence[str], project: str) -> dict[str, dict[str, Any]]:
        return {one["id"]: one for one in self.ask("nodes", ids=[*ids], project=project)} if ids else {}


Listed = tuple[Sequence[Mapping[str, Any]], Mapping[str, int] | None]
Reader = Callable[[_Asking, InsightName, Asked], Listed]


def _read(asking: _Asking, name: InsightName, asked: Asked) -> Listed:
    """Return a page and one row more, as Kuzu answers it."""
    told = {one: getattr(asked, one) for one in ("project", "offset", *CATALOGUE[name].takes)}
    return asking.ask(name, **told, first=asked.first + 1), None


def _hubs(asking: _Asking, name: InsightName, asked: Asked) -> Listed:
    listed, _ = _read(asking, name, asked)
    if not listed:
        return [], None
    ids = [one["id"] for one in listed]
    ends = {one["id"]: one for one in asking.ask("hub_ends", ids=ids, side=asked.side, project=asked.project)}
    return [{**one, **ends[one["id"]]} for one in listed if one["id"] in ends], None


def _islands(asking: _Asking, name: InsightName, asked: Asked) -> Listed:
    parts = sorted(_parts(asking.edges(name, asked.project)), key=lambda part: (-len(part), _age(part[0])))[1:]
    shown = parts[asked.offset : asked.offset + asked.first + 1]
    known = asking.nodes([part[0] for part in shown], asked.project)
    rows = [{**known[part[0]], "evidence": part, "total": len(part)} for part in shown if part[0] in known]
    return rows, Counter(one.partition("-")[0] for part in parts for one in part)


def _closure(asking: _Asking, name: InsightName, asked: Asked) -> Listed:
    reached = _downstream(asking.edges(name, asked.project), asked.node)
    shown = list(reached.items())[asked.offset : asked.offset + asked.first + 1]
    known = asking.nodes([one for one, _ in shown], asked.project)
    rows = [
        {**known[one], "steps": steps, "via": via, "evidence": [via], "total": 1}
        for one, (steps, via) in shown
        if one in known
    ]
    return rows, Counter(one.partition("-")[0] for one in reached)


_READERS: Final[dict[InsightName, Reader]] = {
    InsightName.HUBS: _hubs,
    InsightName.ISLANDS: _islands,
    InsightName.CLOSURE_IMPACT: _closure,
}


def _parts(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the parts that edges connect, each from its oldest node to its newest."""
    above: dict[str, str] = {}

    def top(node: str) -> str:
        above.setdefault(node, node)
        while above[node] != node:
            above[node] = above[above[node]]  # halves the way for the next one
            node = above[node]
        return node

    for source, target in edges:
        above[top(source)] = top(target)
    parts: dict[str, list[str]] = {}
    for node in sorted(above, key=_age):
        parts.setdefault(top(node), []).append(node)
    return list(parts.values())


def _downstream(edges: Iterable[tuple[str, str]], root: str) -> dict[str, tuple[int, str]]:
    """Return what comes of a node, the nearest first, with the steps to it and the node before it."""
    after: dict[str, list[str]] = {}
    for cause, result in edges:
        after.setdefault(cause, []).append(result)
    reached: dict[str, tuple[int, str]] = {}
    steps, here = 0, [root]
    while here:
        steps += 1
        met: dict[str, str] = {}
        for one in here:
            met |= {other: one for other in after.get(one, ()) if other not in reached and other not in met}
        met.pop(root, None)
        here = sorted(met, key=_age)
        reached |= {one: (steps, met[one]) for one in here}
    return reached


def _age(name: str) -> tuple[int, str]:
    """Order ids by their numbers; sessions, which have none, come last."""
    kind, _, number = name.partition("-")
    return (int(number), kind) if kind != NodeType.SESSION else (2**63, name)


def _row(one: Mapping[str, Any], insight: Insight) -> Row:
    return Row(
        id=one["id"],
        type=NodeType(one["type"]),
        label=one["title"] or "",
        status=one["status"],
        says=insight.says.format_map(one),
        evidence=tuple(one["evidence"][:MOST_EVIDENCE]),
        total=one["total"],
    )

"""Questions about the whole graph, one file each in `queries/insights`, as Kuzu answers them.

What is asked is what all may see: nothing of an isolated event is in the graph that answers. An answer is one of the
state of the ledger when it was asked, or later, or there is none and it says why. What is answered with are the GraphQL
types.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import strawberry

from graphsvc import resources
from graphsvc.envelope import Long
from graphsvc.errors import InvalidInput
from graphsvc.graph.mirror import ANSWER_S, WAIT_S, Mirror, Rows, Unanswered
from graphsvc.lineage.answer import Freshness, TypeCount
from graphsvc.model import Direction, NodeType
from graphsvc.store import events
from graphsvc.store.database import Connection

MOST_EDGES: Final = 500_000  # that are read to find parts of the graph
MOST_EVIDENCE: Final = 50  # ids of a row
MOVED: Final = "the graph went on since the page before: rows may be missing, or be told twice"
_LOOK_S: Final = 0.2  # between two looks at a mirror that is waited for
_TRIES: Final = 3  # at an answer of several questions, while the graph goes on between them
_CURSOR: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})")  # position of the graph, rows before the page


@strawberry.enum(graphql_name_from="value", description="A question about the whole graph; `insights` tells them all.")
class InsightName(StrEnum):
    """Each is the name of a file in `queries/insights`."""

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
    """What a question is asked for. Which of the first four it takes stands in the catalogue."""

    node: str = ""  # an id as all see it
    since: str = ""  # UTC, as the ledger writes it
    type: str = ""  # of the nodes
    side: str = Direction.BOTH  # which edges count
    project: str = ""  # its key; empty: all
    first: int = 20
    after: str | None = None


@strawberry.type(description="A node that was found, what was found about it, and the ids that prove it.")
class InsightRow:
    id: strawberry.ID = strawberry.field(description="Its id.")
    type: NodeType = strawberry.field(description="What it is.")
    label: str = strawberry.field(description="What it says, at most 120 characters of it.")
    status: str | None = strawberry.field(description="Of a record: its status.")
    says: str = strawberry.field(description="What was found about it, in one sentence.")
    evidence: list[strawberry.ID] = strawberry.field(
        description=f"Ids that prove it, in the order of the question, the first {MOST_EVIDENCE} at most."
    )
    evidence_total: Long = strawberry.field(description="How many such ids there are.")


@strawberry.type(description="A page of what a question about the whole graph found.")
class Insight:
    name: InsightName = strawberry.field(description="Which question.")
    rows: list[InsightRow] = strawberry.field(description="What was found.")
    by_type: list[TypeCount] | None = strawberry.field(
        description="Of closure_impact all nodes that are reached, of islands all nodes of all parts, by type."
    )
    end_cursor: str | None = strawberry.field(description="The `after` of the next page; null at the end.")
    notes: list[str] | None = strawberry.field(description="What the reader should know about it.")
    freshness: Freshness = strawberry.field(description="Which state of the ledger this is.")


@dataclass(frozen=True, slots=True)
class Question:
    """An entry of the catalogue: the sentence that columns are put into, and the arguments that are taken."""

    name: InsightName
    says: str
    takes: tuple[str, ...] = ()
    types: tuple[NodeType, ...] = ()  # of what `type` may be

    @property
    def titles(self) -> tuple[str, str]:
        """The question in English and in Chinese: the first two lines of its file."""
        english, chinese = resources.text(f"queries/insights/{self.name}.cypher").splitlines()[:2]
        return english.removeprefix("// "), chinese.removeprefix("// ")


_CONNECTED: Final = (NodeType.GOAL, NodeType.DECISION, NodeType.TODO, NodeType.ASSET)
CATALOGUE: Final = {
    question.name: question
    for question in (
        Question(InsightName.STALE_PREMISES, "stands on {premise}, which is {premise_status}"),
        Question(InsightName.CONFLICTS, "active decisions about it: {total}, of sessions: {sessions}"),
        Question(InsightName.ORPHANS, "no edge stands; nodes that it was connected to: {ended}", ("type",), _CONNECTED),
        Question(
            InsightName.HUBS,
            "edges towards causes: {upstream}, towards results: {downstream}",
            ("type", "side"),
            tuple(NodeType),
        ),
        Question(InsightName.ISLANDS, "the oldest of a part of its own; nodes in it: {total}"),
        Question(InsightName.CLOSURE_IMPACT, "steps downstream: {steps}, the last one from {via}", ("node",)),
        Question(
            InsightName.GOALS_WITHOUT_PROGRESS, "nothing was done about it; its pending todos: {pending}", ("since",)
        ),
        Question(InsightName.DECISIONS_NEVER_FOLLOWED, "nothing came of it since {at}"),
    )
}


def check(name: InsightName, asked: Asked) -> None:
    """Raise InvalidInput for what the question cannot be asked with."""
    question, usual = CATALOGUE[name], Asked()
    for one in ("node", "since", "type", "side"):
        if one not in question.takes and getattr(asked, one) != getattr(usual, one):
            takers = ", ".join(other.name for other in CATALOGUE.values() if one in other.takes)
            raise InvalidInput(one, f"{name} takes none", f"with {takers}")
    if "node" in question.takes and not asked.node:
        raise InvalidInput("node", f"{name} needs one", "an id from an answer, such as decision-41")
    if asked.type and asked.type not in question.types:
        raise InvalidInput("type", f"{name} is about others", ", ".join(question.types))
    _place(asked.after)


def ask(
    db: Connection,
    mirror: Mirror,
    name: InsightName,
    asked: Asked,
    *,
    wait_s: float = WAIT_S,
    answer_s: float = ANSWER_S,
) -> Insight | Unanswered:
    """Answer from the mirror as soon as it has reached what the store holds now, or say why there is no answer."""
    begun = time.monotonic()
    ledger = events.position(db)
    before, offset = _place(asked.after)
    for _ in range(_TRIES):
        asking = _Asking(mirror, ledger, begun + wait_s, answer_s)
        try:
            listed, counts = _READERS.get(name, _read)(asking, name, asked, offset)
        except _Missing as missing:
            return missing.why
        if len(asking.positions) > 1:
            continue
        [position] = asking.positions
        elapsed = (time.monotonic() - begun) * 1000
        return Insight(
            name=name,
            rows=[_row(one, CATALOGUE[name]) for one in listed[: asked.first]],
            by_type=None
            if counts is None
            else [TypeCount(type=NodeType(kind), count=Long(n)) for kind, n in sorted(counts.items())],
            end_cursor=f"{position}.{offset + asked.first}" if len(listed) > asked.first else None,
            notes=[MOVED] if before not in {None, position} else None,
            freshness=Freshness(
                engine="kuzu", ledger=Long(max(ledger, position)), graph=Long(position), elapsed_ms=elapsed
            ),
        )
    return Unanswered("behind", "the graph went on while it was read")


def _place(cursor: str | None) -> tuple[int | None, int]:
    """Read a cursor as the position of the graph and the rows before the page."""
    if cursor is None:
        return None, 0
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("after", "is none", "the end_cursor of the page before")
    return int(match[1]), int(match[2])


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
    answer_s: float  # for each question
    positions: set[int] = field(default_factory=set)

    def ask(self, name: str, **parameters: object) -> list[dict[str, Any]]:
        while True:
            wait_s = min(_LOOK_S, max(0.0, self.until - time.monotonic()))
            found = self.mirror.ask(name, parameters, after=self.ledger, wait_s=wait_s, seconds=self.answer_s)
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
Reader = Callable[[_Asking, InsightName, Asked, int], Listed]


def _read(asking: _Asking, name: InsightName, asked: Asked, offset: int) -> Listed:
    """Return a page and one row more, as Kuzu answers it."""
    told = {one: getattr(asked, one) for one in ("project", *CATALOGUE[name].takes)}
    return asking.ask(name, **told, first=asked.first + 1, offset=offset), None


def _hubs(asking: _Asking, name: InsightName, asked: Asked, offset: int) -> Listed:
    listed, _ = _read(asking, name, asked, offset)
    if not listed:
        return [], None
    ids = [one["id"] for one in listed]
    ends = {one["id"]: one for one in asking.ask("hub_ends", ids=ids, side=asked.side, project=asked.project)}
    return [{**one, **ends[one["id"]]} for one in listed if one["id"] in ends], None


def _islands(asking: _Asking, name: InsightName, asked: Asked, offset: int) -> Listed:
    parts = sorted(_parts(asking.edges(name, asked.project)), key=lambda part: (-len(part), _age(part[0])))[1:]
    shown = parts[offset : offset + asked.first + 1]
    known = asking.nodes([part[0] for part in shown], asked.project)
    rows = [{**known[part[0]], "evidence": part, "total": len(part)} for part in shown if part[0] in known]
    return rows, Counter(one.partition("-")[0] for part in parts for one in part)


def _closure(asking: _Asking, name: InsightName, asked: Asked, offset: int) -> Listed:
    reached = _downstream(asking.edges(name, asked.project), asked.node)
    shown = list(reached.items())[offset : offset + asked.first + 1]
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


def _row(one: Mapping[str, Any], question: Question) -> InsightRow:
    return InsightRow(
        id=one["id"],
        type=NodeType(one["type"]),
        label=one["title"] or "",
        status=one["status"],
        says=question.says.format_map(one),
        evidence=[strawberry.ID(name) for name in one["evidence"][:MOST_EVIDENCE]],
        evidence_total=Long(one["total"]),
    )

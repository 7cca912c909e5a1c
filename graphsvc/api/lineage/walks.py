"""Lineage over GraphQL: walks, what came of something, ways between two nodes, what changed around one.

Every answer is bounded and says whether it is all there is. What a root names is what `nav` takes as a target.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeVar

import strawberry
from strawberry import UNSET

from graphsvc import errors
from graphsvc.api import nodes
from graphsvc.api.context import Info, Project, Sight, argument, given, sight
from graphsvc.api.nodes import Isolated
from graphsvc.api.values import InvalidInput, NotFound
from graphsvc.lineage import export, reach
from graphsvc.lineage.answer import Impact, Lineage, LineageDiff, PathMode, PathSet, Truncation
from graphsvc.lineage.diff import lineage_diff
from graphsvc.lineage.export import ExportFormat
from graphsvc.lineage.walk import HARD, MAX_DEPTH, Asked, Budget, lineage
from graphsvc.model import Direction, EdgeType, NodeType
from graphsvc.recall import targets
from graphsvc.store.edges.walk import Filter, Key

T = TypeVar("T")
Refused = NotFound | Isolated | InvalidInput

WHY_DEPTH: Final = 6
_USUAL: Final = Budget()
_OTHERS: Final = "or that nothing is there, that it is isolated, or what is wrong with an argument."

Root = Annotated[str, argument("Where it begins: a node id, session id, number or document path.", "root")]
Way = Annotated[Direction, argument("Towards causes, towards results, or both.")]
EdgeTypes = Annotated[list[EdgeType] | None, argument("Only over edges of these types.")]
NodeTypes = Annotated[list[NodeType] | None, argument("Only to and through nodes of these types.")]
Stated = Annotated[bool, argument("Only over edges that a host or a person stated.")]
AsOf = Annotated[
    str | None, argument("As things stood then: behind an event (its id or position), or at an ISO 8601 time or date.")
]
MaxNodes = Annotated[int, argument(f"Most nodes of an answer, up to {HARD.nodes}.")]
MaxEdges = Annotated[int, argument(f"Most edges of an answer, up to {HARD.edges}.")]
Fanout = Annotated[
    int, argument(f"Most neighbours of one node on one side in one answer, up to {HARD.fanout}; resume has the others.")
]
Deadline = Annotated[int, argument(f"Milliseconds that it may take, up to {HARD.deadline_ms}.")]
Resume = Annotated[str | None, argument("The `resume` of the answer before, with the same other arguments.")]

LineageOutcome = Annotated[
    Lineage | NotFound | Isolated | InvalidInput,
    strawberry.union("LineageOutcome", description=f"The part of the graph; {_OTHERS}"),
]
ImpactOutcome = Annotated[
    Impact | NotFound | Isolated | InvalidInput,
    strawberry.union("ImpactOutcome", description=f"What is reached; {_OTHERS}"),
]
PathOutcome = Annotated[
    PathSet | NotFound | Isolated | InvalidInput,
    strawberry.union("PathOutcome", description=f"The ways; {_OTHERS}"),
]
DiffOutcome = Annotated[
    LineageDiff | NotFound | Isolated | InvalidInput,
    strawberry.union("DiffOutcome", description=f"What changed; {_OTHERS}"),
]


@strawberry.type(description="A lineage as text for other programs.")
class Exported:
    format: ExportFormat = strawberry.field(description="Of the text.")
    text: str = strawberry.field(description="The whole of it; it says so itself when the lineage is truncated.")
    truncation: Truncation = strawberry.field(description="Whether the lineage in it is all there is.")


ExportOutcome = Annotated[
    Exported | NotFound | Isolated | InvalidInput,
    strawberry.union("ExportOutcome", description=f"The text; {_OTHERS}"),
]


@strawberry.type
class LineageQuery:
    @strawberry.field(description="The part of the graph around a node, breadth first, as far as the bounds allow.")
    def lineage(
        self,
        info: Info,
        start: Root,
        direction: Way = Direction.BOTH,
        depth: Annotated[int, argument(f"Most edges from the root, up to {MAX_DEPTH}.")] = 2,
        types: EdgeTypes = UNSET,
        nodes: NodeTypes = UNSET,
        stated: Stated = False,
        as_of: AsOf = UNSET,
        max_nodes: MaxNodes = _USUAL.nodes,
        max_edges: MaxEdges = _USUAL.edges,
        fanout: Fanout = _USUAL.fanout,
        deadline_ms: Deadline = _USUAL.deadline_ms,
        resume: Resume = UNSET,
        project: Project = UNSET,
    ) -> LineageOutcome:
        asked = Asked(
            direction=direction,
            depth=depth,
            chosen=_filter(types, nodes, stated),
            as_of=given(as_of),
            budget=Budget(nodes=max_nodes, edges=max_edges, fanout=fanout, deadline_ms=deadline_ms),
            resume=given(resume),
        )
        return _answer(info, project, lambda seen, key: lineage(seen.db, seen.viewer, key, asked), start)

    @strawberry.field(description="The part of the graph around a node as text: a diagram, a graph file, events, rows.")
    def lineage_export(
        self,
        info: Info,
        start: Root,
        form: Annotated[ExportFormat, argument("What to write.", "format")],
        direction: Way = Direction.BOTH,
        depth: Annotated[int, argument(f"Most edges from the root, up to {MAX_DEPTH}.")] = 2,
        types: EdgeTypes = UNSET,
        nodes: NodeTypes = UNSET,
        stated: Stated = False,
        as_of: AsOf = UNSET,
        max_nodes: MaxNodes = _USUAL.nodes,
        max_edges: MaxEdges = _USUAL.edges,
        fanout: Fanout = _USUAL.fanout,
        project: Project = UNSET,
    ) -> ExportOutcome:
        budget = Budget(nodes=max_nodes, edges=max_edges, fanout=fanout)
        chosen = _filter(types, nodes, stated)
        asked = Asked(direction=direction, depth=depth, chosen=chosen, as_of=given(as_of), budget=budget)

        def ask(seen: Sight, key: Key) -> Exported:
            answer = lineage(seen.db, seen.viewer, key, asked)
            return Exported(format=form, text=export.write(answer, form), truncation=answer.truncation)

        return _answer(info, project, ask, start)

    @strawberry.field(description="Why something is as it is: what it came from, upstream.")
    def why(
        self,
        info: Info,
        start: Root,
        depth: Annotated[int, argument(f"Most edges from the root, up to {MAX_DEPTH}.")] = WHY_DEPTH,
        as_of: AsOf = UNSET,
        max_nodes: MaxNodes = _USUAL.nodes,
        resume: Resume = UNSET,
        project: Project = UNSET,
    ) -> LineageOutcome:
        budget = Budget(nodes=max_nodes)
        asked = Asked(
            direction=Direction.UPSTREAM, depth=depth, as_of=given(as_of), budget=budget, resume=given(resume)
        )
        return _answer(info, project, lambda seen, key: lineage(seen.db, seen.viewer, key, asked), start)

    @strawberry.field(description="What came of something, downstream: counted whole, listed in pages.")
    def impact(
        self,
        info: Info,
        start: Root,
        direction: Way = Direction.DOWNSTREAM,
        depth: Annotated[int, argument(f"Most edges from the root, up to {MAX_DEPTH}.")] = MAX_DEPTH,
        types: EdgeTypes = UNSET,
        stated: Stated = False,
        as_of: AsOf = UNSET,
        listed: Annotated[list[NodeType] | None, argument("List only nodes of these types; all are counted.")] = UNSET,
        first: Annotated[int, argument(f"Nodes of a page, up to {reach.MAX_PAGE}; 0 counts only.")] = reach.PAGE,
        after: Annotated[str | None, argument("The `end_cursor` of the page before.")] = UNSET,
        project: Project = UNSET,
    ) -> ImpactOutcome:
        def ask(seen: Sight, key: Key) -> Impact:
            return reach.impact(
                seen.db, seen.viewer, key,
                direction=direction, depth=depth, chosen=_filter(types, UNSET, stated), as_of=given(as_of),
                types=given(listed) or (), first=first, after=given(after),
            )  # fmt: skip

        return _answer(info, project, ask, start)

    @strawberry.field(
        description="The shortest way from one node to another, or all on ways of at most a length; they may turn."
    )
    def path(
        self,
        info: Info,
        source: Annotated[str, argument("Where it begins: any target of nav.", "from")],
        target: Annotated[str, argument("Where it ends: any target of nav.", "to")],
        mode: Annotated[PathMode, argument("The shortest way, or the part of the graph between.")] = PathMode.SHORTEST,
        direction: Way = Direction.BOTH,
        max_length: Annotated[int, argument(f"Most edges of a way, up to {reach.MAX_LENGTH}.")] = reach.LENGTH,
        types: EdgeTypes = UNSET,
        stated: Stated = False,
        as_of: AsOf = UNSET,
        project: Project = UNSET,
    ) -> PathOutcome:
        def ask(seen: Sight, begin: Key, end: Key) -> PathSet:
            return reach.path(
                seen.db, seen.viewer, begin, end,
                mode=mode, direction=direction, length=max_length, chosen=_filter(types, UNSET, stated),
                as_of=given(as_of),
            )  # fmt: skip

        return _answer(info, project, ask, source, target)

    @strawberry.field(description="What changed around a node between two moments.")
    def lineage_diff(
        self,
        info: Info,
        start: Root,
        before: Annotated[str, argument("The earlier moment: an event, a position, a time or a date.", "from")],
        after: Annotated[str | None, argument("The later one; now when left out.", "to")] = UNSET,
        direction: Way = Direction.BOTH,
        depth: Annotated[int, argument(f"Most edges from the root, up to {MAX_DEPTH}.")] = 3,
        types: EdgeTypes = UNSET,
        stated: Stated = False,
        project: Project = UNSET,
    ) -> DiffOutcome:
        def ask(seen: Sight, key: Key) -> LineageDiff:
            return lineage_diff(
                seen.db, seen.viewer, key,
                before=before, after=given(after), direction=direction, depth=depth,
                chosen=_filter(types, UNSET, stated),
            )  # fmt: skip

        return _answer(info, project, ask, start)


def _filter(types: object, of: object, stated: bool) -> Filter:
    return Filter(edges=tuple(given(types) or ()), nodes=tuple(given(of) or ()), stated=stated)


def _answer(info: Info, project: str | None, ask: Callable[..., T], *names: str) -> T | Refused:
    """Find what the names name, and ask about it; what cannot be asked is answered as data."""
    seen = sight(info, given(project))
    try:
        found = [_found(seen, name) for name in names]
        hidden = next((one for one in found if one.node is None), None)
        if hidden is not None:
            return Isolated(id=strawberry.ID(str(hidden.id)))
        return ask(seen, *(nodes.key_of(one.node) for one in found if one.node is not None))
    except errors.InvalidInput as error:
        return InvalidInput(field=error.field, problem=error.problem, allowed=error.allowed, message=str(error))
    except errors.NotFoundError as error:
        return NotFound(target=error.target, suggestion=error.suggestion, message=str(error))


def _found(seen: Sight, name: str) -> targets.Found:
    found = targets.within(seen.db, seen.viewer, name)
    if isinstance(found, list):
        several = ", ".join(f"asset-{one.id}" for one in found[:5])
        raise errors.InvalidInput("root", f"{name[:200]!r} names several documents", several)
    return found

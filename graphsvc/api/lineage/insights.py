"""Questions about the whole graph over GraphQL: which there are, and what the mirror answers them with.

What only some may see is in no answer, so that one question has one answer, whoever asks; the project is the asker's.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

import strawberry
from strawberry import UNSET

from graphsvc import clock, errors
from graphsvc.api.context import NOBODY, Info, Project, Sight, argument, given, sight
from graphsvc.api.pages import TWENTY, First
from graphsvc.api.values import DateTime, InvalidInput, Refusal
from graphsvc.graph.mirror import Unanswered
from graphsvc.lineage import insights
from graphsvc.lineage.insights import CATALOGUE, Asked, Insight, InsightName
from graphsvc.model import Direction, NodeType
from graphsvc.recall import targets
from graphsvc.store import events, visibility
from graphsvc.store.visibility import Viewer

OWN_WAIT_S: Final = 120.0  # for a mirror that is kept for one answer, and may have to be made
OWN_ANSWER_S: Final = 30.0
SHARED: Final = "what is isolated is in no answer about the whole graph, not even for the sessions that it belongs to"
_TODO: Final = {
    "absent": "the log of the service says why; graphsvc graph rebuild makes it anew",
    "building": "ask again when it is made; graphsvc graph status tells how far it is",
    "behind": "ask again in a moment",
    "slow": "ask again, or about one project",
    "large": "ask about one project",
}


@strawberry.enum(graphql_name_from="value", description="Why there is no answer about the whole graph.")
class NoAnswer(Enum):
    ABSENT = "absent"
    BUILDING = "building"
    BEHIND = "behind"
    SLOW = "slow"
    LARGE = "large"


@strawberry.type(description="There is no answer now: an old one, or one of a part of the graph, would not be true.")
class NotAnswered(Refusal):
    reason: NoAnswer = strawberry.field(
        description="The graph is absent, being made, behind the ledger, took too long, or is too large for this."
    )


@strawberry.type(description="A question about the whole graph that can be asked.")
class InsightQuestion:
    name: InsightName = strawberry.field(description="Pass it as `name`.")
    title: str = strawberry.field(description="The question.")
    title_zh: str = strawberry.field(description="The question in Chinese.")
    takes: list[str] = strawberry.field(description="Arguments of its own, beside project, first and after.")


InsightOutcome = Annotated[
    Insight | NotAnswered | InvalidInput,
    strawberry.union(
        "InsightOutcome",
        description="What was found; or that there is no answer now; or what is wrong with an argument.",
    ),
]


@strawberry.type
class InsightQuery:
    @strawberry.field(description="The questions about the whole graph that `insight` answers.")
    def insights(self) -> list[InsightQuestion]:
        return [
            InsightQuestion(name=one.name, title=one.titles[0], title_zh=one.titles[1], takes=[*one.takes])
            for one in CATALOGUE.values()
        ]

    @strawberry.field(
        description="Ask about the whole graph, as all may see it and as it stands now: nothing that is isolated,"
        " no edge that has ended. Every row names the ids that prove it."
    )
    def insight(
        self,
        info: Info,
        name: Annotated[InsightName, argument("The question.")],
        node: Annotated[
            strawberry.ID | None, argument("Of closure_impact: downstream of which node; any target of nav.")
        ] = UNSET,
        since: Annotated[
            DateTime | None, argument("Of goals_without_progress: nothing since this time; else since the goal itself.")
        ] = UNSET,
        of_type: Annotated[NodeType | None, argument("Of orphans and hubs: only nodes of this type.", "type")] = UNSET,
        side: Annotated[Direction, argument("Of hubs: which edges count.")] = Direction.BOTH,
        first: First = TWENTY,
        after: Annotated[str | None, argument("The `end_cursor` of the page before.")] = UNSET,
        project: Project = UNSET,
    ) -> InsightOutcome:
        seen = sight(info, given(project))
        moment, root = given(since), given(node)
        try:
            asked = Asked(
                node=_shared_id(seen, str(root)) if root is not None else "",
                since=clock.bound("since", moment, end=False) if moment is not None else "",
                type=given(of_type) or "",
                side=side,
                project=_project(seen),
                first=first,
                after=given(after),
            )
            insights.check(name, asked)
        except errors.InvalidInput as error:
            return InvalidInput(field=error.field, problem=error.problem, allowed=error.allowed, message=str(error))
        found = _ask(info, seen, name, asked)
        if isinstance(found, Unanswered):
            message = f"the graph is not to be asked now: {found.why}; {_TODO[found.state]}"
            return NotAnswered(reason=NoAnswer(found.state), message=message)
        hides = visibility.any_hidden(seen.db, Viewer(project=seen.viewer.project))
        found.notes = [*(found.notes or ()), *seen.notes, *((SHARED,) if hides else ())] or None
        return found


def _ask(info: Info, seen: Sight, name: InsightName, asked: Asked) -> Insight | Unanswered:
    """Ask the mirror that the service keeps, else one that is kept for this answer."""
    context = info.context
    if context.mirror is not None:
        return insights.ask(seen.db, context.mirror, name, asked)
    if context.begin_mirror is None:
        return Unanswered("absent", "nothing keeps it")
    with context.begin_mirror() as mirror:
        return insights.ask(seen.db, mirror, name, asked, wait_s=OWN_WAIT_S, answer_s=OWN_ANSWER_S)


def _project(seen: Sight) -> str:
    """Return the key of the project that is asked about, empty for all; raise InvalidInput when that is none."""
    if seen.viewer == NOBODY:
        raise errors.InvalidInput("project", "nothing can be asked about", "; ".join(seen.notes))
    return "" if seen.viewer.project is None else events.project_key(seen.db, seen.viewer.project)


def _shared_id(seen: Sight, name: str) -> str:
    """Return the id by which all know what a target names; raise InvalidInput when all may not see it."""
    allowed = "an id that is not isolated, such as decision-41"
    try:
        all_see = Viewer(project=seen.viewer.project, everywhere=seen.viewer.everywhere)
        found = targets.within(seen.db, all_see, name)
    except errors.NotFoundError:
        raise errors.InvalidInput("node", f"nothing is known as {name[:200]!r}", allowed) from None
    if isinstance(found, list):
        several = ", ".join(f"asset-{one.id}" for one in found[:5])
        raise errors.InvalidInput("node", f"{name[:200]!r} names several documents", several)
    if found.node is None:
        raise errors.InvalidInput("node", f"{name[:200]!r} is isolated", allowed)
    return str(found.id)

"""Why a node is seen or not, over GraphQL."""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from typing import Annotated

import strawberry
from strawberry import UNSET

from graphsvc import errors
from graphsvc.api.context import Info, argument, given
from graphsvc.api.values import InvalidInput
from graphsvc.recall import scope
from graphsvc.recall.privacy import sight
from graphsvc.store.visibility import NO_VIEWER, Rule

strawberry.enum(
    Rule, name="VisibilityRule", graphql_name_from="value", description="By which rule something is seen, or not."
)


@strawberry.type(description="Whether a viewer sees a node, and by which rule.")
class Visibility:
    node: strawberry.ID = strawberry.field(description="The node, under the id it has for whoever asks.")
    viewer: strawberry.ID | None = strawberry.field(description="The session it is about; null: who asks is none.")
    visible: bool = strawberry.field(description="Whether the viewer sees it.")
    rule: Rule = strawberry.field(description="By which rule.")
    by: strawberry.ID | None = strawberry.field(
        description="The switch of isolation, or the publishing, that decided it; null to whom that is not shown."
    )
    reason: str = strawberry.field(description="The rule as a sentence.")
    reason_zh: str = strawberry.field(description="The rule as a sentence in Chinese.")
    suggestion: str | None = strawberry.field(description="A call of the tool that works, when nothing is known.")


VisibilityOutcome = Annotated[
    Visibility | InvalidInput,
    strawberry.union("VisibilityOutcome", description="Whether it is seen; or what is wrong with an argument."),
]


@strawberry.type
class VisibilityQuery:
    @strawberry.field(
        description="Why something is seen or not; of what neither who asks nor the viewer sees, that it is isolated."
    )
    def explain_visibility(
        self,
        info: Info,
        node: Annotated[strawberry.ID, argument("Any target of nav: an id, a number, a session, a document path.")],
        viewer: Annotated[
            strawberry.ID | None, argument("About this session; left out, about who asks. For the local owner.")
        ] = UNSET,
    ) -> VisibilityOutcome:
        context = info.context
        about = given(viewer)
        try:
            told = sight.explain(context.db, context.asker, str(node), str(about) if about is not None else None)
        except scope.UnknownViewer:
            error = errors.InvalidInput("viewer", NO_VIEWER, "a session that is known")
            return InvalidInput(field=error.field, problem=error.problem, allowed=error.allowed, message=str(error))
        except errors.InvalidInput as error:
            return InvalidInput(field=error.field, problem=error.problem, allowed=error.allowed, message=str(error))
        return Visibility(
            node=strawberry.ID(told.node),
            viewer=strawberry.ID(f"session-{told.session_id}") if told.session_id is not None else None,
            visible=told.visible,
            rule=told.rule,
            by=strawberry.ID(f"event-{told.by}") if told.by is not None else None,
            reason=told.texts[0],
            reason_zh=told.texts[1],
            suggestion=told.suggestion,
        )

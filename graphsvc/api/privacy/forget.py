"""The mutation `forget`: what leaves the store for good."""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from typing import Annotated, Final

import strawberry
from strawberry import UNSET

from graphsvc import errors
from graphsvc.api.context import Context, Info, argument, given
from graphsvc.api.values import (
    AcrossIsolation,
    Conflict,
    Count,
    DateTime,
    InvalidInput,
    InvalidTransition,
    NotFound,
    count_list,
    problem,
)
from graphsvc.envelope import Long
from graphsvc.memory import paths
from graphsvc.memory.erase import forget as erase
from graphsvc.memory.erase.reach import Wanted
from graphsvc.store import events

PATIENCE_S: Final = 1.0  # for others to let go of files; the service goes on after that


@strawberry.type(description="What was forgotten, or would be.")
class Forgotten:
    done: bool = strawberry.field(description="Whether it was forgotten; else this only counts what would be.")
    count: Long = strawberry.field(description="Events, those that came of others by rule included.")
    kinds: list[Count] = strawberry.field(description="Events by kind.")
    sessions: Long = strawberry.field(description="Sessions of which nothing is left.")
    shared: Long = strawberry.field(description="Events that were copied from other sessions and stay with those.")
    delegated: list[str] = strawberry.field(
        description="Ids of sessions that the named ones began for a part of the work; they stay."
    )
    position: Long | None = strawberry.field(description="Ledger position of the event that says so.")
    remains: list[str] = strawberry.field(
        description="Files that still hold bytes of it, and why; the service goes on to remove them."
    )


ForgetOutcome = Annotated[
    Forgotten | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("ForgetOutcome", description="What was forgotten, or would be, or why nothing was done."),
]


@strawberry.type
class ForgetMutation:
    """The part of `Mutation` that forgets."""

    @strawberry.mutation(
        description="Remove what is named from the store for good, with all that came of it by rule. Only the owner "
        "may, as no session. Without `confirm` it counts what would go. Of a large store `graphsvc forget` does it."
    )
    def forget(
        self,
        info: Info,
        session_ids: Annotated[list[str] | None, argument("Whole sessions.")] = UNSET,
        ids: Annotated[
            list[strawberry.ID] | None, argument("Events, records, and assets with the calls that wrote and read them.")
        ] = UNSET,
        since: Annotated[DateTime | None, argument("All from this time on, of a project.")] = UNSET,
        until: Annotated[DateTime | None, argument("All up to this time, of a project.")] = UNSET,
        project: Annotated[
            str | None, argument("With a time: key of the project, or all; left out, the folder's.")
        ] = UNSET,
        confirm: Annotated[bool, argument("Forget it; else only count it.")] = False,
    ) -> ForgetOutcome | None:
        wanted = Wanted(
            sessions=tuple(given(session_ids) or ()),
            ids=tuple(given(ids) or ()),
            since=given(since),
            until=given(until),
            project=given(project) or _folder_project(info.context),
        )
        return _forget(info.context, wanted, confirm=confirm)


def _forget(context: Context, wanted: Wanted, *, confirm: bool) -> ForgetOutcome:
    try:
        if not context.asker.owner or context.asker.session_id is not None:
            raise errors.InvalidInput("viewer", "only the owner forgets", "the owner's token, and no session as viewer")
        if confirm:
            found = erase.forget(context.db, wanted, _unwatched, now=context.clock, patience_s=PATIENCE_S)
        else:
            found = erase.plan(context.db, wanted)
    except errors.GraphsvcError as error:
        return problem(error)
    return Forgotten(
        done=found.position is not None,
        count=Long(found.count),
        kinds=count_list(found.kinds),
        sessions=Long(found.sessions),
        shared=Long(found.shared),
        delegated=list(found.delegated),
        position=Long(found.position) if found.position is not None else None,
        remains=list(found.remains),
    )


def _folder_project(context: Context) -> str | None:
    """Return the project that the asker stands in, when it is known."""
    chosen = context.asker.project or (paths.project_of(context.asker.cwd) if context.asker.cwd else None)
    return chosen if chosen == "all" or (chosen and events.find_project(context.db, chosen) is not None) else None


def _unwatched(done: int, of: int) -> None:
    del done, of

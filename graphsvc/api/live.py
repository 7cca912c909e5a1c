"""Subscriptions: what comes to the ledger, from a position on.

A subscription is executed again and again, each time for the next thing behind the position of its `Reader`, so its
arguments, its isolation and its nested fields work as those of a query, and the ledger is the queue.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import strawberry
from graphql import GraphQLError
from strawberry import UNSET

from graphsvc import errors
from graphsvc.api import nodes
from graphsvc.api.context import Info, Sight, argument, given
from graphsvc.api.nodes import Event
from graphsvc.api.values import DateTime
from graphsvc.envelope import Long
from graphsvc.model import RECORD_KINDS, EventKind, NodeType
from graphsvc.recall import scope
from graphsvc.store import events, records, sessions
from graphsvc.store.database import Connection
from graphsvc.store.visibility import NO_VIEWER, visible

T = TypeVar("T")
_RECORDS: Final = frozenset(NodeType(kind) for kind in RECORD_KINDS)


@dataclass(slots=True)
class Reader:
    """Where a subscription stands in the ledger: behind `position`, from where a resolver moves it on.

    Without a position the arguments say where to begin, and `began` tells.
    """

    position: int | None = None
    session: int | None = None  # the only one to read of, as it was named at the beginning
    began: int | None = None
    found: bool | None = None  # whether there was something up to there; None when nothing was read
    more: bool = False  # the ledger goes on behind it


class Nothing(GraphQLError):
    """There is nothing to deliver up to the position that the reader has come to."""

    def __init__(self) -> None:
        super().__init__("nothing yet")


@strawberry.type(description="A record that has another status than before.")
class StatusChange:
    position: Long = strawberry.field(description="Ledger position of the event; pass it as `after` to go on.")
    at: DateTime = strawberry.field(description="Time of the event.")
    id: strawberry.ID = strawberry.field(description="The record, such as decision-41.")
    type: NodeType = strawberry.field(description="What kind of record it is.")
    before: str | None = strawberry.field(name="from", description="Its status before; null for a new record.")
    to: str = strawberry.field(description="Its status after.")
    text: str = strawberry.field(description="The record's text.")
    event: Event = strawberry.field(description="The event that changed it.")


After = Annotated[
    Long | None,
    argument("Begin behind this ledger position; 0 is the whole ledger. Left out, with what comes from now on."),
]
_KNOWN: Final = (
    " By its id or its node id. One that is not known, or not yet, ends the subscription with the error NotFound: "
    "leave it out to hear of sessions that are yet to come."
)
OfSession = Annotated[str | None, argument(f"Only this session.{_KNOWN}")]
ChangedBy = Annotated[str | None, argument(f"Only what this session changed.{_KNOWN}")]
Project = Annotated[str | None, argument("Key of a project, or all. Only the local owner may choose.")]


@strawberry.type(
    description="What comes to the ledger. Each message carries its position; `after` goes on behind it, so that who "
    "comes back gets what was missed, once. Answered over graphql-transport-ws and as an event stream."
)
class Subscription:
    @strawberry.field(description="Every event that the asker may see, in ledger order.")
    def events_captured(
        self,
        info: Info,
        after: After = UNSET,
        session_id: OfSession = UNSET,
        kinds: Annotated[list[EventKind] | None, argument("Only events of these kinds.")] = UNSET,
        project: Project = UNSET,
    ) -> Event:
        return _next(info, given(after), given(project), given(session_id), given(kinds) or (), lambda _, event: event)

    @strawberry.field(
        description="Every change of a record's status, in ledger order; a message holds the changes of one position. "
        "What is new is a change too; what came too late to change anything is none."
    )
    def status_changed(
        self,
        info: Info,
        after: After = UNSET,
        types: Annotated[list[NodeType] | None, argument("Only records of these types.")] = UNSET,
        session_id: ChangedBy = UNSET,
        project: Project = UNSET,
    ) -> list[StatusChange]:
        wanted = frozenset(given(types) or _RECORDS)
        if not wanted <= _RECORDS:
            names = ", ".join(sorted(wanted - _RECORDS))
            raise _bad(errors.InvalidInput("types", f"{names} has no status", ", ".join(sorted(_RECORDS))))

        def read(sight: Sight, event: Event) -> list[StatusChange] | None:
            return [
                _change(event, one)
                for one in records.changes(sight.db, event.row.id)
                if one.record.type in wanted and visible(sight.db, sight.viewer, one.record.id)
            ] or None

        return _next(info, given(after), given(project), given(session_id), RECORD_KINDS, read)


def _next(
    info: Info,
    after: int | None,
    project: str | None,
    session_id: str | None,
    kinds: Collection[str],
    read: Callable[[Sight, Event], T | None],
) -> T:
    """Return what `read` makes of the next event that is something to it, and leave the reader there."""
    reader = info.root_value
    if not isinstance(reader, Reader):
        raise TypeError("a subscription is read by a Reader")
    sight = _sight(info, project)
    if reader.position is None:
        reader.session = None if session_id is None else _session(sight, session_id)
        reader.position = reader.began = _begin(sight.db, after)
    # A session is of one project, whichever the asker stands in.
    only = sight.viewer.project if reader.session is None else None
    seen = events.behind(sight.db, sight.viewer, reader.position, kinds=kinds, session=reader.session, project=only)
    reader.position, reader.more = seen.position, seen.more
    found = nodes.event_nodes(sight, [*events.rows(sight.db, sight.viewer, seen.events).values()])
    answer = read(sight, found[0]) if found else None
    reader.found = answer is not None
    if answer is None:
        raise Nothing
    return answer


def _begin(db: Connection, after: int | None) -> int:
    newest = events.position(db)
    if after is None:
        return newest
    if not 0 <= after <= newest:
        raise _bad(errors.InvalidInput("after", f"{after} is no position of this ledger", f"0 to {newest}"))
    return after


def _session(sight: Sight, name: str) -> int:
    found = sessions.find(sight.db, sight.viewer, name)
    if found is None:
        near = sessions.nearest(sight.db, sight.viewer, name)
        hint = f"; the nearest is {near}" if near else ""
        message = f"no session is known as {name[:200]!r}{hint}. To hear of one that is yet to come, leave it out"
        raise GraphQLError(message, extensions={"code": "NotFound", "field": "session_id"})
    return found.number


def _change(event: Event, change: records.Change) -> StatusChange:
    return StatusChange(
        position=event.position,
        at=event.at,
        id=strawberry.ID(f"{change.record.type}-{change.record.id}"),
        type=change.record.type,
        before=change.before,
        to=change.after,
        text=change.record.text,
        event=event,
    )


def _sight(info: Info, project: str | None) -> Sight:
    """Resolve who asks about what. Who cannot be resolved is told: silence would look like nothing happening."""
    context = info.context
    try:
        viewer, _ = scope.resolve(context.db, context.asker, project or None)
    except errors.InvalidInput as error:
        raise _bad(error) from None
    except scope.UnknownViewer:
        raise GraphQLError(NO_VIEWER, extensions={"code": "NotFound"}) from None
    return Sight(context.db, viewer)


def _bad(error: errors.InvalidInput) -> GraphQLError:
    about = {"code": "InvalidInput", "field": error.field, "problem": error.problem, "allowed": error.allowed}
    return GraphQLError(str(error), extensions=about)

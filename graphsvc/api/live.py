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
from graphsvc.api.context import Info, Project, Sight, argument, given
from graphsvc.api.nodes import Event
from graphsvc.api.values import DateTime
from graphsvc.envelope import Long
from graphsvc.lineage.answer import LineageDiff
from graphsvc.lineage.diff import lineage_diff
from graphsvc.model import RECORD_KINDS, Direction, EdgeType, EventKind, NodeType
from graphsvc.recall import scope, targets
from graphsvc.store import events, records, sessions
from graphsvc.store.database import Connection
from graphsvc.store.edges import ends, walk
from graphsvc.store.visibility import NO_VIEWER, visible

T = TypeVar("T")
MAX_LIVE_DEPTH: Final = 6  # a walk before and one after each event that draws something
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


@strawberry.type(description="What an event changed around a node.")
class LineageChange:
    position: Long = strawberry.field(description="Ledger position of the event; pass it as `after` to go on.")
    at: DateTime = strawberry.field(description="Time of the event.")
    event: Event = strawberry.field(description="The event that changed it.")
    change: LineageDiff = strawberry.field(description="Nodes and edges that came and went, and statuses.")


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

    @strawberry.field(
        description="What each event changes around a node, in ledger order: nodes and edges that come and go, and "
        "statuses. Events that change nothing there are passed over."
    )
    def lineage_changed(
        self,
        info: Info,
        start: Annotated[str, argument("Around what: a node id, session id, number or document path.", "root")],
        after: After = UNSET,
        direction: Annotated[Direction, argument("Towards causes, towards results, or both.")] = Direction.BOTH,
        depth: Annotated[int, argument(f"Most edges from the root, up to {MAX_LIVE_DEPTH}.")] = 2,
        types: Annotated[list[EdgeType] | None, argument("Only over edges of these types.")] = UNSET,
        project: Project = UNSET,
    ) -> LineageChange:
        if not 0 <= depth <= MAX_LIVE_DEPTH:
            raise _bad(errors.InvalidInput("depth", f"{depth} is out of range", f"0 to {MAX_LIVE_DEPTH}"))
        chosen = walk.Filter(edges=tuple(given(types) or ()))

        def read(sight: Sight, event: Event) -> LineageChange | None:
            position, root = event.row.id, _root(sight, start)
            there = ends.there(sight.db, sight.viewer, root, walk.Moment(position=position))
            if not there or not walk.changed_by(sight.db, position):
                return None
            found = lineage_diff(
                sight.db, sight.viewer, root,
                before=str(position - 1), after=str(position), direction=direction, depth=depth, chosen=chosen,
            )  # fmt: skip
            if not any(
                (found.added_nodes, found.removed_nodes, found.added_edges, found.removed_edges, found.statuses)
            ):
                return None
            return LineageChange(position=event.position, at=event.at, event=event, change=found)

        _root(_sight(info, given(project)), start)  # what is not known is told at once
        return _next(info, given(after), given(project), None, (), read, everywhere=True)


def _next(
    info: Info,
    after: int | None,
    project: str | None,
    session_id: str | None,
    kinds: Collection[str],
    read: Callable[[Sight, Event], T | None],
    *,
    everywhere: bool = False,
) -> T:
    """Return what `read` makes of the next event that is something to it, and leave the reader there."""
    reader = info.root_value
    if not isinstance(reader, Reader):
        raise TypeError("a subscription is read by a Reader")
    sight = _sight(info, project)
    if reader.position is None:
        reader.session = None if session_id is None else _session(sight, session_id)
        reader.position = reader.began = _begin(sight.db, after)
    # A session is of one project, whichever the asker stands in; a root is wherever the asker reaches.
    free = reader.session is not None or (everywhere and sight.viewer.everywhere)
    only = None if free else sight.viewer.project
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


def _root(sight: Sight, name: str) -> walk.Key:
    """Find what a root names, as far as the viewer may see it."""
    try:
        found = targets.within(sight.db, sight.viewer, name)
    except errors.NotFoundError as error:
        raise GraphQLError(str(error), extensions={"code": "NotFound", "field": "root"}) from None
    if isinstance(found, list):
        several = ", ".join(f"asset-{one.id}" for one in found[:5])
        raise _bad(errors.InvalidInput("root", f"{name[:200]!r} names several documents", several))
    if found.node is None:
        raise GraphQLError(targets.HIDDEN, extensions={"code": "Isolated", "field": "root"})
    return nodes.key_of(found.node)


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

"""The GraphQL schema: what the tool needs, typed as `graphsvc.envelope` writes it.

Names are the protocol's, in snake_case. An argument outside the contract is an `InvalidInput` of the outcome's union
and nothing found is an ordinary answer; `errors` is left for syntax, validation, cost, access and bugs.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import logging
import re
import secrets
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Annotated, Any, Final, TypeVar

import strawberry
from graphql import GraphQLError
from strawberry import UNSET
from strawberry.extensions import MaskErrors
from strawberry.scalars import JSON
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types import ExecutionContext
from strawberry.types.arguments import StrawberryArgumentAnnotation

from graphsvc import errors
from graphsvc.api import limits
from graphsvc.clock import Clock
from graphsvc.envelope import Long, NavResult, NavVerb, Order, SearchKind, SearchResult
from graphsvc.importers import neutral
from graphsvc.memory import capture
from graphsvc.model import Event
from graphsvc.recall import answer, scope
from graphsvc.recall.scope import Asker
from graphsvc.store import counts, sessions
from graphsvc.store.database import Connection, interrupted
from graphsvc.store.visibility import Viewer

MAX_FIRST: Final = 100
_LONGS: Final = range(-(2**63), 2**63)
_log: Final = logging.getLogger("graphsvc")

T = TypeVar("T", NavResult, SearchResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a resolver works with: a connection of this thread, who asks, and the time."""

    db: Connection
    asker: Asker
    clock: Clock
    catch_up: bool = False  # index before a search; a service does that on its own


Info = strawberry.Info[Context, None]


def _parse_long(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _LONGS:
        raise GraphQLError("Long must be a whole number of at most 64 bits")
    return value


LONG: Final = strawberry.scalar(
    name="Long",
    description="A whole number of up to 64 bits, as a JSON integer.",
    serialize=_parse_long,
    parse_value=_parse_long,
)


@strawberry.type(description="An argument outside the contract.")
class InvalidInput:
    field: str = strawberry.field(description="Name of the argument.")
    problem: str = strawberry.field(description="What is wrong with it.")
    allowed: str = strawberry.field(description="What would do.")
    message: str = strawberry.field(description="All of that in one sentence.")


NavOutcome = Annotated[
    NavResult | InvalidInput,
    strawberry.union(
        "NavOutcome", description="The envelope, also of nothing found; or what is wrong with an argument."
    ),
]
SearchOutcome = Annotated[
    SearchResult | InvalidInput,
    strawberry.union("SearchOutcome", description="The results; or what is wrong with an argument."),
]


@strawberry.type(description="One conversation of an agent.")
class Session:
    id: strawberry.ID = strawberry.field(description="Node id, a target of nav.")
    session_id: str = strawberry.field(description="The host's own id.")
    project: str = strawberry.field(description="Key of the project it belongs to.")
    host: str | None = strawberry.field(description="The agent's program.")
    title: str | None = strawberry.field(description="Title, when the host gave one.")
    started_at: str | None = strawberry.field(description="Time of its first event.")
    last_at: str | None = strawberry.field(description="Time of its last event.")
    position: Long = strawberry.field(description="Ledger position of its last event.")
    ended: bool = strawberry.field(description="Whether the host said that it ended.")
    isolated: bool = strawberry.field(description="Whether what it captures now is isolated.")


@strawberry.type(description="A session and its place in the list.")
class SessionEdge:
    node: Session = strawberry.field(description="The session.")
    cursor: str = strawberry.field(description="Pass it as `after` to go on behind this session.")


@strawberry.type(description="Whether the list goes on.")
class PageInfo:
    hasNextPage: bool = strawberry.field(description="Whether there are more.")  # noqa: N815 # Relay's name
    endCursor: str | None = strawberry.field(description="Pass it as `after`.")  # noqa: N815


@strawberry.type(description="A page of sessions, the most recently active first.")
class SessionConnection:
    edges: list[SessionEdge] = strawberry.field(description="The sessions of this page.")
    pageInfo: PageInfo = strawberry.field(description="Whether and where to go on.")  # noqa: N815


@strawberry.type(description="How many there are of something.")
class Count:
    name: str = strawberry.field(description="Of what.")
    count: Long = strawberry.field(description="How many.")


@strawberry.type(description="How much is kept, as far as the asker may see it.")
class Stats:
    projects: Long = strawberry.field(description="Projects.")
    sessions: Long = strawberry.field(description="Sessions.")
    events: Long = strawberry.field(description="Events in the ledger.")
    kinds: list[Count] = strawberry.field(description="Events by kind.")
    records: list[Count] = strawberry.field(description="Records by type and status, such as `decision active`.")
    assets: Long = strawberry.field(description="Files that agents wrote.")
    versions: Long = strawberry.field(description="Writes of those files.")
    edges: list[Count] = strawberry.field(description="Edges by type.")
    gaps: Long | None = strawberry.field(
        description="Lines of imported files that could not be read, in all projects; null to whom they are not open."
    )
    position: Long = strawberry.field(description="Position of the newest event, whoever may see it.")
    indexed: Long = strawberry.field(description="Position up to which the search index holds events.")


@strawberry.input(description="One conversation event (schema/event.json). The same origin and content is stored once.")
class EventInput:
    session_id: str = strawberry.field(description="The host's id of the session.")
    kind: str = strawberry.field(description="Kind of the event, as in schema/event.json.")
    origin: str = strawberry.field(description="Stable across replays: the host's own id of this message.")
    body: str = strawberry.field(description="The whole text. tool_call: its input as JSON.")
    ts: str | None = strawberry.field(default=UNSET, description="ISO 8601; no zone means UTC.")
    project: str | None = strawberry.field(default=UNSET, description="Key of the project; left out, found from cwd.")
    cwd: str | None = strawberry.field(default=UNSET, description="Working folder.")
    actor: str | None = strawberry.field(default=UNSET, description="Agent or sub-agent.")
    meta: JSON | None = strawberry.field(default=UNSET, description="Object of what the host says beside the text.")


@strawberry.type(description="An event that was not stored.")
class RejectedEvent:
    index: Long = strawberry.field(description="Its place in the list, from 0.")
    code: str = strawberry.field(description="What kind of problem.")
    message: str = strawberry.field(description="What is wrong and what is allowed.")


@strawberry.type(description="What became of a batch of events. What was not rejected is stored.")
class CaptureOutcome:
    accepted: Long = strawberry.field(description="Events that are new.")
    duplicates: Long = strawberry.field(description="Events that were there already.")
    rejected: list[RejectedEvent] = strawberry.field(description="Events that could not be stored; the others are.")
    kinds: list[Count] = strawberry.field(description="Rows added by kind, with those that follow by rule.")
    position: Long = strawberry.field(description="Ledger position after the batch.")


def _argument(description: str) -> StrawberryArgumentAnnotation:
    return strawberry.argument(description=description)


Target = Annotated[str | None, _argument("Node id, session id, number or document path; an id from an answer works.")]
Words = Annotated[str | None, _argument("Words, an identifier, a path or a phrase.")]
OfKind = Annotated[SearchKind | None, _argument("Only this kind of event or record.")]
OfSession = Annotated[str | None, _argument("Only this session.")]
Since = Annotated[str | None, _argument("ISO 8601 time or date, inclusive.")]
Until = Annotated[str | None, _argument("ISO 8601 time or date, inclusive.")]
ByTime = Annotated[Order | None, _argument("By time. Left out, a query is ordered by score, a listing newest first.")]
Limit = Annotated[int | None, _argument("Most rows, 1 to 50; 20 when left out.")]
Budget = Annotated[Long | None, _argument("Most tokens of the printed answer, 60 or more; 4000 when left out.")]
Cursor = Annotated[str | None, _argument("The cursor of the previous answer, with the same other arguments.")]
Project = Annotated[str | None, _argument("Key of a project, or all. Only the local owner may choose.")]


@strawberry.type(description="What can be read. Who asks comes from the transport, never from an argument.")
class Query:
    @strawberry.field(description="Walk sessions, assets, events and records: ls, cd, cat, grep.")
    def nav(
        self,
        info: Info,
        verb: Annotated[NavVerb, _argument("What to do at the target.")],
        target: Target = UNSET,
        query: Words = UNSET,
        session_id: OfSession = UNSET,
        kind: OfKind = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        order: ByTime = UNSET,
        limit: Limit = UNSET,
        token_budget: Budget = UNSET,
        cursor: Cursor = UNSET,
        project: Project = UNSET,
    ) -> NavOutcome:
        given = {
            "nav": verb, "target": target, "query": query, "session_id": session_id, "kind": kind, "since": since,
            "until": until, "order": order, "limit": limit, "token_budget": token_budget, "cursor": cursor,
            "project": project,
        }  # fmt: skip
        return _answer(info, NavResult, given)

    @strawberry.field(description="Find events and records by words and filters; without words, list what passes them.")
    def search(
        self,
        info: Info,
        query: Words = UNSET,
        kind: OfKind = UNSET,
        session_id: OfSession = UNSET,
        limit: Limit = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        order: ByTime = UNSET,
        count_only: Annotated[bool | None, _argument("The number of hits, no rows.")] = UNSET,
        token_budget: Budget = UNSET,
        cursor: Cursor = UNSET,
        project: Project = UNSET,
    ) -> SearchOutcome:
        given = {
            "query": query, "kind": kind, "session_id": session_id, "limit": limit, "since": since, "until": until,
            "order": order, "count_only": count_only, "token_budget": token_budget, "cursor": cursor,
            "project": project,
        }  # fmt: skip
        return _answer(info, SearchResult, given)

    @strawberry.field(description="One node by its id: the same as nav(verb: cd).")
    def node(self, info: Info, id: Annotated[strawberry.ID, _argument("A node id.")]) -> NavOutcome:  # noqa: A002 # Relay's name
        return _answer(info, NavResult, {"nav": "cd", "target": id})

    @strawberry.field(description="Sessions the asker may see, the most recently active first.")
    def sessions(
        self,
        info: Info,
        first: Annotated[int, _argument(f"Sessions a page, 1 to {MAX_FIRST}.")] = 20,
        after: Annotated[str | None, _argument("The endCursor of the page before.")] = UNSET,
        project: Project = UNSET,
    ) -> SessionConnection:
        return _sessions(info, first, after or None, project or None)

    @strawberry.field(description="How much is kept, as far as the asker may see it.")
    def stats(self, info: Info, project: Project = UNSET) -> Stats:
        return _stats(info, project or None)


@strawberry.type(description="What can be written.")
class Mutation:
    @strawberry.mutation(description="Store events in one transaction. Replaying them adds nothing.")
    def capture(
        self, info: Info, events: Annotated[list[EventInput], _argument("The events, oldest first.")]
    ) -> CaptureOutcome:
        return _capture(info.context, events)


class MaskBugs(MaskErrors):
    """Replace the text of an unexpected error by an id, and log it under that id; the end of the time is no bug."""

    def __init__(self) -> None:
        super().__init__(should_mask_error=_unexpected)

    def anonymise_error(self, error: GraphQLError) -> GraphQLError:
        if interrupted(error.original_error):
            extensions = {"code": "DEADLINE"}
            return GraphQLError(
                "not done in time; ask for less", nodes=error.nodes, path=error.path, extensions=extensions
            )
        correlation = secrets.token_hex(6)
        path = ".".join(str(part) for part in error.path or ())
        log_bug(correlation, f"field {path}", error.original_error)
        message = f"A bug of graphsvc. The log of the service tells more under {correlation}."
        extensions = {"code": "BUG", "correlation_id": correlation}
        return GraphQLError(message, nodes=error.nodes, path=error.path, extensions=extensions)


class Schema(strawberry.Schema):
    """The schema; it does not log documents, as the library would."""

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        """Leave logging to `MaskBugs`."""


schema: Final = Schema(
    query=Query,
    mutation=Mutation,
    config=StrawberryConfig(auto_camel_case=False, scalar_map={Long: LONG}),
    extensions=[*limits.extensions(), MaskBugs],
)


def print_sdl() -> str:
    """Print the schema as it is kept in `schema/graphsvc.graphql`."""
    return f"{schema.as_str()}\n"


def respond(
    document: str, variables: Mapping[str, object], operation: str | None, context: Context
) -> dict[str, object]:
    """Execute a document and return the response as JSON values; `data` is left out when nothing was executed."""
    try:
        result = schema.execute_sync(document, dict(variables), context, operation_name=operation)
    except (CannotGetOperationTypeError, InvalidOperationTypeError):
        message = "The document has no operation of that name, or several and no name was given."
        return {"errors": [{"message": message, "extensions": {"code": "BAD_REQUEST"}}]}
    problems = result.errors or []
    response: dict[str, object] = {}
    if problems:
        response["errors"] = [dict(error.formatted) for error in problems]
    if result.data is not None or not problems or any(error.path for error in problems):
        response["data"] = result.data
    return response


def log_bug(correlation: str, where: str, error: BaseException | None) -> None:
    """Log where a bug happened; the error's text stays out, it may quote what people said."""
    frames = "".join(traceback.format_tb(error.__traceback__)) if error is not None else ""
    _log.error("bug %s in %s: %s\n%s", correlation, where, type(error).__name__, frames)


def _answer(info: Info, kind: type[T], arguments: Mapping[str, object]) -> T | InvalidInput:
    given = {
        name: value.value if isinstance(value, Enum) else value
        for name, value in arguments.items()
        if not _left_out(value)
    }
    context = info.context
    try:
        found = answer.answer(context.db, context.asker, given, catch_up=context.catch_up)
    except errors.InvalidInput as error:
        return InvalidInput(field=error.field, problem=error.problem, allowed=error.allowed, message=str(error))
    if not isinstance(found, kind):
        raise TypeError(f"{type(found).__name__} in place of {kind.__name__}")
    return found


def _sessions(info: Info, first: int, after: str | None, project: str | None) -> SessionConnection:
    if not 1 <= first <= MAX_FIRST:
        raise _bad(errors.InvalidInput("first", f"{first} is out of range", f"1 to {MAX_FIRST}"))
    if after is not None and not re.fullmatch(r"[0-9]{1,18}\.[0-9]{1,18}", after):
        raise _bad(errors.InvalidInput("after", "is no cursor", "the endCursor of the page before"))
    viewer = _viewer(info, project)
    moment, _, event = (after or "").partition(".")
    rows = sessions.page(info.context.db, viewer, (int(moment), int(event)) if after else None, first + 1)
    edges = [
        SessionEdge(node=_session(row, viewer), cursor="{}.{}".format(*sessions.place(row))) for row in rows[:first]
    ]
    page = PageInfo(hasNextPage=len(rows) > first, endCursor=edges[-1].cursor if edges else None)
    return SessionConnection(edges=edges, pageInfo=page)


def _session(row: sessions.SessionRow, viewer: Viewer) -> Session:
    return Session(
        id=strawberry.ID(f"session-{row.session_id}"),
        session_id=row.session_id,
        project=row.project_key,
        host=row.host,
        title=row.known_as(viewer),
        started_at=row.started_at,
        last_at=row.last_at,
        position=Long(row.last_event),
        ended=row.ended,
        isolated=row.isolated,
    )


def _stats(info: Info, project: str | None) -> Stats:
    counted = asdict(counts.stats(info.context.db, _viewer(info, project)))
    fields: dict[str, Any] = {
        name: _counts(value) if isinstance(value, dict) else value for name, value in counted.items()
    }
    return Stats(**fields)


def _counts(found: Mapping[str, int]) -> list[Count]:
    return [Count(name=name, count=Long(count)) for name, count in sorted(found.items())]


def _viewer(info: Info, project: str | None) -> Viewer:
    try:
        viewer, _ = scope.resolve(info.context.db, info.context.asker, project)
    except errors.InvalidInput as error:
        raise _bad(error) from None
    except errors.NotFoundError as error:
        about = {"code": "NotFound", "target": error.target, "suggestion": error.suggestion}
        raise GraphQLError(str(error), extensions=about) from None
    return viewer


def _bad(error: errors.InvalidInput) -> GraphQLError:
    """Return the error of an argument whose field has no outcome union."""
    about = {"code": "InvalidInput", "field": error.field, "problem": error.problem, "allowed": error.allowed}
    return GraphQLError(str(error), extensions=about)


def _capture(context: Context, given: Sequence[EventInput]) -> CaptureOutcome:
    """Capture what can be read; the places of what cannot be read or stored are those in the given list."""
    events: list[Event] = []
    places: list[int] = []
    rejected: list[RejectedEvent] = []
    for index, item in enumerate(given):
        try:
            events.append(
                neutral.parse_event({name: value for name, value in asdict(item).items() if not _left_out(value)})
            )
        except errors.InvalidInput as error:
            rejected.append(RejectedEvent(index=Long(index), code="InvalidInput", message=str(error)))
        else:
            places.append(index)
    done = capture.capture(context.db, events, now=context.clock)
    rejected += [
        RejectedEvent(index=Long(places[one.index]), code=one.code, message=one.message) for one in done.rejected
    ]
    return CaptureOutcome(
        accepted=Long(done.accepted),
        duplicates=Long(done.duplicates),
        rejected=sorted(rejected, key=lambda one: one.index),
        kinds=_counts(done.kinds),
        position=Long(done.position),
    )


def _left_out(value: object) -> bool:
    return value is None or value is UNSET


def _unexpected(error: GraphQLError) -> bool:
    """Say whether an error is a bug: neither GraphQL's own nor one that graphsvc raises on purpose."""
    return error.original_error is not None and not isinstance(
        error.original_error, errors.GraphsvcError | GraphQLError
    )

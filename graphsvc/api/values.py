"""Scalars and enums, which check what arguments may be before anything runs; and what else can be wrong, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, NewType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import strawberry
from strawberry.types.scalar import ScalarDefinition

from graphsvc import clock, errors
from graphsvc.envelope import DateTime as DateTime  # beside the other scalars
from graphsvc.envelope import Long
from graphsvc.model import CURSOR, EdgeType, NodeType
from graphsvc.store.lists import Place

MAX_FIRST: Final = 100
MAX_LENGTH: Final = 100_000
MAX_IDS: Final = 100
Cursor = NewType("Cursor", str)
PageSize = NewType("PageSize", int)
Length = NewType("Length", int)
TimeZone = NewType("TimeZone", str)
EdgeCursor = NewType("EdgeCursor", str)
EDGE_TYPES: Final = tuple(EdgeType)
NODE_TYPES: Final = tuple(NodeType)
_EDGE_CURSOR: Final = re.compile(r"[01]\.[01]\.[0-9]{1,18}\.([0-9])\.([0-9])\.[0-9]{1,18}")


def _whole(name: str, allowed: range, words: str) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
            raise errors.InvalidInput(name, "is none", words)
        return value

    return parse


def _time(value: object) -> str:
    text = value[:80] if isinstance(value, str) else ""
    try:
        clock.bound("DateTime", text, end=False)
    except errors.InvalidInput:
        raise errors.InvalidInput("DateTime", "is none", clock.ISO) from None
    return text


def _zone(value: object) -> str:
    try:
        ZoneInfo(value if isinstance(value, str) else "")
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise errors.InvalidInput("TimeZone", "is none", "a name such as UTC, Asia/Shanghai or Europe/Berlin") from None
    return str(value)


def _cursor(value: object) -> str:
    if not isinstance(value, str) or not CURSOR.fullmatch(value):
        raise errors.InvalidInput(
            "Cursor", "is none", "the endCursor of the page before, or the cursor of one of its edges"
        )
    return value


def _edge_cursor(value: object) -> str:
    match = _EDGE_CURSOR.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) >= len(EDGE_TYPES) or int(match[2]) >= len(NODE_TYPES):
        raise errors.InvalidInput(
            "EdgeCursor", "is none", "the endCursor of the page of edges before, or the cursor of one of them"
        )
    return match[0]


def write(place: Place) -> Cursor:
    """Write the place of a row as a cursor."""
    return Cursor(f"{clock.to_micros(place[0])}.{place[1]}")


def place(cursor: str | None) -> Place | None:
    """Read a cursor as the place of a row."""
    if cursor is None:
        return None
    moment, event = cursor.split(".")
    return clock.from_micros(int(moment)), int(event)


def _as_it_is(value: object) -> object:
    return value


_long = _whole("Long", range(-(2**63), 2**63), "a whole number of at most 64 bits")
_SCALARS: Final[tuple[tuple[Any, str, str, Callable[[object], Any]], ...]] = (
    (Long, "Long", "A whole number of up to 64 bits, as a JSON integer.", _long),
    (
        DateTime,
        "DateTime",
        "An ISO 8601 time, in answers always UTC with microseconds. As a bound a date means all of that day.",
        _time,
    ),
    (Cursor, "Cursor", "The place of a row in a list; opaque.", _cursor),
    (EdgeCursor, "EdgeCursor", "The place of an edge among those of a node; opaque.", _edge_cursor),
    (
        PageSize,
        "PageSize",
        f"Rows of a page, 1 to {MAX_FIRST}.",
        _whole("PageSize", range(1, MAX_FIRST + 1), f"a whole number from 1 to {MAX_FIRST}"),
    ),
    (
        Length,
        "Length",
        f"Characters of a text, 1 to {MAX_LENGTH}.",
        _whole("Length", range(1, MAX_LENGTH + 1), f"a whole number from 1 to {MAX_LENGTH}"),
    ),
    (TimeZone, "TimeZone", "A time zone of the IANA database, such as Asia/Shanghai.", _zone),
)
SCALARS: Final[dict[object, ScalarDefinition]] = {
    python: strawberry.scalar(
        name=name, description=description, serialize=parse if parse is _long else _as_it_is, parse_value=parse
    )
    for python, name, description, parse in _SCALARS
}


@strawberry.enum(graphql_name_from="value", description="Where a decision stands.")
class DecisionStatus(Enum):
    PROPOSED = "proposed"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"


@strawberry.enum(graphql_name_from="value", description="Where a goal stands.")
class GoalStatus(Enum):
    ACTIVE = "active"
    COMPLETED = "completed"
    DROPPED = "dropped"


@strawberry.enum(graphql_name_from="value", description="Where a todo stands.")
class TodoStatus(Enum):
    PENDING = "pending"
    DONE = "done"
    DROPPED = "dropped"


@strawberry.enum(graphql_name_from="value", description="Where a candidate stands.")
class CandidateStatus(Enum):
    PENDING = "pending"
    PROMOTED = "promoted"
    REJECTED = "rejected"
    EXPIRED = "expired"


@strawberry.enum(graphql_name_from="value", description="Whether feedback still holds.")
class FeedbackStatus(Enum):
    ACTIVE = "active"
    REVOKED = "revoked"


@strawberry.enum(graphql_name_from="value", description="Whether a session goes on.")
class SessionStatus(Enum):
    ACTIVE = "active"
    ENDED = "ended"


@strawberry.enum(graphql_name_from="value", description="What `aggregate` sums.")
class Measure(Enum):
    """The names of `store.counts.MEASURES`."""

    EVENTS = "events"
    BYTES = "bytes"
    TOOL_ERRORS = "tool_errors"
    DECISIONS = "decisions"
    INJECTED_CHARS = "injected_chars"


@strawberry.enum(graphql_name_from="value", description="What `aggregate` groups by; a week is named by its Monday.")
class Dimension(Enum):
    """The names of `store.counts.DIMENSIONS`."""

    DAY = "day"
    WEEK = "week"
    KIND = "kind"
    HOST = "host"
    SESSION = "session"
    TOOL = "tool"


@strawberry.enum(graphql_name_from="value", description="What sort of file an asset is.")
class AssetKind(Enum):
    DOCUMENT = "document"
    REPORT = "report"
    CODE = "code"
    OTHER = "other"


@strawberry.enum(graphql_name_from="value", description="How far a decision, goal or piece of feedback holds.")
class Scope(Enum):
    SESSION = "session"
    PROJECT = "project"
    GLOBAL = "global"


@strawberry.enum(graphql_name_from="value", description="What a piece of feedback is.")
class FeedbackKind(Enum):
    PREFERENCE = "preference"
    CORRECTION = "correction"


def words(chosen: object) -> tuple[str, ...]:
    """Return the values of a list of enum members, of none when it was left out."""
    listed = chosen if isinstance(chosen, list) else []
    return tuple(str(one.value) for one in listed)


@strawberry.interface(description="Why nothing was done.")
class Refusal:
    message: str = strawberry.field(description="What is wrong and what would do, in one sentence.")


@strawberry.type(description="An argument outside the contract.")
class InvalidInput(Refusal):
    field: str = strawberry.field(description="Name of the argument.")
    problem: str = strawberry.field(description="What is wrong with it.")
    allowed: str = strawberry.field(description="What would do.")


@strawberry.type(description="A step that the present status does not allow.")
class InvalidTransition(Refusal):
    machine: str = strawberry.field(description="What has the status: decision, goal, todo, candidate, feedback, edge.")
    status: str = strawberry.field(description="The present status.")
    action: str = strawberry.field(description="The step that was asked for.")
    allowed_actions: list[str] = strawberry.field(description="The steps that are allowed; none from a final status.")


@strawberry.type(description="A record that changed since it was read.")
class Conflict(Refusal):
    target: str = strawberry.field(description="The record.")
    expected: Long = strawberry.field(description="The version that was asked for.")
    actual: Long = strawberry.field(description="The version it has.")


@strawberry.type(description="A change across the line of isolation.")
class AcrossIsolation(Refusal):
    target: str = strawberry.field(description="What cannot be reached or changed.")
    problem: str = strawberry.field(description="Why.")
    allowed: str = strawberry.field(description="Who could.")


@strawberry.type(description="Nothing is there.")
class NotFound(Refusal):
    target: str = strawberry.field(description="What was asked for.")
    suggestion: str = strawberry.field(description="A call of query_session_memory that runs as written.")


Problem = InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound


def problem(error: errors.GraphsvcError) -> Problem:
    """Return the member that says what an error says; raise one that is none of them again."""
    message = str(error)
    match error:
        case errors.InvalidInput():
            return InvalidInput(message=message, field=error.field, problem=error.problem, allowed=error.allowed)
        case errors.InvalidTransition():
            return InvalidTransition(
                message=message,
                machine=error.machine,
                status=error.status,
                action=error.action,
                allowed_actions=list(error.allowed),
            )
        case errors.Conflict():
            return Conflict(
                message=message,
                target=error.target,
                expected=Long(error.expected),
                actual=Long(error.actual),
            )
        case errors.Isolated():
            return AcrossIsolation(message=message, target=error.target, problem=error.problem, allowed=error.allowed)
        case errors.NotFoundError():
            return NotFound(message=message, target=error.target, suggestion=error.suggestion)
    raise error


@strawberry.type(description="How many there are of something.")
class Count:
    name: str = strawberry.field(description="Of what.")
    count: Long = strawberry.field(description="How many.")


def count_list(found: Mapping[str, int]) -> list[Count]:
    """Return counts by name as a list in order of the names."""
    return [Count(name=name, count=Long(count)) for name, count in sorted(found.items())]

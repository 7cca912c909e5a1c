"""The answers of the tool, as the protocol writes them (§2.2). These dataclasses are the GraphQL types.

Beside the protocol's keys an answer carries `status suggestion cursor notes`, only when there is something to say.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NewType

import strawberry

from graphsvc.model import Direction, EdgeType, EventKind, NodeType

# Bound to the scalars of these names in api.schema: JSON integers beyond 32 bits, and times in UTC.
Long = NewType("Long", int)
DateTime = NewType("DateTime", str)
# What the model's words are in the schema: said below every type that uses them, else they would be other types there.
_WORDS: Final[tuple[tuple[type[Enum], str, str], ...]] = (
    (EventKind, "EventKind", "What an event is."),
    (EdgeType, "EdgeType", "What an edge says: the five relations of the protocol."),
    (Direction, "Direction", "Upstream leads to causes, downstream to what came of something."),
    (NodeType, "NodeType", "What an id names."),
)
for _words, _name, _description in _WORDS:
    strawberry.enum(_words, name=_name, graphql_name_from="value", description=_description)


@strawberry.enum(graphql_name_from="value", description="What kind of answer this is.")
class NavKind(Enum):
    LIST = "list"
    NODE = "node"
    CONTENT = "content"
    HITS = "hits"


@strawberry.enum(graphql_name_from="value", description="What a row names. Goals, feedback and candidates are events.")
class NavType(Enum):
    SESSION = "session"
    ASSET = "asset"
    EVENT = "event"
    DECISION = "decision"
    TODO = "todo"


@strawberry.enum(graphql_name_from="value", description="Navigation primitive.")
class NavVerb(Enum):
    LS = "ls"
    CD = "cd"
    CAT = "cat"
    GREP = "grep"


@strawberry.enum(graphql_name_from="value", description="Order of rows by time.")
class Order(Enum):
    ASC = "asc"
    DESC = "desc"


@strawberry.enum(graphql_name_from="value", description="Kinds of events and records that can be asked for.")
class SearchKind(Enum):
    """The values of `model.ASKED_KINDS`; spelled out, because type checkers read no computed enum."""

    USER_MESSAGE = "user_message"
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    COMPACT_CHECKPOINT = "compact_checkpoint"
    GOAL = "goal"
    DECISION = "decision"
    FEEDBACK = "feedback"
    CANDIDATE = "candidate"
    TODO = "todo"
    ASSET = "asset"


STATUS = "found, degraded (a bounded search ran out of time) or not-found."


@strawberry.type(description="One row of an answer; pass its id back to nav.")
class NavItem:
    id: strawberry.ID = strawberry.field(description="A target of nav.")
    type: NavType = strawberry.field(description="What the row names.")
    label: str = strawberry.field(description="What it says; for cat, the content.")
    ref: str | None = strawberry.field(default=None, description="Path, edge, or the id of a record that is an event.")


@strawberry.type(description="Where an answer stands: session, asset, and the ids of the evidence behind it.")
class NavContext:
    session_id: str | None = strawberry.field(default=None, description="The host's id of the session.")
    asset_id: Long | None = strawberry.field(default=None, description="Number of the asset.")
    evidence: list[strawberry.ID] | None = strawberry.field(default=None, description="Ids of what shows it.")


@strawberry.type(description="The envelope of every navigation answer (protocol, section 2.2).")
class NavResult:
    kind: NavKind = strawberry.field(description="What the items are.")
    title: str = strawberry.field(description="What the answer is about.")
    items: list[NavItem] = strawberry.field(description="The rows; empty when nothing is there.")
    context: NavContext | None = strawberry.field(default=None, description="Where the answer stands.")
    status: str | None = strawberry.field(default=None, description="not-found when nothing is there.")
    suggestion: str | None = strawberry.field(default=None, description="A call that runs as written.")
    cursor: str | None = strawberry.field(default=None, description="Pass it back for the next page.")
    notes: list[str] | None = strawberry.field(default=None, description="What the reader should know about it.")


@strawberry.type(description="One result of a search.")
class SearchHit:
    id: strawberry.ID = strawberry.field(description="A target of nav.")
    kind: str = strawberry.field(description="Kind of the event, record or asset.")
    ts: str | None = strawberry.field(description="UTC time, as the host gave it.")
    seq: Long = strawberry.field(description="Place in its session.")
    session_id: str = strawberry.field(
        description="The host's id of the session; empty when that is of a project which is closed to who asks."
    )
    body: str = strawberry.field(description="The text, cut around the match when it is long.")
    score: float = strawberry.field(description="How well it matches; higher is better.")
    why: list[str] = strawberry.field(
        description="What matched: word, identifier, date, substring (a query without words; for grep a title or path)"
        ", filter (no query); then status:… of a record that no longer holds, scope:… of one that does not hold in its"
        " project."
    )


@strawberry.type(description="The answer of a search.")
class SearchResult:
    status: str = strawberry.field(description=STATUS)
    results: list[SearchHit] = strawberry.field(description="The hits, best or newest first.")
    count: Long | None = strawberry.field(default=None, description="All hits, when count_only was asked.")
    cursor: str | None = strawberry.field(default=None, description="Pass it back for the next page.")
    suggestion: str | None = strawberry.field(default=None, description="A call that runs as written.")
    notes: list[str] | None = strawberry.field(default=None, description="What the reader should know about it.")

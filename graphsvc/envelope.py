"""The answers of the tool, as the protocol writes them (§2.2). These dataclasses are the GraphQL types.

Beside the protocol's keys an answer carries `status suggestion cursor notes`, only when there is something to say.
"""

from __future__ import annotations

from enum import Enum
from typing import NewType

import strawberry

from graphsvc.model import PROTOCOL_KINDS


Long = NewType("Long", int)  # bound to the scalar of that name in api.schema: JSON integers beyond 32 bits


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


SearchKind = strawberry.enum(
    Enum("SearchKind", [(kind.name, kind.value) for kind in PROTOCOL_KINDS]),  # type: ignore[misc]  # values are the protocol's
    graphql_name_from="value",
    description="Kinds of events and records that can be asked for.",
)


STATUS = "found, degraded (a bounded search ran out of time) or not-found."


@strawberry.type(description="One row of an answer; pass its id back to nav.")
class NavItem:
    id: strawberry.ID
    type: NavType
    label: str
    ref: str | None = None


@strawberry.type(description="Where an answer stands: session, asset, and the ids of the evidence behind it.")
class NavContext:
    session_id: str | None = None
    asset_id: Long | None = None
    evidence: list[strawberry.ID] | None = None


@strawberry.type(description="The envelope of every navigation answer (protocol, section 2.2).")
class NavResult:
    kind: NavKind
    title: str
    items: list[NavItem]
    context: NavContext | None = None
    status: str | None = strawberry.field(default=None, description="not-found when nothing is there.")
    suggestion: str | None = strawberry.field(default=None, description="A call that runs as written.")
    cursor: str | None = strawberry.field(default=None, description="Pass it back for the next page.")
    notes: list[str] | None = strawberry.field(default=None, description="What the reader should know about the answer.")


@strawberry.type(description="One result of a search.")
class SearchHit:
    id: strawberry.ID
    kind: str
    ts: str | None
    seq: Long
    session_id: str
    body: str = strawberry.field(description="The text, cut around the match when it is long.")
    score: float
    why: list[str] = strawberry.field(description="What matched: word, identifier, phrase, substring, filter.")
    context: bool | None = strawberry.field(default=None, description="True for a neighbour of a hit.")


@strawberry.type(description="The answer of a search.")
class SearchResult:
    status: str = strawberry.field(description=STATUS)
    results: list[SearchHit]
    count: Long | None = strawberry.field(default=None, description="All hits, when count_only was asked.")
    cursor: str | None = None
    suggestion: str | None = None
    notes: list[str] | None = None

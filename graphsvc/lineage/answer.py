"""What lineage is answered with: a bounded part of the graph that says whether it is all there is.

An answer without truncation is a promise: nothing that the viewer may see was left out, at the position it tells. These
dataclasses are the GraphQL types.
"""

from __future__ import annotations

from enum import StrEnum

import strawberry

from graphsvc.envelope import DateTime, Long
from graphsvc.model import Direction, EdgeType, NodeType


@strawberry.enum(graphql_name_from="value", description="Why an answer is not all there is.")
class Reason(StrEnum):
    NODES = "max_nodes"
    EDGES = "max_edges"
    DEPTH = "max_depth"
    FANOUT = "fanout"
    DEADLINE = "deadline"


@strawberry.type(description="A node that is reached from another one.")
class Reached:
    id: strawberry.ID = strawberry.field(description="Its id.")
    type: NodeType = strawberry.field(description="What it is.")
    label: str = strawberry.field(description="What it says, at most 120 characters of it.")
    status: str | None = strawberry.field(description="Of a record: its status at the moment that was asked for.")
    at: DateTime = strawberry.field(description="Its time.")
    depth: int = strawberry.field(description="The fewest edges from where it was reached.")


@strawberry.type(description="A node that a walk reached.")
class Vertex(Reached):
    depth: int = strawberry.field(description="Edges from the root, on the way it was reached by.")
    via: strawberry.ID | None = strawberry.field(description="The node it was reached from first; null for the root.")
    upstream_total: Long = strawberry.field(
        description="All its edges towards causes that the asker may see, within the filter, returned or not."
    )
    downstream_total: Long = strawberry.field(description="The same towards results.")
    hidden: bool = strawberry.field(description="Whether it has neighbours that the asker may not see; never how many.")
    on_cycle: bool = strawberry.field(description="Whether it leads to itself over edges of this answer.")


@strawberry.type(description="An edge between two nodes, as it is stored: written from its source to its target.")
class Link:
    type: EdgeType = strawberry.field(description="What it says.")
    source: strawberry.ID = strawberry.field(description="Id of the node it is written from.")
    target: strawberry.ID = strawberry.field(description="Id of the node it is written to.")
    rule: str = strawberry.field(description="Why it was written.")
    confidence: str = strawberry.field(description="stated by a host or a person, or inferred.")
    begin_event: Long = strawberry.field(description="Ledger position of the event that began it.")
    begin_at: DateTime = strawberry.field(description="Time of that event.")
    end_event: Long | None = strawberry.field(description="Ledger position of the event that ended it.")
    end_at: DateTime | None = strawberry.field(description="Time of that event.")


@strawberry.type(description="What was left out of an answer.")
class Truncation:
    reasons: list[Reason] = strawberry.field(
        default_factory=list, description="Why; nothing when the answer is complete."
    )
    depth: int = strawberry.field(default=0, description="Of the deepest node returned.")
    seen: Long = strawberry.field(
        default=Long(0), description="Nodes that were reached, returned or not: at least so many are there."
    )
    frontier: list[strawberry.ID] = strawberry.field(
        default_factory=list,
        description="Nodes whose neighbours were not all looked at, the first 20 of them: roots to go on from.",
    )
    resume: str | None = strawberry.field(
        default=None,
        description="Goes on with this walk: it returns what was not returned before. It is of this question only.",
    )

    truncated: bool = strawberry.field(
        default=False, description="Whether something was left out. When false, the answer is all there is."
    )

    def __post_init__(self) -> None:
        self.truncated = bool(self.reasons)


@strawberry.type(description="Which state of the ledger an answer tells, and who told it.")
class Freshness:
    engine: str = strawberry.field(description="sqlite, which is never behind, or kuzu.")
    ledger: Long = strawberry.field(description="Position of the newest event when it was asked.")
    graph: Long = strawberry.field(description="Position up to which the engine knew the ledger.")
    elapsed_ms: float = strawberry.field(description="How long it took, in milliseconds.")
    as_of: str | None = strawberry.field(default=None, description="The moment that was asked for.")
    lag: Long = strawberry.field(default=Long(0), description="How many events the engine is behind.")

    def __post_init__(self) -> None:
        self.lag = Long(self.ledger - self.graph)


@strawberry.type(description="The part of the graph around a node, breadth first.")
class Lineage:
    root: strawberry.ID = strawberry.field(description="Where it begins.")
    direction: Direction = strawberry.field(description="Where it goes.")
    nodes: list[Vertex] = strawberry.field(description="The nodes, in the order they were reached.")
    edges: list[Link] = strawberry.field(description="The edges between them and with those of earlier answers.")
    cycles: list[list[strawberry.ID]] = strawberry.field(description="Groups of nodes that all lead to each other.")
    truncation: Truncation = strawberry.field(description="Whether this is all, and how to go on.")
    freshness: Freshness = strawberry.field(description="Which state of the ledger this is.")


@strawberry.type(description="How many nodes of a type are reached.")
class TypeCount:
    type: NodeType = strawberry.field(description="Of what.")
    count: Long = strawberry.field(description="How many.")


@strawberry.type(description="What came of a node, or what it came from: counted whole, listed in pages.")
class Impact:
    root: strawberry.ID = strawberry.field(description="Where it begins.")
    direction: Direction = strawberry.field(description="Where it goes.")
    total: Long = strawberry.field(description="Nodes that are reached, the root not among them.")
    partial: bool = strawberry.field(description="Whether there may be more than were counted.")
    by_type: list[TypeCount] = strawberry.field(description="How many of each type.")
    by_depth: list[Long] = strawberry.field(description="How many at each distance, beginning with 1.")
    nodes: list[Reached] = strawberry.field(description="A page of them, nearest first.")
    end_cursor: str | None = strawberry.field(description="The `after` of the next page; null at the end.")
    freshness: Freshness = strawberry.field(description="Which state of the ledger this is.")


@strawberry.enum(graphql_name_from="value", description="Which ways between two nodes are asked for.")
class PathMode(StrEnum):
    SHORTEST = "shortest"
    SUBGRAPH = "subgraph"


@strawberry.type(description="The ways from one node to another that the asker may see.")
class PathSet:
    mode: PathMode = strawberry.field(description="The shortest way, or all that lies on ways of at most a length.")
    length: int | None = strawberry.field(description="Edges of the shortest way; null when none was found.")
    nodes: list[Reached] = strawberry.field(description="The nodes, by their distance from the first one.")
    edges: list[Link] = strawberry.field(description="The edges between them that lead on.")
    partial: bool = strawberry.field(description="Whether not all was looked at: there may be more ways.")
    freshness: Freshness = strawberry.field(description="Which state of the ledger this is.")


@strawberry.type(description="A record that has another status than before.")
class StatusStep:
    id: strawberry.ID = strawberry.field(description="Its id.")
    before: str | None = strawberry.field(description="Its status before; null when it is new.")
    to: str = strawberry.field(description="Its status from then on.")
    at: DateTime = strawberry.field(description="When.")
    event: strawberry.ID = strawberry.field(description="The event that changed it.")


@strawberry.type(description="What changed around a node between two moments.")
class LineageDiff:
    root: strawberry.ID = strawberry.field(description="Where it begins.")
    added_nodes: list[Reached] = strawberry.field(description="Nodes that are reached now and were not.")
    removed_nodes: list[Reached] = strawberry.field(description="Nodes that were reached and are not any more.")
    added_edges: list[Link] = strawberry.field(description="Edges that stand now and did not.")
    removed_edges: list[Link] = strawberry.field(description="Edges that stood and do not any more.")
    statuses: list[StatusStep] = strawberry.field(description="Status changes of the records among them, in order.")
    partial: bool = strawberry.field(description="Whether either moment reaches more than could be compared.")
    freshness: Freshness = strawberry.field(description="Which state of the ledger this is.")

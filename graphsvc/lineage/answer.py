"""What lineage is answered with: a bounded part of the graph that says whether it is all there is.

An answer without truncation is a promise: nothing that the viewer may see was left out, at the position it tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from graphsvc.model import Direction, EdgeType, NodeType


class Reason(StrEnum):
    """Why an answer is not all there is."""

    NODES = "max_nodes"
    EDGES = "max_edges"
    DEPTH = "max_depth"
    FANOUT = "fanout"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """A node that a walk reached. Totals count all neighbours that the viewer may see within the filter."""

    id: str  # as every answer prints it: `decision-41`, `session-<host id>`
    type: NodeType
    label: str  # at most 120 characters
    status: str | None  # of a record, at the moment that was asked for
    at: str  # UTC
    depth: int  # edges from the root
    via: str | None  # the node it was reached from first
    upstream_total: int
    downstream_total: int
    hidden: bool  # it has neighbours that the viewer may not see; how many is not told
    on_cycle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An edge between two returned nodes, as it is stored: `source` and `target` are what it is written from and to."""

    type: EdgeType
    source: str
    target: str
    rule: str
    confidence: str  # stated or inferred
    begin_event: int
    begin_at: str
    end_event: int | None
    end_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What was left out. `resume` continues the walk: what it returns then was not returned before."""

    reasons: tuple[Reason, ...] = ()
    depth: int = 0  # of the deepest node returned
    seen: int = 0  # nodes that were reached, returned or not: at least so many are there
    frontier: tuple[str, ...] = ()  # nodes whose neighbours were not all looked at; the first of them
    resume: str | None = None

    @property
    def truncated(self) -> bool:
        return bool(self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Which state of the ledger an answer tells, and who told it."""

    engine: str  # sqlite or kuzu
    ledger: int  # position of the newest event when it was asked
    graph: int  # position up to which the engine knew the ledger
    elapsed_ms: float
    as_of: str | None = None  # the moment that was asked for

    @property
    def lag(self) -> int:
        return self.ledger - self.graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The part of the graph around a node, breadth first."""

    root: str
    direction: Direction
    nodes: tuple[Vertex, ...]
    edges: tuple[Link, ...]
    cycles: tuple[tuple[str, ...], ...]  # nodes that reach each other, among those returned
    truncation: Truncation
    freshness: Freshness

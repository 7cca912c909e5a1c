"""What the store holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from graphsvc.store import counts
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts of what the viewer may see; positions are of the whole ledger."""

    projects: int
    sessions: int
    events: int
    kinds: dict[str, int]
    records: dict[str, int]  # `decision active` → how many
    assets: int
    versions: int
    edges: dict[str, int]
    gaps: int
    position: int
    indexed: int


def stats(db: Connection, viewer: Viewer) -> Stats:
    """Count what the viewer may see."""
    return Stats(
        projects=counts.projects(db, viewer),
        sessions=counts.sessions(db, viewer),
        events=sum(counts.kinds(db, viewer).values()),
        kinds=counts.kinds(db, viewer),
        records=counts.records(db, viewer),
        assets=counts.assets(db, viewer),
        versions=counts.versions(db, viewer),
        edges=counts.edges(db, viewer),
        gaps=counts.gaps(db),
        position=counts.position(db),
        indexed=counts.indexed(db),
    )

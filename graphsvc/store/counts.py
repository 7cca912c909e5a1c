"""Counts of what a viewer may see, each one statement."""

from __future__ import annotations

from dataclasses import dataclass

from graphsvc.store import events
from graphsvc.store.database import Connection, snapshot
from graphsvc.store.visibility import Viewer, clause


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
    gaps: int | None  # of all projects, so for the owner only
    position: int
    indexed: int


def stats(db: Connection, viewer: Viewer) -> Stats:
    """Count what the viewer may see, at one moment."""
    with snapshot(db):
        by_kind = kinds(db, viewer)
        return Stats(
            projects=projects(db, viewer),
            sessions=sessions(db, viewer),
            events=sum(by_kind.values()),
            kinds=by_kind,
            records=records(db, viewer),
            assets=assets(db, viewer),
            versions=versions(db, viewer),
            edges=edges(db, viewer),
            gaps=gaps(db) if viewer.everywhere else None,
            position=events.position(db),
            indexed=indexed(db),
        )


def projects(db: Connection, viewer: Viewer) -> int:
    """Count the projects in scope."""
    return _one(db, "SELECT COUNT(*) FROM projects p WHERE {scope}", viewer, "p.id")


def sessions(db: Connection, viewer: Viewer) -> int:
    """Count the sessions in scope."""
    return _one(db, "SELECT COUNT(*) FROM sessions s WHERE {scope}", viewer, "s.project")


def kinds(db: Connection, viewer: Viewer) -> dict[str, int]:
    """Count the visible events by kind."""
    return _groups(
        db,
        "SELECT e.kind, COUNT(*) FROM events e WHERE {scope} AND {seen} GROUP BY 1 ORDER BY 1",
        viewer,
        "e.project",
        "e.id",
    )


def records(db: Connection, viewer: Viewer) -> dict[str, int]:
    """Count the visible records by type and status."""
    query = "SELECT r.type || ' ' || r.status, COUNT(*) FROM records r WHERE {scope} AND {seen} GROUP BY 1 ORDER BY 1"
    return _groups(db, query, viewer, "r.project", "r.id")


def assets(db: Connection, viewer: Viewer) -> int:
    """Count the assets with a visible version."""
    return _one(
        db,
        "SELECT COUNT(DISTINCT v.asset) FROM asset_versions v WHERE {scope} AND {seen}",
        viewer,
        "v.project",
        "v.event",
    )


def versions(db: Connection, viewer: Viewer) -> int:
    """Count the visible versions."""
    return _one(db, "SELECT COUNT(*) FROM asset_versions v WHERE {scope} AND {seen}", viewer, "v.project", "v.event")


def edges(db: Connection, viewer: Viewer) -> dict[str, int]:
    """Count the visible edges that have not ended, by type."""
    query = (
        "SELECT g.type, COUNT(*) FROM lineage_edges g JOIN events e ON e.id = g.begin_event"
        " WHERE g.end_event IS NULL AND {scope} AND {seen} GROUP BY 1 ORDER BY 1"
    )
    return _groups(db, query, viewer, "e.project", "g.begin_event")


def gaps(db: Connection) -> int:
    """Count the lines of imported files that could not be read."""
    return int(db.execute("SELECT COUNT(*) FROM gaps").fetchone()[0])


def indexed(db: Connection) -> int:
    """Return the position the word index holds."""
    return int(db.execute("SELECT COALESCE(MAX(position), 0) FROM read_models WHERE name = 'words'").fetchone()[0])


def _one(db: Connection, query: str, viewer: Viewer, project: str, event: str | None = None) -> int:
    text, values = _filled(query, viewer, project, event)
    return int(db.execute(text, values).fetchone()[0])


def _groups(db: Connection, query: str, viewer: Viewer, project: str, event: str) -> dict[str, int]:
    text, values = _filled(query, viewer, project, event)
    return {row[0]: row[1] for row in db.execute(text, values)}


def _filled(query: str, viewer: Viewer, project: str, event: str | None) -> tuple[str, list[object]]:
    scope, values = ("1", []) if viewer.project is None else (f"{project} = ?", [viewer.project])
    seen, more = clause(viewer, event) if event else ("1", [])
    return query.format(scope=scope, seen=seen), [*values, *more]

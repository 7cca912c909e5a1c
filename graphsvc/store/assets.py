"""Assets as a viewer may see them: what is known of one comes from its visible versions."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from graphsvc.model import Version
from graphsvc.store.database import Connection
from graphsvc.store.view import version
from graphsvc.store.visibility import Viewer, clause


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetRow:
    """An asset with the title and the reference of its newest visible version."""

    id: int
    project: int
    project_key: str
    path: str
    kind: str
    title: str
    versions: int
    at: str
    ref: str | None
    whole: bool  # the newest visible version's text is known


def get(db: Connection, viewer: Viewer, number: int) -> AssetRow | None:
    """Return an asset; None when the viewer may see no version of it."""
    found = _select(db, viewer, "a.id = ?", [number])
    return found[0] if found and viewer.reaches(found[0].project) else None


def nearest(db: Connection, viewer: Viewer, number: int) -> int | None:
    """Return the number of the visible asset in scope that is nearest to a number."""
    condition, values = clause(viewer, "v.event")
    scope, project = ("1", []) if viewer.project is None else ("v.project = ?", [viewer.project])
    row = db.execute(
        f"SELECT v.asset FROM asset_versions v WHERE {scope} AND {condition}"
        " ORDER BY ABS(v.asset - ?), v.asset LIMIT 1",
        [*project, *values, min(number, 2**62)],
    ).fetchone()
    return row["asset"] if row else None


def produced(db: Connection, viewer: Viewer, session: int) -> list[AssetRow]:
    """List what a session wrote: documents and reports first, then by path."""
    condition, values = clause(viewer, "own.event")
    where = (
        "a.id IN (SELECT asset FROM asset_versions own WHERE"
        f" (own.session = ? OR own.event IN (SELECT event FROM membership WHERE session = ?)) AND {condition})"
    )
    return _select(db, viewer, where, [session, session, *values])


def at_path(db: Connection, viewer: Viewer, path: str) -> list[AssetRow]:
    """Find assets by document path: the exact path, else every path that ends with it at a `/`."""
    exact = _select(db, viewer, "(a.path = ? OR p.key || '/' || a.path = ?)", [path, path])
    # What other projects hold decides nothing for a viewer that they are closed to.
    exact = [row for row in exact if viewer.reaches(row.project)]
    if exact:
        return [row for row in exact if viewer.project in {None, row.project}] or exact
    suffix = "/" + path.lstrip("/")
    scope, values = ("1", []) if viewer.project is None else ("a.project = ?", [viewer.project])
    return _select(db, viewer, f"substr(a.path, -length(?)) = ? AND {scope}", [suffix, suffix, *values])


def paths(db: Connection, viewer: Viewer, limit: int = 500) -> list[str]:
    """List the paths in scope, newest first, for help with spelling."""
    scope, values = ("1", []) if viewer.project is None else ("a.project = ?", [viewer.project])
    return [row.path for row in _select(db, viewer, scope, list(values), limit)]


def versions(db: Connection, viewer: Viewer, asset: int) -> list[Version]:
    """List the visible versions of an asset, oldest first."""
    condition, values = clause(viewer, "v.event")
    rows = db.execute(
        f"SELECT v.* FROM asset_versions v WHERE v.asset = ? AND {condition} ORDER BY v.at, v.event", [asset, *values]
    )
    return [version(row) for row in rows]


def newest(db: Connection, asset: int) -> int:
    """Return the event of an asset's newest version, whoever may see it."""
    row = db.execute("SELECT event FROM asset_versions WHERE asset = ? ORDER BY at DESC, event DESC LIMIT 1", (asset,))
    return int(row.fetchone()["event"])


def version_of(db: Connection, event: int) -> Version | None:
    """Return the version that an asset event wrote."""
    row = db.execute("SELECT * FROM asset_versions WHERE event = ?", (event,)).fetchone()
    return version(row) if row else None


def written_by(db: Connection, event: int) -> list[Version]:
    """List the versions that a tool call or its result wrote, or that a commit event covers."""
    rows = db.execute("SELECT * FROM asset_versions WHERE ? IN (call, result, ref_event) ORDER BY at, event", (event,))
    return [version(row) for row in rows]


def _select(db: Connection, viewer: Viewer, where: str, values: list[object], limit: int = -1) -> list[AssetRow]:
    condition, seen = clause(viewer, "v.event")
    rows = db.execute(
        "SELECT a.id, a.project, p.key AS project_key, a.path, a.kind, v.title, v.at, v.ref,"
        " v.content IS NOT NULL AS whole, COUNT(*) AS versions, MAX(v.at || printf('%020d', v.event)) AS newest"
        " FROM knowledge_assets a JOIN projects p ON p.id = a.project JOIN asset_versions v ON v.asset = a.id"
        f" WHERE {where} AND {condition} GROUP BY a.id"
        " ORDER BY CASE a.kind WHEN 'document' THEN 0 WHEN 'report' THEN 0 ELSE 1 END, a.path LIMIT ?",
        [*values, *seen, limit],
    )
    return [_asset(row) for row in rows]


def _asset(row: sqlite3.Row) -> AssetRow:
    # SQLite takes the bare columns of a MAX() group from the row that holds the maximum: the newest visible version.
    values = dict(row)
    values.pop("newest")
    return AssetRow(**{**values, "whole": bool(values["whole"])})

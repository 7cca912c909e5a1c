"""Assets as a viewer may see them: what is known of one comes from its visible versions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from graphsvc.model import Version
from graphsvc.store.database import Connection
from graphsvc.store.view import version
from graphsvc.store.visibility import Viewer, clause

# A version without its text.
VERSION: Final = ", ".join(
    "NULL AS content" if item.name == "content" else f"v.{item.name}" for item in fields(Version)
)
_ASSET: Final = (
    "first.event AS id, a.id AS key, a.project, p.key AS project_key, a.path, first.kind, v.title, v.at, v.ref"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetRow:
    """An asset with the title and the reference of its newest visible version.

    `id` is the number it is known by: the event of its first visible version, which says its kind too. `key` is what
    the store keeps it under, which others learn nothing of when that one is isolated.
    """

    id: int
    key: int
    project: int
    project_key: str
    path: str
    kind: str
    title: str
    versions: int
    at: str
    ref: str | None


def get(db: Connection, viewer: Viewer, number: int) -> AssetRow | None:
    """Return the asset of that number in the viewer's reach; None when the viewer may see no version of it."""
    found = _select(db, viewer, "a.id = (SELECT asset FROM asset_versions own WHERE own.event = ?)", [number])
    if not found or not viewer.reaches(found[0].project):
        return None
    # To the session that wrote it in isolation first, it has two numbers: its own, and the one that all others know.
    shared = [] if found[0].id == number else by_key(db, Viewer(), found[0].key)
    return found[0] if number in {found[0].id, *(one.id for one in shared)} else None


def by_key(db: Connection, viewer: Viewer, key: int) -> list[AssetRow]:
    """Return the asset that the store keeps under this key; nothing when the viewer may see no version of it."""
    return _select(db, viewer, "a.id = ?", [key])


def by_keys(db: Connection, viewer: Viewer, keys: Iterable[int]) -> list[AssetRow]:
    """Return those of the assets that the store keeps under these keys of which the viewer may see a version."""
    return _select(db, viewer, "a.id IN (SELECT value FROM json_each(?))", [json.dumps(list(keys))])


def keys(db: Connection, named: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """Return what the store keeps assets under, that are named as (project, path)."""
    rows = db.execute(
        "SELECT a.project, a.path, a.id FROM json_each(?) j JOIN knowledge_assets a"
        " ON a.project = json_extract(j.value, '$[0]') AND a.path = json_extract(j.value, '$[1]')",
        (json.dumps(list(named)),),
    )
    return {(row["project"], row["path"]): row["id"] for row in rows}


def contents(db: Connection, viewer: Viewer, keys: Iterable[int]) -> dict[int, str]:
    """Return of each of the assets the newest text that is known whole, as far as the viewer may see it."""
    condition, values = clause(viewer, "v.event")
    rows = db.execute(
        "SELECT * FROM (SELECT v.*, ROW_NUMBER() OVER (PARTITION BY v.asset ORDER BY v.at DESC, v.event DESC) AS number"
        " FROM asset_versions v WHERE v.asset IN (SELECT value FROM json_each(?)) AND v.hash IS NOT NULL"
        f" AND {condition}) WHERE number = 1",
        [json.dumps(list(keys)), *values],
    )
    found = map(version, rows)
    return {one.asset: one.content for one in found if one.content is not None}


def texts(db: Connection, numbers: Iterable[int]) -> dict[int, str]:
    """Return the whole texts of versions, of those that are known whole."""
    rows = db.execute(
        "SELECT * FROM asset_versions WHERE event IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),)
    )
    return {one.event: one.content for one in map(version, rows) if one.content is not None}


def nearest(db: Connection, viewer: Viewer, number: int) -> int | None:
    """Return the number of the visible asset in scope that is nearest to a number."""
    condition, values = clause(viewer, "v.event")
    scope, project = ("1", []) if viewer.project is None else ("v.project = ?", [viewer.project])
    row = db.execute(
        f"SELECT MIN(v.event) AS number FROM asset_versions v WHERE {scope} AND {condition} GROUP BY v.asset"
        " ORDER BY ABS(MIN(v.event) - ?), number LIMIT 1",
        [*project, *values, min(number, 2**62)],
    ).fetchone()
    return row["number"] if row else None


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


def of_path(db: Connection, viewer: Viewer, path: str) -> list[AssetRow]:
    """List the assets in scope that a path of a working tree may be.

    That is the file of that path, or the one that another working tree has there: it is kept under its whole path.
    """
    scope, values = ("1", []) if viewer.project is None else ("a.project = ?", [viewer.project])
    end = "/" + path.lstrip("/")
    rows = db.execute(
        "SELECT a.id FROM knowledge_assets a JOIN projects p ON p.id = a.project WHERE (a.path = ? OR"
        " p.key || '/' || a.path = ? OR (substr(a.path, 1, 1) = '/' AND substr(a.path, -length(?)) = ?))"
        f" AND {scope}",
        [path, path, end, end, *values],
    )
    return by_keys(db, viewer, [row["id"] for row in rows])


def of_hash(db: Connection, viewer: Viewer, project: int, digest: str) -> list[Version]:
    """List the visible versions of a project whose whole text has this hash, oldest first, without their texts."""
    condition, values = clause(viewer, "v.event")
    rows = db.execute(
        f"SELECT {VERSION} FROM asset_versions v WHERE v.project = ? AND v.hash = ? AND {condition}"
        " ORDER BY v.at, v.event",
        [project, digest, *values],
    )
    return [version(row) for row in rows]


def holding(db: Connection, viewer: Viewer, text: str, until: str | None, most: int) -> tuple[list[Version], bool]:
    """List the versions in scope that hold a text, newest first, without their texts.

    The newest `most` until a time are looked into; the second value says whether there are more.
    """
    condition, seen = clause(viewer, "n.event")
    scope, project = ("1", []) if viewer.project is None else ("n.project = ?", [viewer.project])
    looked = (
        f"SELECT n.event FROM asset_versions n WHERE {scope} AND n.at <= ? AND {condition}"
        " ORDER BY n.at DESC, n.event DESC LIMIT ?"
    )
    values = [*project, until or "9999", *seen]
    rows = db.execute(
        f"SELECT {VERSION} FROM ({looked}) one JOIN asset_versions v ON v.event = one.event"
        " WHERE v.content IS NOT NULL AND instr(inflated(v.content), ?) > 0 ORDER BY v.at DESC, v.event DESC",
        [*values, most, text.encode("utf-8", "surrogatepass")],
    )
    found = [version(row) for row in rows]
    count = db.execute(f"SELECT COUNT(*) FROM ({looked})", [*values, most + 1]).fetchone()[0]
    return found, count > most


def paths(db: Connection, viewer: Viewer, limit: int = 500) -> list[str]:
    """List paths in scope, documents first, for help with spelling."""
    scope, values = ("1", []) if viewer.project is None else ("a.project = ?", [viewer.project])
    return [row.path for row in _select(db, viewer, scope, list(values), limit)]


def columns(viewer: Viewer) -> tuple[str, list[object]]:
    """Return the columns of an AssetRow, and their parameters.

    They stand beside the newest version `v` and the `first` one that the viewer may see.
    """
    condition, seen = clause(viewer, "o.event")
    return f"{_ASSET}, (SELECT COUNT(*) FROM asset_versions o WHERE o.asset = a.id AND {condition}) AS versions", seen


def first(viewer: Viewer) -> tuple[str, list[object]]:
    """Return the join of an asset `a` with its first version that the viewer may see, and its parameters."""
    condition, seen = clause(viewer, "f.event")
    number = f"(SELECT f.event FROM asset_versions f WHERE f.asset = a.id AND {condition} ORDER BY f.event LIMIT 1)"
    return f" JOIN asset_versions first ON first.event = {number}", seen


def read(row: sqlite3.Row) -> AssetRow:
    """Read the columns of an AssetRow."""
    return AssetRow(**{item.name: row[item.name] for item in fields(AssetRow)})


def versions(db: Connection, viewer: Viewer, asset: int) -> list[Version]:
    """List the visible versions of an asset, oldest first, without their texts: `version_of` has one's."""
    condition, values = clause(viewer, "v.event")
    rows = db.execute(
        f"SELECT {VERSION} FROM asset_versions v WHERE v.asset = ? AND {condition} ORDER BY v.at, v.event",
        [asset, *values],
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
    rows = db.execute(
        "SELECT * FROM asset_versions WHERE call = ? OR result = ? OR ref_event = ? ORDER BY at, event", (event,) * 3
    )
    return [version(row) for row in rows]


def _select(db: Connection, viewer: Viewer, where: str, values: list[object], limit: int = -1) -> list[AssetRow]:
    condition, seen = clause(viewer, "v.event")
    join, seen_first = first(viewer)
    # Of one path the project decides: what the store keeps them under may be the number of an isolated event.
    rows = db.execute(
        f"SELECT {_ASSET}, COUNT(*) AS versions, MAX(v.at || printf('%020d', v.event)) AS newest"
        f" FROM knowledge_assets a JOIN projects p ON p.id = a.project{join} JOIN asset_versions v ON v.asset = a.id"
        f" WHERE {where} AND {condition} GROUP BY a.id"
        " ORDER BY CASE first.kind WHEN 'document' THEN 0 WHEN 'report' THEN 0 ELSE 1 END, a.path, p.key LIMIT ?",
        [*seen_first, *values, *seen, limit],
    )
    # SQLite takes the bare columns of a MAX() group from the row that holds the maximum: the newest visible version.
    return [read(row) for row in rows]

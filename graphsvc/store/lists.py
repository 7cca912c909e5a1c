"""Keyset pages: what a list holds for one viewer, in order of time, each page one statement.

A page goes on behind the place of its last row, so events, records and versions neither repeat nor are left out while
events arrive; sessions and assets move to the front when they go on. What many parents list at once (the todos of each
session of a page) is one statement too, cut for each parent.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from graphsvc.store import assets, events, sessions, view
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer, clause, held

MOST_COUNTED: Final = 10_000
# When something was stored: what a host dates back arrives late, and who asks what is new must get it.
_RECEIVED: Final = "(SELECT c.received_at FROM events c WHERE c.id = {})"
Place = tuple[str, int]  # the time a row is ordered by, and the event that tells it from others of that time
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which rows of a list. Times are UTC text and inclusive; `after` is the place of the row before the first one."""

    viewer: Viewer
    after: Place | None = None
    ascending: bool = False
    types: tuple[str, ...] = ()  # kinds of events and assets, types of records, hosts of sessions
    statuses: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    updated_after: str | None = None
    session: int | None = None
    among: frozenset[int] | None = None  # only what stands for one of these events
    scopes: tuple[str, ...] = ()  # of records: how far they hold
    holding: bool = False  # of records: without those that hold in other sessions than the viewer's only
    words: tuple[str, ...] = ()  # of sessions: what title or id hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Generic[T]):
    """A list as SQL: where its rows come from, and what the filters mean in it."""

    read: Callable[[sqlite3.Row], T]
    columns: str
    tables: str
    at: str
    event: str
    project: str
    session: str | None = None
    type: str | None = None
    status: str | None = None
    updated: str | None = None
    where: str = "1"
    shown: bool = True  # whether a row is as visible as its event
    held: str | None = None  # the table of records, of which some hold in every project
    ranked: bool = False  # whether no index leads from a parent to its rows
    values: tuple[object, ...] = ()  # of the columns
    joined: tuple[object, ...] = ()  # of the tables
    conditions: tuple[object, ...] = ()  # of `where`


EVENTS: Final = Listed(
    read=events.read,
    columns=events.ROW,
    tables=events.ROW_FROM,
    at="e.at",
    event="e.id",
    project="e.project",
    session="e.session",
    type="e.kind",
    updated="e.received_at",
)
RECORDS: Final = Listed(
    read=view.record,
    columns="r.*",
    tables="records r",
    at="r.at",
    event="r.id",
    project="r.project",
    session="r.session",
    type="r.type",
    status="r.status",
    updated=_RECEIVED.format("r.changed_event"),
    held="r",
)
VERSIONS: Final = Listed(
    read=view.version,
    columns=assets.VERSION,
    tables="asset_versions v",
    at="v.at",
    event="v.event",
    project="v.project",
    session="v.session",
    updated=_RECEIVED.format("v.event"),
)
SESSIONS: Final = Listed(
    read=sessions.read,
    columns="*",
    tables=f"({sessions.SELECT}) s",
    at="s.last_at",
    event="s.last_event",
    project="s.project",
    session="s.id",
    type="s.host",
    status="CASE s.ended WHEN 1 THEN 'ended' ELSE 'active' END",
    updated=_RECEIVED.format("s.last_event"),
    shown=False,
)


def assets_of(viewer: Viewer, *, by_session: bool) -> Listed[AssetRow]:
    """Return the list of assets: each stands at its newest version that the viewer may see.

    `by_session`: once for every session that wrote it, as far as the viewer may see that.
    """
    newer, seen = clause(viewer, "n.event")
    wrote, by = clause(viewer, "o.event")
    writers = (
        " JOIN (SELECT DISTINCT o.session AS writer, o.asset FROM asset_versions o"
        f" WHERE {wrote}) written ON written.asset = v.asset"
    )
    columns, values = assets.columns(viewer)
    first, seen_first = assets.first(viewer)
    return Listed(
        read=assets.read,
        columns=columns,
        tables="asset_versions v JOIN knowledge_assets a ON a.id = v.asset JOIN projects p ON p.id = a.project"
        f"{first}{writers if by_session else ''}",
        session="written.writer" if by_session else None,
        at="v.at",
        event="v.event",
        project="v.project",
        type="first.kind",
        updated=_RECEIVED.format("v.event"),
        where="NOT EXISTS (SELECT 1 FROM asset_versions n WHERE n.asset = v.asset AND (n.at, n.event) > (v.at, v.event)"
        f" AND {newer})",
        values=tuple(values),
        joined=(*seen_first, *(by if by_session else ())),
        ranked=True,
        conditions=tuple(seen),
    )


def page(db: Connection, listed: Listed[T], chosen: Filter, first: int) -> list[tuple[Place, T]]:
    """Return the first rows of a list behind the filter's place, each with its own place."""
    where, values = _where(listed, chosen)
    rows = db.execute(
        f"SELECT {listed.columns}, {listed.at} AS place_at, {listed.event} AS place_event FROM {listed.tables}"
        f" WHERE {where} ORDER BY {_order(listed, chosen)} LIMIT ?",
        [*listed.values, *listed.joined, *values, first],
    )
    return [_placed(listed, row) for row in rows]


def count(db: Connection, listed: Listed[T], chosen: Filter) -> int:
    """Count the rows of a list, up to one more than MOST_COUNTED."""
    where, values = _where(listed, replace(chosen, after=None))
    row = db.execute(
        f"SELECT COUNT(*) FROM (SELECT 1 FROM {listed.tables} WHERE {where} LIMIT ?)",
        [*listed.joined, *values, MOST_COUNTED + 1],
    ).fetchone()
    return int(row[0])


def beside(
    db: Connection, listed: Listed[T], chosen: Filter, parent: str, keys: Iterable[int], first: int
) -> dict[int, list[tuple[Place, T]]]:
    """Return the first rows of each of several parents; `parent` is the column that holds their keys."""
    where, values = _where(listed, chosen)
    order, parents = _order(listed, chosen), json.dumps(list(keys))
    columns = f"{listed.columns}, {listed.at} AS place_at, {listed.event} AS place_event"
    if listed.ranked:
        rank = f"ROW_NUMBER() OVER (PARTITION BY {parent} ORDER BY {order})"
        rows = db.execute(
            f"SELECT * FROM (SELECT {columns}, {parent} AS place_parent, {rank} AS place_number FROM {listed.tables}"
            f" WHERE {parent} IN (SELECT value FROM json_each(?)) AND {where})"
            " WHERE place_number <= ? ORDER BY place_parent, place_number",
            [*listed.values, *listed.joined, parents, *values, first],
        )
    else:
        own = (
            f"SELECT {listed.event} FROM {listed.tables} WHERE {parent} = k.value AND {where} ORDER BY {order} LIMIT ?"
        )
        rows = db.execute(
            f"SELECT {columns}, k.value AS place_parent FROM json_each(?) k CROSS JOIN {listed.tables}"
            f" WHERE {parent} = k.value AND {listed.event} IN ({own}) ORDER BY k.value, {order}",
            [*listed.values, parents, *values, first],
        )
    found: dict[int, list[tuple[Place, T]]] = {}
    for row in rows:
        found.setdefault(row["place_parent"], []).append(_placed(listed, row))
    return found


def counts_beside(
    db: Connection, listed: Listed[T], chosen: Filter, parent: str, keys: Iterable[int]
) -> dict[int, int]:
    """Count the rows of each of several parents, all of them."""
    where, values = _where(listed, replace(chosen, after=None))
    rows = db.execute(
        f"SELECT {parent} AS parent, COUNT(*) AS rows FROM {listed.tables}"
        f" WHERE {parent} IN (SELECT value FROM json_each(?)) AND {where} GROUP BY 1",
        [*listed.joined, json.dumps(list(keys)), *values],
    )
    return {row["parent"]: row["rows"] for row in rows}


def _placed(listed: Listed[T], row: sqlite3.Row) -> tuple[Place, T]:
    return (row["place_at"], row["place_event"]), listed.read(row)


def _order(listed: Listed[T], chosen: Filter) -> str:
    direction = "ASC" if chosen.ascending else "DESC"
    return f"{listed.at} {direction}, {listed.event} {direction}"


def _where(listed: Listed[T], chosen: Filter) -> tuple[str, list[object]]:
    """Return the condition of the rows that pass the filter, and its parameters."""
    parts: list[tuple[str, Sequence[object]]] = [(listed.where, listed.conditions)]
    if listed.shown:
        parts.append(clause(chosen.viewer, listed.event))
    if listed.held is not None:
        parts += _held(chosen, listed.held)
    elif chosen.viewer.project is not None:
        parts.append((f"{listed.project} = ?", [chosen.viewer.project]))
    for column, wanted in ((listed.type, chosen.types), (listed.status, chosen.statuses)):
        if column is not None and wanted:
            parts.append((f"{column} IN ({', '.join('?' * len(wanted))})", wanted))
    for test, value in (
        (f"{listed.at} >= ?", chosen.since),
        (f"{listed.at} <= ?", chosen.until),
        (f"{listed.updated} > ?", chosen.updated_after),
        (f"{listed.session} = ?", chosen.session),
    ):
        if value is not None:
            parts.append((test, [value]))
    if chosen.among is not None:
        parts.append((f"{listed.event} IN (SELECT value FROM json_each(?))", [json.dumps(sorted(chosen.among))]))
    for word in chosen.words:
        own = [] if chosen.viewer.session is None else [chosen.viewer.session]
        known = f"(s.hides = 0{' OR s.id = ?' if own else ''})"
        parts.append((f"(instr(folded(s.host_id), ?) OR {known} AND instr(folded(s.title), ?))", [word, *own, word]))
    if chosen.after is not None:
        sign = ">" if chosen.ascending else "<"
        parts.append((f"({listed.at}, {listed.event}) {sign} (?, ?)", list(chosen.after)))
    return " AND ".join(part for part, _ in parts), [value for _, values in parts for value in values]


def _held(chosen: Filter, table: str) -> list[tuple[str, Sequence[object]]]:
    """Return which records are in scope and hold as far as was asked for; a copy of a session holds what it does."""
    parts: list[tuple[str, Sequence[object]]] = [held(chosen.viewer, table)]
    if chosen.scopes:
        parts.append((f"{table}.scope IN ({', '.join('?' * len(chosen.scopes))})", chosen.scopes))
    elif chosen.holding:
        copied = f"EXISTS (SELECT 1 FROM membership m WHERE m.event = {table}.id AND m.session = ?)"
        own = chosen.viewer.session or 0
        parts.append((f"({table}.scope <> 'session' OR {table}.session = ? OR {copied})", [own, own]))
    return parts

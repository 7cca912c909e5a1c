"""Counts of what a viewer may see, each one statement; and sums by day, kind, host and the like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from graphsvc import clock
from graphsvc.store import events
from graphsvc.store.database import Connection, snapshot
from graphsvc.store.visibility import Viewer, clause, stands

MOST_GROUPS: Final = 1_000
_EARLIEST: Final = datetime(1880, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
_META: Final = "COALESCE(e.meta, inflated(b.meta))"
# What is measured: the value of a row, and which rows count. A large body lies packed beside its event.
_MEASURES: Final = {
    "events": ("1", "1"),
    "bytes": ("COALESCE(LENGTH(e.body), b.size, LENGTH(inflated(b.body)))", "1"),
    "tool_errors": ("1", f"e.kind = 'tool_result' AND json_extract({_META}, '$.is_error') = 1"),
    "decisions": ("1", "EXISTS (SELECT 1 FROM records r WHERE r.id = e.id AND r.type = 'decision')"),
    "injected_chars": ("LENGTH(CAST(COALESCE(e.body, inflated(b.body)) AS TEXT))", "e.kind = 'injection'"),
}
_DIMENSIONS: Final = {
    "day": "{day}",
    "week": "COALESCE(date({day}, 'weekday 0', '-6 days'), substr(e.at, 1, 10))",  # its Monday
    "kind": "e.kind",
    "host": "COALESCE(t.host, '')",
    "session": "s.host_id",
    "tool": f"COALESCE(json_extract({_META}, '$.tool_name'), '')",
}
MEASURES: Final = tuple(_MEASURES)
DIMENSIONS: Final = tuple(_DIMENSIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums by group, in order of the keys; `capped` when there are more groups than are listed. `total` is of all."""

    groups: list[tuple[tuple[str, ...], int]]
    total: int
    capped: bool


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


def aggregate(
    db: Connection,
    viewer: Viewer,
    measure: str,
    by: Sequence[str],
    *,
    since: str | None = None,
    until: str | None = None,
    zone: str = "UTC",
    session: int | None = None,
) -> Sums:
    """Sum a measure over the visible events of a time span, inclusive; days and weeks are those of the time zone."""
    value, counts = _MEASURES[measure]
    seen, values = clause(viewer, "e.id")
    where = [counts, seen]
    for column, sign, bound in (
        ("e.project", "=", viewer.project),
        ("e.session", "=", session),
        ("e.at", ">=", since),
        ("e.at", "<=", until),
    ):
        if bound is not None:
            where.append(f"{column} {sign} ?")
            values = [*values, bound]
    source = (
        "events e JOIN sessions s ON s.id = e.session JOIN session_state t ON t.session = e.session"
        f" LEFT JOIN bodies b ON b.event = e.id WHERE {' AND '.join(where)}"
    )
    with snapshot(db):
        first, last, total = db.execute(f"SELECT MIN(e.at), MAX(e.at), SUM({value}) FROM {source}", values).fetchone()
        if first is None:
            return Sums(groups=[], total=0, capped=False)
        if not by:
            return Sums(groups=[((), int(total))], total=int(total), capped=False)
        day, shifts = _local_day(first, last, zone)
        names = [_DIMENSIONS[name].format(day=day) for name in by]
        dated = [shift for name in by if name in {"day", "week"} for shift in shifts]
        places = ", ".join(str(place + 1) for place in range(len(by)))
        rows = db.execute(
            f"SELECT {', '.join(names)}, SUM({value}) FROM {source} GROUP BY {places} ORDER BY {places} LIMIT ?",
            [*dated, *values, MOST_GROUPS + 1],
        ).fetchall()
    groups = [(tuple(str(key) for key in row[: len(by)]), int(row[len(by)])) for row in rows[:MOST_GROUPS]]
    return Sums(groups=groups, total=int(total), capped=len(rows) > MOST_GROUPS)


def _local_day(first: str, last: str, zone: str) -> tuple[str, list[str]]:
    """Return the local date of `e.at` as SQL and its parameters: one offset between two changes of the zone's clock."""
    place, start, end = ZoneInfo(zone), datetime.fromisoformat(first), datetime.fromisoformat(last)
    shifts: list[tuple[datetime, int]] = []
    # Zones have changed their clocks since about 1880; what is known of the future repeats a few years.
    moment, stop = (min(max(one, _EARLIEST), _LATEST) for one in (start, end))
    offset = _offset(place, moment)
    while moment < stop:
        later = min(moment + timedelta(days=7), stop)
        if _offset(place, later) != offset:
            later = _change(place, moment, later)
            shifts.append((later, offset))
            offset = _offset(place, later)
        moment = later
    parts = [(clock.utc_text(change), f"{seconds:+d} seconds") for change, seconds in shifts]
    cases = "".join(" WHEN e.at < ? THEN date(e.at, ?)" for _ in parts)
    text = f"CASE{cases} ELSE date(e.at, ?) END" if parts else "date(e.at, ?)"
    # At the ends of the calendar a local day may be none: then it is the day in UTC.
    return f"COALESCE({text}, substr(e.at, 1, 10))", [
        *(value for part in parts for value in part),
        f"{offset:+d} seconds",
    ]


def _offset(zone: ZoneInfo, moment: datetime) -> int:
    return int((moment.astimezone(zone).utcoffset() or timedelta()).total_seconds())


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the first second after `before` at which the zone's clock differs."""
    offset = _offset(zone, before)
    low, high = int(before.timestamp()), math.ceil(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        same = _offset(zone, datetime.fromtimestamp(middle, UTC)) == offset
        low, high = (middle, high) if same else (low, middle)
    return datetime.fromtimestamp(high, UTC)


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
    """Count the edges that have not ended and whose two ends are visible, by type.

    A session of a project that is out of reach is no end of any.
    """
    begun, values = clause(viewer, "g.begin_event")
    standing, ended = stands(viewer, "g")
    scope, project = ("1", []) if viewer.project is None else ("e.project = ?", [viewer.project])
    reach, within = viewer.reach("s.project")
    conditions, parameters = [scope, begun, standing], [*project, *values, *ended]
    for end in ("src", "dst"):
        version, more = clause(viewer, "v.event")
        other, rest = clause(viewer, f"g.{end}")
        conditions.append(
            f"CASE g.{end}_type WHEN 'session' THEN EXISTS (SELECT 1 FROM sessions s WHERE s.id = g.{end} AND {reach})"
            f" WHEN 'asset' THEN EXISTS (SELECT 1 FROM asset_versions v WHERE v.asset = g.{end} AND {version})"
            f" ELSE {other} END"
        )
        parameters += [*within, *more, *rest]
    rows = db.execute(
        "SELECT g.type, COUNT(*) FROM lineage_edges g JOIN events e ON e.id = g.begin_event"
        f" WHERE {' AND '.join(conditions)} GROUP BY 1 ORDER BY 1",
        parameters,
    )
    return {row[0]: row[1] for row in rows}


def gaps(db: Connection) -> int:
    """Count the lines of imported files that could not be read."""
    return int(db.execute("SELECT COUNT(*) FROM gaps").fetchone()[0])


def indexed(db: Connection) -> int:
    """Return the position the word index holds."""
    return int(db.execute("SELECT COALESCE(MAX(position), 0) FROM read_models WHERE name = 'words'").fetchone()[0])


def index_version(db: Connection) -> str | None:
    """Return the version of the code that wrote the word index; None when there is none yet."""
    row = db.execute("SELECT version FROM read_models WHERE name = 'words'").fetchone()
    return row["version"] if row else None


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

"""The edges that all may see, with all the times during which they stood, as the mirror holds them.

The tables are read as they are and looked through here: to ask SQLite about each end of each edge takes three times as
long, and a mirror that is made anew waits for it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from graphsvc.model import EdgeType, NodeId, NodeType
from graphsvc.store.database import Connection

TABLES: Final = ("lineage_edges", "past_edges")
PAGE: Final = 20_000  # rows that are read together
# The first version of an asset that all may see is what the asset goes by.
FIRST: Final = (
    "(SELECT MIN(v.event) FROM asset_versions v WHERE v.asset = {}"
    " AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event))"
)
_KEY: Final = ("type", "src_type", "src", "dst_type", "dst")
_COLUMNS: Final = ", ".join(
    f"g.{name}" for name in (*_KEY, "rule", "confidence", "begin_event", "begin_at", "end_event", "end_at")
)
_ALL: Final = " UNION ALL ".join(f"SELECT {_COLUMNS} FROM {table} g" for table in TABLES)
# The edges that changed behind a position, by their own rows, or because an asset that they end at is shared since.
_KEYS: Final = (
    "WITH asked (position) AS (SELECT ?), fresh (asset) AS (SELECT n.asset FROM asset_versions n"
    f" WHERE n.event > (SELECT position FROM asked) AND n.event = {FIRST.format('n.asset')}), keys AS ("
    + " UNION ".join(
        f"SELECT {', '.join(_KEY)} FROM {table} WHERE {where}"
        for table in TABLES
        for where in (
            "changed_event > (SELECT position FROM asked)",
            "src_type = 'asset' AND src IN (SELECT asset FROM fresh)",
            "dst_type = 'asset' AND dst IN (SELECT asset FROM fresh)",
        )
    )
    + ")"
)
_ON: Final = " AND ".join(f"g.{name} = k.{name}" for name in _KEY)
_CHANGED: Final = _KEYS + " UNION ALL ".join(
    f" SELECT {_COLUMNS} FROM keys k CROSS JOIN {table} g ON {_ON}" for table in TABLES
)
# What ends are called, by the store's keys; of all, or of those that are listed.
_LISTED: Final = " IN (SELECT value FROM json_each(?))"
_SESSIONS: Final = "SELECT s.id, s.host_id FROM sessions s JOIN session_state t ON t.session = s.id WHERE s.id"
_ASSETS: Final = (
    "SELECT v.asset, MIN(v.event) FROM asset_versions v"
    " WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event) AND v.asset"
)
_RECORDS: Final = (
    "SELECT r.id, r.type FROM records r WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id) AND r.id"
)
_TYPES: Final = {str(kind): kind for kind in EdgeType}


class Interval(NamedTuple):
    """A time during which an edge stood; an edge that was drawn again has several."""

    type: EdgeType
    source: str
    target: str
    rule: str
    confidence: str
    begin_event: int
    begin_at: str
    end_event: int | None
    end_at: str | None


class Intervals:
    """Reads the edges of one state of a store. `events` are the numbers of those that the edges read so far touch."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self.events: set[int] = set()

    def all(self) -> Iterator[list[Interval]]:
        """Read all edges, in pages."""
        told = self._told(self._rows(_ALL), *self._known())
        while page := list(islice(told, PAGE)):
            yield page

    def changed(self, position: int) -> list[Interval]:
        """Read all intervals of the edges that changed behind a position."""
        rows = self._rows(_CHANGED, position).fetchall()
        numbers: dict[str, set[int]] = {}
        for _, src_type, src, dst_type, dst, _, _, begin, _, end, _ in rows:
            numbers.setdefault(src_type, set()).add(src)
            numbers.setdefault(dst_type, set()).add(dst)
            numbers.setdefault("event", set()).update({begin, end} - {None})
        return [*self._told(iter(rows), *self._known(numbers))]

    def _known(self, numbers: Mapping[str, Iterable[int]] | None = None) -> tuple[Container[int], Mapping[str, _Ids]]:
        """Return which events are isolated, and what the ends of edges are called; of all, or of some."""

        def rows(sql: str, *kinds: str, grouped: str = "") -> sqlite3.Cursor:
            if numbers is None:
                return self._rows(f"{sql} IS NOT NULL{grouped}")
            listed = sorted({number for kind in kinds for number in numbers.get(kind, ())})
            return self._rows(f"{sql}{_LISTED}{grouped}", json.dumps(listed))

        records = [kind for kind in NodeType if kind not in {NodeType.SESSION, NodeType.ASSET, NodeType.EVENT}]
        hidden = {event for (event,) in rows("SELECT event FROM hidden WHERE event", NodeType.EVENT)}
        by_number = _Ids((number, f"{kind}-{number}") for number, kind in rows(_RECORDS, *records))
        found = {
            "session": _Ids(
                (key, str(NodeId(NodeType.SESSION, name))) for key, name in rows(_SESSIONS, NodeType.SESSION)
            ),
            "asset": _Ids(
                (key, f"asset-{first}") for key, first in rows(_ASSETS, NodeType.ASSET, grouped=" GROUP BY v.asset")
            ),
            "event": _Events(hidden),
            **dict.fromkeys(map(str, records), by_number),
        }
        return hidden, found

    def _told(
        self, rows: Iterator[tuple[Any, ...]], hidden: Container[int], ids: Mapping[str, _Ids]
    ) -> Iterator[Interval]:
        """Yield what all may see: that one has begun, and both its ends; an end that they may not see is none."""
        touched = self.events.add
        for kind, src_type, src, dst_type, dst, rule, confidence, begin, begin_at, end, end_at in rows:
            source, target = ids[src_type][src], ids[dst_type][dst]
            if begin in hidden or source is None or target is None:
                continue
            if src_type == "event":
                touched(src)
            if dst_type == "event":
                touched(dst)
            if end in hidden:
                end = end_at = None
            yield Interval(_TYPES[kind], source, target, rule, confidence, begin, begin_at, end, end_at)

    def _rows(self, sql: str, *values: object) -> sqlite3.Cursor:
        """Read rows as tuples: there are many."""
        cursor = self._db.cursor()
        cursor.row_factory = None
        return cursor.execute(sql, values)


class _Ids(dict[int, str | None]):
    """Ids by the store's keys: None for what not all may see."""

    def __missing__(self, key: int) -> str | None:
        return None


class _Events(_Ids):
    """Ids of events, each made once."""

    def __init__(self, hidden: Container[int]) -> None:
        super().__init__()
        self._hidden = hidden

    def __missing__(self, key: int) -> str | None:
        made = self[key] = None if key in self._hidden else f"event-{key}"
        return made

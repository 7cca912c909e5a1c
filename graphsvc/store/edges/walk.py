"""What a walk reads: the neighbours of many nodes at once, as they stand or stood, as far as a viewer may see them.

The neighbours of a node have one order: by the type of the edge, the type of the other end and its number, which is the
order of the index, so that the next few neighbours of a node with very many cost no more than those of any other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from graphsvc.model import CAUSE_FIRST, Direction, Edge, EdgeType, NodeType
from graphsvc.store.database import Connection
from graphsvc.store.view import edge
from graphsvc.store.visibility import Viewer, clause

Key = tuple[NodeType, int]
Mark = tuple[str, str, int]  # of a neighbour in its order: edge type, type of the other end, its number
START: Final[Mark] = ("", "", 0)
_KEY: Final = "g.src_type, g.src, g.type, g.dst_type, g.dst"
_ENDS: Final = ("dst", "src")  # which end of an edge is the far one
# Where the far end lies: an edge that runs from cause to result leads downstream to its target.
_SIDES: Final = {
    (far, str(kind)): Direction.DOWNSTREAM if (kind in CAUSE_FIRST) == (far == "dst") else Direction.UPSTREAM
    for far in _ENDS
    for kind in EdgeType
}
_BEGIN, _PLACE, _FAR = 7, len(fields(Edge)), len(fields(Edge)) + 1  # columns of a row that is read
_NODES: Final = {str(kind): kind for kind in NodeType}
_NAMED: Final = (
    "(SELECT json_extract(value, '$[0]') AS kind, json_extract(value, '$[1]') AS number FROM json_each(?)) f"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When things stood: after this event, and at this instant by the hosts' times; now when neither is said."""

    position: int | None = None
    at: str | None = None

    @property
    def now(self) -> bool:
        return self.position is None and self.at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which edges a walk takes: of these types, to nodes of these types; only what a host or a person stated."""

    edges: tuple[EdgeType, ...] = ()
    nodes: tuple[NodeType, ...] = ()
    stated: bool = False


class Neighbour(NamedTuple):
    """An edge as seen from one of its ends. Its row is read when it is asked for: most are only passed over."""

    other: Key
    side: Direction  # upstream or downstream, never both
    mark: Mark
    begin: int
    row: sqlite3.Row

    @property
    def edge(self) -> Edge:
        return edge(self.row)


@dataclass(frozen=True, slots=True)
class Degree:
    """How many edges a node has on each side, and whether there are others to what the viewer may not see."""

    upstream: int = 0
    downstream: int = 0
    hidden: bool = False
    types: frozenset[str] = frozenset()  # of the edges that are counted


class Neighbours:
    """Reads the neighbours of nodes for one walk: one root, which every filter takes, one viewer, one moment."""

    def __init__(self, db: Connection, viewer: Viewer, root: Key, chosen: Filter, moment: Moment) -> None:
        self._db = db
        self._root = root
        self._viewer = viewer
        self._chosen = chosen
        self._moment = moment
        # Where nothing is isolated, nothing needs to be asked about each row.
        self._open = not db.execute("SELECT EXISTS (SELECT 1 FROM hidden)").fetchone()[0]
        self._types = chosen.edges or tuple(EdgeType)
        self._tables = ("lineage_edges",) if moment.now else ("lineage_edges", "past_edges")
        self._conditions = {far: (self._where(far), self._shown(far), self._number(far)) for far in _ENDS}

    def degrees(self, nodes: Iterable[Key]) -> dict[Key, Degree]:
        """Count the edges of several nodes. One that was drawn again counts once."""
        named = _json(nodes)
        parts: list[str] = []
        values: list[object] = []
        for far in _ENDS:
            (where, about), (shown, more), _ = self._conditions[far]
            edges = "COUNT(*)" if self._moment.now else f"COUNT(DISTINCT type || ' ' || {far}_type || ' ' || {far})"
            union = " UNION ALL ".join(
                f"SELECT g.*, {shown} AS shown FROM {_NAMED} CROSS JOIN {table} g ON {_joined(far)} WHERE {where}"
                for table in self._tables
            )
            near = _near(far)
            parts.append(
                f"SELECT '{far}', {near}_type, {near}, type, shown, {edges} FROM ({union})"
                f" GROUP BY {near}_type, {near}, type, shown"
            )
            values += [*more, named, *about] * len(self._tables)
        counts: dict[Key, dict[Direction | None, int]] = {}
        types: dict[Key, set[str]] = {}
        for far, kind, number, relation, shown, edges in self._db.execute(" UNION ALL ".join(parts), values):
            key = _NODES[kind], number
            side = _SIDES[far, relation] if shown else None
            counted = counts.setdefault(key, {})
            counted[side] = counted.get(side, 0) + edges
            if shown:
                types.setdefault(key, set()).add(relation)
        return {
            node: Degree(
                counted.get(Direction.UPSTREAM, 0),
                counted.get(Direction.DOWNSTREAM, 0),
                None in counted,
                frozenset(types.get(node, ())),
            )
            for node, counted in counts.items()
        }

    def beside(self, nodes: Iterable[Key]) -> dict[Key, list[Neighbour]]:
        """List all neighbours of several nodes, each in order."""
        named = _json(nodes)
        values: list[object] = [named]
        sources = [(far, f"{_NAMED} CROSS JOIN {{table}} g ON {_joined(far)}", values) for far in _ENDS]
        found: dict[Key, list[Neighbour]] = {}
        for one in self._read(sources):
            row = one.row
            near = (_NODES[row[1]], row[2]) if row[_FAR] == "dst" else (_NODES[row[3]], row[4])
            found.setdefault(near, []).append(one)
        return {node: self._ordered(listed) for node, listed in found.items()}

    def others(self, nodes: Iterable[Key], direction: Direction) -> dict[Key, list[Key]]:
        """List the other ends of the edges of several nodes, each once, in the order of their types and numbers."""
        named = _json(nodes)
        found: dict[Key, set[tuple[NodeType, int, int]]] = {}
        for far in _ENDS:
            types = [one for one in self._types if direction in {_SIDES[far, one], Direction.BOTH}]
            (where, values), (shown, more), (number, place) = self._conditions[far]
            near = _near(far)
            for table in self._tables:
                rows = self._db.execute(
                    f"SELECT DISTINCT g.{near}_type, g.{near}, g.{far}_type, g.{far}, {number}"
                    f" FROM {_NAMED} CROSS JOIN {table} g ON {_joined(far)} AND g.type IN ({_marks(types)})"
                    f" WHERE {where} AND {shown}",
                    [*place, named, *types, *values, *more],
                )
                for kind, own, other, key, order in rows:
                    found.setdefault((NodeType(kind), own), set()).add((NodeType(other), order, key))
        return {node: [(kind, key) for kind, _, key in sorted(listed)] for node, listed in found.items()}

    def behind(self, node: Key, side: Direction, mark: Mark, most: int, types: Iterable[str]) -> list[Neighbour]:
        """List the next neighbours of one node on one side, behind a mark, in order; `types` has all of its edges."""
        listed: list[Neighbour] = []
        for kind in sorted(one for one in types if one >= mark[0]):
            far = "dst" if _SIDES["dst", kind] is side else "src"
            number, values = self._conditions[far][2]
            near = _near(far)
            # A statement for each type, so that the index leads to the mark.
            after = (
                f"{{table}} g WHERE g.{near}_type = ? AND g.{near} = ? AND g.type = ?"
                f" AND (g.{far}_type, {number}) > (?, ?)"
            )
            order = f" ORDER BY g.{far}_type, {number} LIMIT ?"
            behind = mark[1:] if kind == mark[0] else START[1:]
            wanted = [(far, after, [*node, kind, *values, *behind])]
            # What stands in both tables is one edge: edges are counted, not rows.
            listed = self._ordered([*listed, *self._read(wanted, order, [*values, most])])
            if len(listed) >= most:
                break
        return listed[:most]

    def between(self, node: Key, others: Iterable[Key]) -> list[Neighbour]:
        """List the edges from one node to any of several others, and back, in order."""
        named = _json(others)
        sources = [
            (
                far,
                f"{_NAMED} CROSS JOIN {{table}} g ON g.{_near(far)}_type = ? AND g.{_near(far)} = ?"
                f" AND g.{far}_type = f.kind AND g.{far} = f.number",
                [named, *node],
            )
            for far in _ENDS
        ]
        return self._ordered(self._read(sources))

    def _read(
        self, sources: Sequence[tuple[str, str, list[object]]], order: str = "", last: Sequence[object] = ()
    ) -> Iterator[Neighbour]:
        """Read edges from sources, each with its far end and its parameters."""
        parts: list[str] = []
        values: list[object] = []
        columns, readers = self._columns()
        for far, source, own in sources:
            (where, more), (shown, visible), (number, place) = self._conditions[far]
            joined = "AND" if " WHERE " in source else "WHERE"
            for table in self._tables:
                # Of several intervals of one edge the newest, so that a limit counts edges.
                newest, grouped = (
                    (", MAX(g.begin_event)", f" GROUP BY {_KEY}") if table == "past_edges" else ("", ", 0")
                )
                grouped = grouped if newest else ""
                parts.append(
                    f"SELECT {columns}, {number} AS place, '{far}' AS far{newest or ', 0'}"
                    f" FROM {source.format(table=table)} {joined} {where} AND {shown}{grouped}"
                )
                values += [*readers, *place, *own, *more, *visible]
        if order:
            parts = [f"SELECT * FROM ({part}{order})" for part in parts]
            values = [one for part in _split(values, len(parts)) for one in (*part, *last)]
        for row in self._db.execute(" UNION ALL ".join(parts), values):
            kind, far = row[0], row[_FAR]
            other, number = (_NODES[row[3]], row[4]) if far == "dst" else (_NODES[row[1]], row[2])
            yield Neighbour((other, number), _SIDES[far, kind], (kind, other, row[_PLACE]), row[_BEGIN], row)

    def _ordered(self, listed: Iterable[Neighbour]) -> list[Neighbour]:
        """Sort neighbours, upstream first; of the intervals of one edge the newest stays."""
        if self._moment.now:
            return sorted(listed, key=_order)
        newest: dict[tuple[Mark, Key, Direction], Neighbour] = {}
        for one in listed:
            known = newest.get((one.mark, one.other, one.side))
            if known is None or known.begin < one.begin:
                newest[one.mark, one.other, one.side] = one
        return sorted(newest.values(), key=_order)

    def _where(self, far: str) -> tuple[str, list[object]]:
        """Which edges there are for the viewer at the moment, by type, whoever may see their other ends."""
        parts: list[str] = []
        values: list[object] = []
        if self._chosen.edges:
            parts.append(f"g.type IN ({_marks(self._types)})")
            values += self._types
        if self._chosen.nodes:
            parts.append(f"(g.{far}_type IN ({_marks(self._chosen.nodes)}) OR (g.{far}_type = ? AND g.{far} = ?))")
            values += [*self._chosen.nodes, *self._root]
        if self._chosen.stated:
            parts.append("g.confidence = 'stated'")
        stands, readers = self._stands()
        if self._moment.now:
            parts.append(f"({stands})")
            values += readers
        if self._moment.position is not None:
            parts.append(f"g.begin_event <= ? AND ({stands} OR g.end_event > ?)")
            values += [self._moment.position, *readers, self._moment.position]
        if self._moment.at is not None:
            parts.append(f"g.begin_at <= ? AND ({stands} OR g.end_at > ?)")
            values += [self._moment.at, *readers, self._moment.at]
        if not self._open:
            condition, more = clause(self._viewer, "g.begin_event")
            parts.append(condition)
            values += more
        reach, project = self._viewer.reach("s.project")
        within = "1" if not project else f"EXISTS (SELECT 1 FROM sessions s WHERE s.id = g.{far} AND {reach})"
        parts.append(
            f"CASE WHEN g.{far}_type = 'session' THEN {within}"
            # A host may name as basis what only moved a record.
            f" WHEN g.{far}_type NOT IN ('asset', 'event') THEN EXISTS (SELECT 1 FROM records r WHERE r.id = g.{far})"
            " ELSE 1 END"
        )
        there, more = self._there(far)
        return " AND ".join([*parts, *there]), [*values, *project, *more]

    def _stands(self) -> tuple[str, list[object]]:
        """Whether an edge has not ended for the viewer: an end that it may not see is none."""
        if self._open:
            return "g.end_event IS NULL", []
        condition, values = clause(self._viewer, "g.end_event")
        return f"g.end_event IS NULL OR NOT {condition}", values

    def _columns(self) -> tuple[str, list[object]]:
        """The columns of an edge, without an end that the viewer may not see."""
        stands, values = self._stands()
        ends = {"end_event", "end_at"} if not self._open else set()
        shown = "CASE WHEN {stands} THEN NULL ELSE g.{name} END AS {name}"
        names = [
            shown.format(stands=stands, name=one.name) if one.name in ends else f"g.{one.name}" for one in fields(Edge)
        ]
        return ", ".join(names), values * len(ends)

    def _there(self, far: str) -> tuple[list[str], list[object]]:
        """Whether the other end was there at the moment: an edge may be older than the file that its text names."""
        parts: list[str] = []
        values: list[object] = []
        for limit, event, version in (
            (self._moment.position, "id <= ?", "event <= ?"),
            (self._moment.at, "at <= ?", "at <= ?"),
        ):
            if limit is not None:
                parts.append(
                    f"CASE g.{far}_type"
                    f" WHEN 'session' THEN EXISTS (SELECT 1 FROM events e WHERE e.session = g.{far} AND e.{event})"
                    " WHEN 'asset' THEN EXISTS"
                    f" (SELECT 1 FROM asset_versions v WHERE v.asset = g.{far} AND v.{version})"
                    f" ELSE EXISTS (SELECT 1 FROM events e WHERE e.id = g.{far} AND e.{event}) END"
                )
                values += [limit] * 3
        return parts, values

    def _shown(self, far: str) -> tuple[str, list[object]]:
        """Whether the viewer may see the other end: a session always, an asset by a version, others by their event."""
        if self._open:
            return "1", []
        version, values = clause(self._viewer, "v.event")
        event, more = clause(self._viewer, f"g.{far}")
        return (
            f"CASE g.{far}_type WHEN 'session' THEN 1"
            f" WHEN 'asset' THEN EXISTS (SELECT 1 FROM asset_versions v WHERE v.asset = g.{far} AND {version}"
            " AND v.event <= ? AND v.at <= ?)"
            f" ELSE {event} END",
            [*values, *latest(self._moment), *more],
        )

    def _number(self, far: str) -> tuple[str, list[object]]:
        """Where the other end stands among others of its type: an asset by its first version that the viewer may see.

        What the store keeps one under may be the number of an isolated event.
        """
        if self._open:
            return f"g.{far}", []
        version, values = clause(self._viewer, "v.event")
        first = f"(SELECT MIN(v.event) FROM asset_versions v WHERE v.asset = g.{far} AND {version})"
        return f"CASE g.{far}_type WHEN 'asset' THEN {first} ELSE g.{far} END", values


def _near(far: str) -> str:
    return "src" if far == "dst" else "dst"


def _joined(far: str) -> str:
    near = _near(far)
    return f"g.{near}_type = f.kind AND g.{near} = f.number"


def latest(moment: Moment) -> tuple[int, str]:
    """Return the last position and the last time of a moment; what is behind all others where it does not say."""
    return moment.position if moment.position is not None else 2**62, moment.at or "~"


def _order(one: Neighbour) -> tuple[bool, Mark, int]:
    return one.side is Direction.DOWNSTREAM, one.mark, one.other[1]


def _split(values: list[object], parts: int) -> Iterator[list[object]]:
    """Cut a list into equal parts."""
    size = len(values) // parts
    return (values[start : start + size] for start in range(0, len(values), size))


def _json(nodes: Iterable[Key]) -> str:
    return json.dumps([[kind, number] for kind, number in nodes])


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def changed_behind(db: Connection, position: int) -> bool:
    """Say whether edges were drawn or ended behind a ledger position."""
    row = db.execute("SELECT EXISTS (SELECT 1 FROM edge_events WHERE event > ?)", (position,)).fetchone()
    return bool(row[0])


def changed_by(db: Connection, event: int) -> bool:
    """Say whether an event drew or ended an edge, or changed a status."""
    return any(
        db.execute(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE event = ?)", (event,)).fetchone()[0]
        for table in ("edge_events", "record_states")
    )

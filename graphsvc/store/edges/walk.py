"""What a walk reads: the neighbours of many nodes at once, as they stand or stood, as far as a viewer may see them.

The neighbours of a node have one order: by the type of the edge, the type of the other end and its number, which is the
order of the index, so that the next few neighbours of a node with very many cost no more than those of any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from graphsvc.model import CAUSE_FIRST, Direction, EdgeType, NodeType
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer, clause, stands

Key = tuple[NodeType, int]
Mark = tuple[str, str, int]  # of a neighbour in its order: edge type, type of the other end, its number
START: Final[Mark] = ("", "", 0)
_KEY: Final = "g.src_type, g.src, g.type, g.dst_type, g.dst"
_ENDS: Final = ("dst", "src")  # which end of an edge is the far one
# Whether the far end lies towards results: an edge that runs from cause to result leads there to its target.
_DOWN: Final = {far: {str(kind): (kind in CAUSE_FIRST) == (far == "dst") for kind in EdgeType} for far in _ENDS}
_SIDE: Final = {True: Direction.DOWNSTREAM, False: Direction.UPSTREAM}
_UNSEEN: Final = (0, False)
_made: Final = tuple.__new__  # a third of what a named tuple takes to be made
_NODES: Final = {str(kind): kind for kind in NodeType}
_TYPES: Final = {str(kind): kind for kind in EdgeType}
_NAMED: Final = (
    "(SELECT key, json_extract(value, '$[0]') AS kind, json_extract(value, '$[1]') AS number FROM json_each(?)) f"
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
    """An edge as seen from one of its ends. In their order causes come first, and what has one mark is told apart."""

    down: bool  # whether it leads towards results
    type: EdgeType
    kind: NodeType  # of the other end
    place: int  # of the other end among those of its type
    other: Key
    begin_event: int
    near: Key
    about: Sequence[Any]  # ends with its rule, confidence, begin_at, end_event and end_at

    @property
    def side(self) -> Direction:
        return _SIDE[self.down]

    @property
    def mark(self) -> Mark:
        return self.type, self.kind, self.place

    @property
    def ends(self) -> tuple[Key, Key]:
        """The node it is written from, and the one it is written to."""
        return (self.near, self.other) if self.down is (self.type in CAUSE_FIRST) else (self.other, self.near)

    @property
    def ways(self) -> tuple[Key, Key]:
        """Its cause, and its result."""
        return (self.near, self.other) if self.down else (self.other, self.near)


@dataclass(frozen=True, slots=True)
class Degree:
    """How many edges a node has on each side, and whether there are others to what the viewer may not see."""

    upstream: int = 0
    downstream: int = 0
    hidden: bool = False
    types: frozenset[str] = frozenset()  # of the edges that are counted


@dataclass(frozen=True, slots=True)
class Around:
    """All neighbours of a node, in order, and how many they are."""

    neighbours: list[Neighbour]
    degree: Degree


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
        self._about = self._columns()
        # What assets are ordered by, and whether they are shown; of what is never shown, nothing.
        self._assets: dict[int, tuple[int, bool]] = {}

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
            side = _SIDE[_DOWN[far][relation]] if shown else None
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

    def few(self, nodes: Iterable[Key], most: int) -> list[Key]:
        """List those of the nodes that have at most so many edges, whoever may see them."""
        asked = list(nodes)
        counts = " + ".join(
            f"(SELECT COUNT(*) FROM (SELECT 1 FROM {table} g WHERE {_joined(far)} LIMIT ?))"
            for table in self._tables
            for far in _ENDS
        )
        limits = [most + 1] * (len(self._tables) * len(_ENDS))
        rows = self._db.execute(f"SELECT f.key FROM {_NAMED} WHERE {counts} <= ?", [_json(asked), *limits, most])
        return [asked[place] for (place,) in rows]

    def around(self, nodes: Iterable[Key]) -> dict[Key, Around]:
        """Read all neighbours of several nodes, which have few."""
        asked = list(nodes)
        named = _json(asked)
        listed: list[list[Neighbour]] = [[] for _ in asked]
        hidden: set[int] = set()
        for far in _ENDS:
            (where, values), (shown, visible), _ = self._conditions[far]
            about, readers = self._about
            down, assets = _DOWN[far], NodeType.ASSET
            for table in self._tables:
                # Whether an asset is shown is asked once an asset: many edges end at the same.
                rows = self._rows(
                    f"SELECT f.key, g.type, g.{far}_type, g.{far},"
                    f" CASE WHEN g.{far}_type = 'asset' THEN 1 ELSE {shown} END, {about}"
                    f" FROM {_NAMED} CROSS JOIN {table} g ON {_joined(far)} WHERE {where}",
                    [*visible, *readers, named, *values],
                )
                places = self._places({row[3] for row in rows if row[2] == assets})
                for row in rows:
                    place, kind, other, number, seen, begin = row[:6]
                    order, shows = places.get(number, _UNSEEN) if other == assets else (number, seen)
                    if shows:
                        end = _NODES[other]
                        one = down[kind], _TYPES[kind], end, order, (end, number), begin, asked[place], row
                        listed[place].append(_made(Neighbour, one))
                    else:
                        hidden.add(place)
        return {node: self._around(listed[place], place in hidden) for place, node in enumerate(asked)}

    def _around(self, listed: list[Neighbour], hidden: bool) -> Around:
        ordered = self._ordered(listed)
        downstream = sum(one[0] for one in ordered)
        types = frozenset(one[1] for one in ordered)
        return Around(ordered, Degree(len(ordered) - downstream, downstream, hidden, types))

    def _places(self, assets: set[int]) -> Mapping[int, tuple[int, bool]]:
        """Return what assets are ordered by, and whether the viewer may see them at the moment."""
        if self._open:
            return {asset: (asset, True) for asset in assets}
        missing = sorted(assets - self._assets.keys())
        if missing:
            condition, values = clause(self._viewer, "v.event")
            rows = self._db.execute(
                "SELECT v.asset, MIN(v.event), MAX(v.event <= ? AND v.at <= ?) FROM json_each(?) j"
                f" CROSS JOIN asset_versions v WHERE v.asset = j.value AND {condition} GROUP BY v.asset",
                [*latest(self._moment), json.dumps(missing), *values],
            )
            self._assets |= {asset: (first, bool(shown)) for asset, first, shown in rows}
        return self._assets

    def others(self, nodes: Iterable[Key], direction: Direction) -> dict[Key, list[Key]]:
        """List the other ends of the edges of several nodes, each once, in the order of their types and numbers."""
        named = _json(nodes)
        found: dict[Key, set[tuple[NodeType, int, int]]] = {}
        for far in _ENDS:
            types = [one for one in self._types if direction in {_SIDE[_DOWN[far][one]], Direction.BOTH}]
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
            far = "dst" if _SIDE[_DOWN["dst"][kind]] is side else "src"
            number, values = self._conditions[far][2]
            near = _near(far)
            # A statement for each type, so that the index leads to the mark.
            after = (
                f"{{table}} g WHERE g.{near}_type = ? AND g.{near} = ? AND g.type = ?"
                f" AND (g.{far}_type, {number}) > (?, ?)"
            )
            order = f" ORDER BY g.{far}_type, {number} LIMIT ?"
            behind = mark[1:] if kind == mark[0] else START[1:]
            wanted = self._read(node, far, after, [*node, kind, *values, *behind], order, [*values, most])
            # What stands in both tables is one edge: edges are counted, not rows.
            listed = self._ordered([*listed, *wanted])
            if len(listed) >= most:
                break
        return listed[:most]

    def between(self, node: Key, others: Iterable[Key]) -> list[Neighbour]:
        """List the edges from one node to any of several others, and back, in order."""
        named, types = _json(others), json.dumps(self._types)
        listed: list[Neighbour] = []
        for far in _ENDS:
            # The type is bound too, so that the index leads to each other node, however many the one has.
            source = (
                f"{_NAMED} CROSS JOIN json_each(?) t CROSS JOIN {{table}} g ON g.{_near(far)}_type = ?"
                f" AND g.{_near(far)} = ? AND g.type = t.value AND g.{far}_type = f.kind AND g.{far} = f.number WHERE 1"
            )
            listed += self._read(node, far, source, [named, types, *node])
        return self._ordered(listed)

    def _read(
        self, node: Key, far: str, source: str, own: Sequence[object], order: str = "", last: Sequence[object] = ()
    ) -> Iterator[Neighbour]:
        """Read edges of a node whose far end is that one, from a source with its WHERE."""
        (where, more), (shown, visible), (number, numbering) = self._conditions[far]
        about, readers = self._about
        for table in self._tables:
            # Of several intervals of one edge the newest, so that a limit counts edges.
            newest, grouped = ("MAX(g.begin_event), ", f" GROUP BY {_KEY}") if table == "past_edges" else ("", "")
            rows = self._rows(
                f"SELECT {newest}g.type, g.{far}_type, g.{far}, {number}, {about} FROM {source.format(table=table)}"
                f" AND {where} AND {shown}{grouped}{order}",
                [*numbering, *readers, *own, *more, *visible, *last],
            )
            for row in rows:
                kind, other, key, place, begin = row[-10:-5]
                end = _NODES[other]
                yield Neighbour(_DOWN[far][kind], _TYPES[kind], end, place, (end, key), begin, node, row)

    def _rows(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Read rows as tuples: there are many."""
        cursor = self._db.cursor()
        cursor.row_factory = None
        return cursor.execute(sql, values).fetchall()

    def _ordered(self, listed: Iterable[Neighbour]) -> list[Neighbour]:
        """Sort neighbours; of the intervals of one edge the newest stays."""
        ordered = sorted(listed)
        if self._moment.now:
            return ordered
        return [one for one, after in zip_longest(ordered, ordered[1:]) if after is None or one[:5] != after[:5]]

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
        standing, readers = self._stands()
        if self._moment.now:
            parts.append(standing)
            values += readers
        if self._moment.position is not None:
            parts.append(f"g.begin_event <= ? AND ({standing} OR g.end_event > ?)")
            values += [self._moment.position, *readers, self._moment.position]
        if self._moment.at is not None:
            parts.append(f"g.begin_at <= ? AND ({standing} OR g.end_at > ?)")
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
        return stands(self._viewer, "g")

    def _columns(self) -> tuple[str, list[object]]:
        """What an edge says beside its key, without an end that the viewer may not see."""
        about = "g.begin_event, g.rule, g.confidence, g.begin_at"
        if self._moment.now:
            return f"{about}, NULL, NULL", []
        standing, values = self._stands()
        ends = (f"CASE WHEN {standing} THEN NULL ELSE g.{name} END" for name in ("end_event", "end_at"))
        return ", ".join([about, *ends]), values * 2

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

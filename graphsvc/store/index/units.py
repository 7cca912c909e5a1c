"""What a search finds: events of the conversation, the events that created records, and assets as they stand."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from graphsvc.model import TALK_KINDS, EventKind, NodeId, NodeType
from graphsvc.store import visibility
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

MAX_BYTES: Final = 2**31 - 1  # of a text: SQLite holds no larger one

_TALK: Final = ", ".join(f"'{kind}'" for kind in TALK_KINDS)
UNIT: Final = f"(e.kind IN ({_TALK}) OR r.id IS NOT NULL OR v.event IS NOT NULL)"
JOINS: Final = "LEFT JOIN records r ON r.id = e.id LEFT JOIN asset_versions v ON v.event = e.id"

# What all who see this version know its asset by: the first shared version, or the session's own while it is isolated.
_NUMBER: Final = (
    "(SELECT MIN(f.event) FROM asset_versions f WHERE f.asset = v.asset"
    " AND (NOT EXISTS (SELECT 1 FROM hidden WHERE hidden.event = f.event)"
    " OR f.session = v.session AND EXISTS (SELECT 1 FROM hidden WHERE hidden.event = v.event)))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a search finds: an event of the conversation, a record, or an asset as its newest version stands."""

    event: int
    kind: str
    session_id: str
    seq: int
    ts: str | None
    text: str
    tool: str | None = None
    status: str | None = None
    scope: str | None = None  # of a record
    asset: int | None = None
    path: str | None = None

    @property
    def id(self) -> str:
        if self.asset is not None:
            return str(NodeId(NodeType.ASSET, str(self.asset)))
        return str(NodeId(NodeType(self.kind) if self.status is not None else NodeType.EVENT, str(self.event)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The filters of a search: who asks, what about, and the ledger position the answer stands at.

    `gap`: what lies between these two events was not searched on the first page, so it is not on any other.
    """

    viewer: Viewer
    position: int
    kind: EventKind | None = None
    session: int | None = None
    since: str | None = None
    until: str | None = None
    gap: tuple[int, int] | None = None
    beyond: frozenset[int] = frozenset()  # records of other projects that hold in this one too


class Place(NamedTuple):
    """Where a unit stands: its event, the time it is ordered by, its session, and the sizes FTS5 keeps of it.

    A tuple, because a common word has a hundred thousand of them.
    """

    event: int
    at: str
    session: int
    sizes: bytes = b""

    @property
    def when(self) -> tuple[str, int]:
        """Return what orders units by time."""
        return self.at, self.event

    @property
    def size(self) -> int:
        """Return how many terms the unit holds: a sum of variable-length integers."""
        total = value = 0
        for byte in self.sizes:
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                total, value = total + value, 0
        return total


def conditions(scope: Scope) -> tuple[str, list[object]]:
    """Return the WHERE condition of a scope on `events e` with the joins of a unit, and its parameters."""
    seen, viewer = visibility.clause(scope.viewer, "e.id")
    newer, newer_viewer = visibility.clause(scope.viewer, "n.event")
    parts: list[tuple[str, list[object]]] = [
        (UNIT, []),
        ("e.id <= ?", [scope.position]),
        (seen, viewer),
        (
            "NOT EXISTS (SELECT 1 FROM asset_versions n WHERE n.asset = v.asset AND (n.at, n.event) > (v.at, v.event)"
            f" AND n.event <= ? AND {newer})",
            [scope.position, *newer_viewer],
        ),
    ]
    if scope.viewer.project is not None and scope.beyond:
        others = json.dumps(sorted(scope.beyond))
        parts.append(("(e.project = ? OR e.id IN (SELECT value FROM json_each(?)))", [scope.viewer.project, others]))
    elif scope.viewer.project is not None:
        parts.append(("e.project = ?", [scope.viewer.project]))
    if scope.kind is not None:
        parts.append(("e.kind = ?", [scope.kind]))
    if scope.session is not None:
        parts.append(
            (
                "e.id IN (SELECT id FROM events WHERE session = ?"
                " UNION ALL SELECT event FROM membership WHERE session = ?)",
                [scope.session, scope.session],
            )
        )
    if scope.since is not None:
        parts.append(("e.at >= ?", [scope.since]))
    if scope.until is not None:
        parts.append(("e.at <= ?", [scope.until]))
    return " AND ".join(text for text, _ in parts), [value for _, values in parts for value in values]


def listing(db: Connection, scope: Scope, *, after: int | None, ascending: bool, size: int) -> list[Place]:
    """Return the units of a scope by time, from behind the unit `after` on."""
    condition, values = conditions(scope)
    order, sign = ("ASC", ">") if ascending else ("DESC", "<")
    if after is not None:
        condition += f" AND (e.at, e.id) {sign} ((SELECT at FROM events WHERE id = ?), ?)"
        values += [after, after]
    rows = db.execute(
        f"SELECT e.id, e.at, e.session FROM events e {JOINS} WHERE {condition}"
        f" ORDER BY e.at {order}, e.id {order} LIMIT ?",
        (*values, size),
    )
    return [Place(*row) for row in rows]


def when(db: Connection, event: int) -> tuple[str, int]:
    """Return what orders an event by time."""
    row = db.execute("SELECT at FROM events WHERE id = ?", (event,)).fetchone()
    return (row["at"] if row else ""), event


def count(db: Connection, scope: Scope) -> int:
    """Count the units of a scope."""
    condition, values = conditions(scope)
    return int(db.execute(f"SELECT COUNT(*) FROM events e {JOINS} WHERE {condition}", values).fetchone()[0])


def left_out(db: Connection, scope: Scope, gap: tuple[int, int]) -> int:
    """Count the units of a scope between the two events of a gap."""
    condition, values = conditions(scope)
    query = f"SELECT COUNT(*) FROM events e {JOINS} WHERE e.id > ? AND e.id < ? AND {condition}"
    return int(db.execute(query, (*gap, *values)).fetchone()[0])


def many(db: Connection, numbers: Sequence[int]) -> dict[int, Unit]:
    """Read units by the ids of their events, in one statement."""
    chosen = "e.id IN (SELECT value FROM json_each(?))"
    return {unit.event: unit for unit in scan(db, chosen, (json.dumps(list(numbers)),))}


def names(db: Connection, scope: Scope) -> Iterator[tuple[Place, str, str]]:
    """Yield every asset of a scope with its path and title."""
    condition, values = conditions(scope)
    rows = db.execute(
        "SELECT e.id, e.at, e.session, a.path, v.title FROM asset_versions v JOIN knowledge_assets a ON a.id = v.asset"
        f" JOIN events e ON e.id = v.event LEFT JOIN records r ON r.id = e.id WHERE {condition}",
        values,
    )
    for row in rows:
        yield Place(row[0], row[1], row[2]), row[3], row[4]


def scan(db: Connection, condition: str, values: Sequence[object], *, most: int = MAX_BYTES) -> Iterator[Unit]:
    """Read units one by one, so that no more than one large text is held; leave out those of more than `most` bytes."""
    rows = db.execute(
        "SELECT e.id, e.kind, s.host_id, e.seq, e.ts, e.body, e.meta, b.body AS packed, b.meta AS packed_meta,"
        f" r.status, r.scope, {_NUMBER} AS asset, v.title, v.content, a.path"
        f" FROM events e JOIN sessions s ON s.id = e.session LEFT JOIN bodies b ON b.event = e.id {JOINS}"
        f" LEFT JOIN knowledge_assets a ON a.id = v.asset WHERE {condition} ORDER BY e.id",
        values,
    )
    for row in rows:
        text = _text(row, most)
        if text is None:
            continue
        tool = None
        if row["kind"] == EventKind.TOOL_CALL:
            meta = row["meta"] if row["packed"] is None else zlib.decompress(row["packed_meta"])
            named = json.loads(meta).get("tool_name")
            tool = named if isinstance(named, str) else None
        yield Unit(
            event=row["id"],
            kind=row["kind"],
            session_id=row["host_id"],
            seq=row["seq"],
            ts=row["ts"],
            text=text,
            tool=tool,
            status=row["status"],
            scope=row["scope"],
            asset=row["asset"],
            path=row["path"],
        )


def _text(row: sqlite3.Row, most: int) -> str | None:
    """Return the text of a unit; None when it is larger than `most` bytes."""
    if row["asset"] is not None:
        content = b"" if row["content"] is None else _unpacked(row["content"], most)
        title = row["title"] if row["content"] is None else ""
        return None if content is None else f"{row['path']}\n{title}{_decoded(content)}"
    body = row["body"] if row["packed"] is None else _unpacked(row["packed"], most)
    return None if body is None or len(body) > most else _decoded(body)


def _unpacked(packed: bytes, most: int) -> bytes | None:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(packed, most)
    return data if unpacker.eof else None


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "surrogatepass")

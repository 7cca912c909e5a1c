"""What the ends of edges are called: the few words of a node that lineage shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphsvc.model import NodeId, NodeType
from graphsvc.store import sessions
from graphsvc.store.database import Connection
from graphsvc.store.edges.walk import Key, Moment, latest
from graphsvc.store.visibility import Viewer, clause

MAX_LABEL = 120  # characters


@dataclass(frozen=True, slots=True)
class End:
    """A node as it is printed: its id, what it says, the status of a record, its time."""

    id: str
    label: str
    status: str | None
    at: str


def named(db: Connection, viewer: Viewer, nodes: Iterable[Key], moment: Moment) -> dict[Key, End]:
    """Describe those of the nodes that the viewer may see; a record has the status that it had at the moment."""
    numbers: dict[NodeType, list[int]] = {}
    for kind, number in nodes:
        numbers.setdefault(kind, []).append(number)
    found: dict[Key, End] = {}
    for kind, wanted in numbers.items():
        found |= {
            (kind, number): end for number, end in _READERS.get(kind, _records)(db, viewer, wanted, moment).items()
        }
    return found


def _sessions(db: Connection, viewer: Viewer, numbers: list[int], _: Moment) -> Mapping[int, End]:
    rows = sessions.by_numbers(db, numbers)
    return {
        number: End(
            f"{sessions.PREFIX}{row.session_id}", _short(row.known_as(viewer) or row.project_key), None, row.started_at
        )
        for number, row in rows.items()
    }


def _assets(db: Connection, viewer: Viewer, numbers: list[int], _: Moment) -> Mapping[int, End]:
    condition, values = clause(viewer, "v.event")
    rows = db.execute(
        "SELECT a.id, a.path, MIN(v.event) AS number, MIN(v.at) AS at FROM json_each(?) j"
        " JOIN knowledge_assets a ON a.id = j.value JOIN asset_versions v ON v.asset = a.id"
        f" WHERE {condition} GROUP BY a.id",
        [json.dumps(numbers), *values],
    )
    return {
        row["id"]: End(str(NodeId(NodeType.ASSET, str(row["number"]))), _short(row["path"]), None, row["at"])
        for row in rows
    }


def _events(db: Connection, viewer: Viewer, numbers: list[int], _: Moment) -> Mapping[int, End]:
    condition, values = clause(viewer, "e.id")
    # Bytes: what a host has cut in half is no text for SQLite.
    rows = db.execute(
        "SELECT e.id, e.kind, e.at,"
        " CAST(json_extract(COALESCE(e.meta, inflated(b.meta)), '$.tool_name') AS BLOB) AS tool,"
        " CAST(json_extract(COALESCE(e.meta, inflated(b.meta)), '$.file_path') AS BLOB) AS path,"
        " SUBSTR(CAST(COALESCE(e.body, inflated(b.body)) AS BLOB), 1, ?) AS text"
        f" FROM json_each(?) j JOIN events e ON e.id = j.value LEFT JOIN bodies b ON b.event = e.id WHERE {condition}",
        [4 * MAX_LABEL, json.dumps(numbers), *values],
    )
    return {
        row["id"]: End(
            f"event-{row['id']}",
            _short(f"{' '.join(filter(None, (row['kind'], _text(row['tool']))))}: {_text(row['path'] or row['text'])}"),
            None,
            row["at"],
        )
        for row in rows
    }


def _records(db: Connection, viewer: Viewer, numbers: list[int], moment: Moment) -> Mapping[int, End]:
    condition, values = clause(viewer, "r.id")
    limits = [(sign, limit) for sign, limit in (("event", moment.position), ("at", moment.at)) if limit is not None]
    then = "".join(f" AND s.{column} <= ?" for column, _ in limits)
    newest = f"SELECT s.status FROM record_states s WHERE s.record = r.id{then} ORDER BY s.event DESC LIMIT 1"
    status = f"COALESCE(({newest}), r.status)" if limits else "r.status"
    rows = db.execute(
        f"SELECT r.id, r.type, r.text, r.at, {status} AS status FROM json_each(?) j JOIN records r ON r.id = j.value"
        f" WHERE {condition}",
        [*(limit for _, limit in limits), json.dumps(numbers), *values],
    )
    return {row["id"]: End(f"{row['type']}-{row['id']}", _short(row["text"]), row["status"], row["at"]) for row in rows}


_READERS = {NodeType.SESSION: _sessions, NodeType.ASSET: _assets, NodeType.EVENT: _events}


def _text(raw: bytes | None) -> str:
    """Read a text, or the beginning of one."""
    return (raw or b"").decode("utf-8", "replace")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_LABEL else f"{line[: MAX_LABEL - 1]}…"


def there(db: Connection, viewer: Viewer, node: Key, moment: Moment) -> bool:
    """Say whether a node was there at the moment, as far as the viewer may see it."""
    kind, number = node
    position, at = latest(moment)
    if kind is NodeType.SESSION:
        sql, values = "events e WHERE e.session = ? AND e.id <= ? AND e.at <= ?", [number, position, at]
    else:
        condition, seen = clause(viewer, "e.id")
        which = "e.id IN (SELECT event FROM asset_versions WHERE asset = ?)" if kind is NodeType.ASSET else "e.id = ?"
        sql, values = (
            f"events e WHERE {which} AND e.id <= ? AND e.at <= ? AND {condition}",
            [number, position, at, *seen],
        )
    return bool(db.execute(f"SELECT EXISTS (SELECT 1 FROM {sql})", values).fetchone()[0])

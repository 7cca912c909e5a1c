"""Who wrote and who read assets, in the order of the ledger: what all may see, without any text."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Final

from graphsvc.model import EventKind
from graphsvc.store import events
from graphsvc.store.database import Connection, transaction
from graphsvc.store.visibility import Viewer, clause, stands


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool call, or an event that registers an asset, that wrote or read one."""

    position: int  # where the ledger says it
    event: int  # of the call, or of the registration when no call is known
    origin: str
    at: str
    session_id: str
    project: str  # its key
    tool: str | None
    asset: int  # the number all know it by
    asset_project: str
    path: str
    version: int | None  # the event of the version that was written; None when it was read
    hash: str | None  # of the version, when its text is known whole


def between(db: Connection, since: int, until: int) -> list[Use]:
    """List what is known by events behind one position and up to another; what they published stands at the end."""
    published = json.dumps(_published(db, since, until))
    found = [*_written(db, since, until, published), *_read(db, since, until, published)]
    return sorted(found, key=lambda use: (use.position, use.event, use.version or 0, use.asset))


def position(db: Connection, name: str, version: str) -> int:
    """Return how far a follower of the ledger has come; 0 when another version of it has, or none."""
    row = db.execute("SELECT position, version FROM read_models WHERE name = ?", (name,)).fetchone()
    return int(row["position"]) if row and row["version"] == version else 0


def advance(db: Connection, name: str, version: str, position: int) -> None:
    """Keep how far a follower of the ledger has come."""
    with transaction(db):
        db.execute(
            "INSERT INTO read_models (name, position, version) VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET position = excluded.position, version = excluded.version",
            (name, position, version),
        )


def _published(db: Connection, since: int, until: int) -> list[int]:
    """List the events that were isolated and are shared since then, and the calls of those that are results."""
    rows = db.execute(
        "SELECT id FROM events WHERE kind = ? AND id > ? AND id <= ? ORDER BY id", (EventKind.PUBLISH, since, until)
    )
    found: set[int] = set()
    for event in events.many(db, [row["id"] for row in rows]).values():
        named = event.meta.get("of")
        if isinstance(named, list):
            found |= set(events.ids_of_origins(db, event.project, [one for one in named if isinstance(one, str)]))
    for event in events.many(db, found).values():
        calls = db.execute(
            "SELECT event FROM tool_calls WHERE session = ? AND tool_use_id = ?",
            (event.session, event.meta.get("tool_use_id")),
        )
        found |= {row["event"] for row in calls}
    return sorted(found)


def _shared(column: str) -> str:
    condition, _ = clause(Viewer(), column)
    return condition


_ASKED: Final = (
    "WITH asked (since, until) AS (SELECT ?, ?), published (event) AS (SELECT value FROM json_each(?)),"
    # What was published is older, and is told at the end of what is looked at.
    " found AS ({found}) SELECT u.position, r.id AS event, r.origin, r.at,"
    " s.host_id AS session_id, p.key AS project,"
    " CAST(json_extract(COALESCE(r.meta, inflated(b.meta)), '$.tool_name') AS BLOB) AS tool,"
    f" (SELECT MIN(f.event) FROM asset_versions f WHERE f.asset = a.id AND {_shared('f.event')}) AS asset,"
    " ap.key AS asset_project, a.path, u.version, u.hash"
    " FROM found u JOIN events r ON r.id = u.run JOIN knowledge_assets a ON a.id = u.asset"
    " JOIN sessions s ON s.id = r.session JOIN projects p ON p.id = r.project JOIN projects ap ON ap.id = a.project"
    " LEFT JOIN bodies b ON b.event = r.id"
)
_IN: Final = "{column} > (SELECT since FROM asked) AND {column} <= (SELECT until FROM asked)"
_END: Final = "CASE WHEN {column} > (SELECT since FROM asked) THEN {column} ELSE (SELECT until FROM asked) END"


def _written(db: Connection, since: int, until: int, published: str) -> list[Use]:
    """Versions, each with the call that wrote it; with its own event where all may not see the call."""
    found = (
        f"SELECT {_END.format(column='v.event')} AS position, COALESCE(c.id, v.event) AS run, v.asset,"
        " v.event AS version, v.hash FROM asset_versions v"
        f" LEFT JOIN events c ON c.id = v.call AND {_shared('c.id')}"
        f" WHERE v.event IN (SELECT event FROM asset_versions n WHERE {_IN.format(column='n.event')}"
        f" UNION SELECT event FROM published) AND {_shared('v.event')}"
    )
    return [_use(row) for row in db.execute(_ASKED.format(found=found), (since, until, published))]


def _read(db: Connection, since: int, until: int, published: str) -> list[Use]:
    """Edges from tool calls to what they read, as far as all may see them and both ends."""
    news = (
        f"SELECT * FROM lineage_edges n WHERE {_IN.format(column='n.changed_event')}"
        " UNION SELECT * FROM lineage_edges WHERE src_type = 'event' AND src IN (SELECT event FROM published)"
        " UNION SELECT * FROM lineage_edges WHERE dst_type = 'asset' AND dst IN"
        " (SELECT asset FROM asset_versions WHERE event IN (SELECT event FROM published))"
    )
    found = (
        f"SELECT {_END.format(column='g.changed_event')} AS position, g.src AS run, g.dst AS asset, NULL AS version,"
        f" NULL AS hash FROM ({news}) g JOIN events c ON c.id = g.src"
        f" WHERE g.type = 'references' AND g.src_type = 'event' AND g.dst_type = 'asset' AND {stands(Viewer(), 'g')[0]}"
        " AND g.changed_event <= (SELECT until FROM asked)"  # what is newer is told on its own page
        f" AND c.kind = 'tool_call' AND {_shared('g.begin_event')} AND {_shared('c.id')}"
        f" AND EXISTS (SELECT 1 FROM asset_versions v WHERE v.asset = g.dst AND {_shared('v.event')})"
    )
    return [_use(row) for row in db.execute(_ASKED.format(found=found), (since, until, published))]


def _use(row: sqlite3.Row) -> Use:
    """Read a row; what a host has cut in half in a name is no text for SQLite, and comes as bytes."""
    tool = row["tool"]
    return Use(**{**dict(row), "tool": tool.decode("utf-8", "replace") if tool is not None else None})

"""The read-only look at the projections that `derive` and `apply` get: what has happened so far, by key.

At a replay the ledger is already whole, so whatever is read from `events` here is bounded by the position of the event
that is being applied.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

from graphsvc.model import (
    Asset,
    Edge,
    EdgeType,
    EventKind,
    Mention,
    NodeType,
    Record,
    Session,
    Stored,
    ToolCall,
    Version,
)
from graphsvc.store import events
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer, clause


@dataclass(frozen=True, slots=True)
class View:
    """Reads by key, on the state that the ledger's events so far have given."""

    db: Connection

    def project_key(self, project: int) -> str:
        """Return the key of a project: its folder."""
        return events.project_key(self.db, project)

    def event(self, number: int) -> Stored | None:
        """Read one event."""
        return events.get(self.db, number)

    def by_origin(self, event: Stored, origin: str) -> Stored | None:
        """Find an event of the same project that was there before this one."""
        found = events.by_origin(self.db, event.project, origin)
        return found if found is not None and found.id < event.id else None

    def rule_events(self, event: Stored, origin: str) -> list[int]:
        """List the events that rules put behind the event of that origin, before this one."""
        rows = self.db.execute(
            "SELECT id FROM events WHERE project = ? AND origin > ? AND origin < ? AND id < ? ORDER BY id",
            (event.project, f"rule:{origin}:", f"rule:{origin};", event.id),
        )
        return [row["id"] for row in rows]

    def ids_of_origins(self, event: Stored, origins: Sequence[str]) -> list[int]:
        """Find the ids of those origins that were there before this event."""
        found = events.ids_of_origins(self.db, event.project, origins)
        return [number for number in found if number < event.id]

    def session(self, session: int) -> Session | None:
        """Return what is known of a session; None before its first event was applied."""
        row = self.db.execute("SELECT * FROM session_state WHERE session = ?", (session,)).fetchone()
        return _session(row) if row else None

    def session_number(self, session_id: str) -> int | None:
        """Return the number of a session that has had events."""
        row = self.db.execute(
            "SELECT s.id FROM sessions s JOIN session_state t ON t.session = s.id WHERE s.host_id = ?", (session_id,)
        ).fetchone()
        return row["id"] if row else None

    def session_of(self, event: Stored, session_id: str) -> int | None:
        """Return the number of a session of the event's project that has had events."""
        row = self.db.execute(
            "SELECT s.id FROM sessions s JOIN session_state t ON t.session = s.id"
            " WHERE s.host_id = ? AND s.project = ?",
            (session_id, event.project),
        ).fetchone()
        return row["id"] if row else None

    def children(self, session_id: str) -> list[Session]:
        """List the sessions that name this one as their parent."""
        rows = self.db.execute("SELECT * FROM session_state WHERE parent = ? ORDER BY session", (session_id,))
        return [_session(row) for row in rows]

    def member(self, session: int, event: int) -> bool:
        """Say whether the session contains the event as a copy."""
        row = self.db.execute("SELECT 1 FROM membership WHERE session = ? AND event = ?", (session, event)).fetchone()
        return row is not None

    def call_of(self, result: Stored) -> Stored | None:
        """Return the tool call a result answers: by its id, else the call right before it that has none either."""
        tool_use_id = result.meta.get("tool_use_id")
        if isinstance(tool_use_id, str):
            call = self.tool_call(result.session, tool_use_id)
            return self.event(call.event) if call else None
        row = self.db.execute(
            "SELECT id FROM events WHERE session = ? AND seq < ? AND kind IN ('tool_call', 'tool_result')"
            " AND actor IS ? ORDER BY seq DESC LIMIT 1",
            (result.session, result.seq, result.actor),
        ).fetchone()
        before = self.event(row["id"]) if row else None
        unnamed = before is not None and before.kind is EventKind.TOOL_CALL and "tool_use_id" not in before.meta
        return before if unnamed else None

    def tool_call(self, session: int, tool_use_id: str) -> ToolCall | None:
        """Find a call by its id: the session's own, else one it shares with the session it was copied from."""
        row = self.db.execute(
            "SELECT * FROM tool_calls WHERE session = ? AND tool_use_id = ?", (session, tool_use_id)
        ).fetchone()
        row = (
            row
            or self.db.execute(
                "SELECT t.* FROM membership m JOIN tool_calls t ON t.event = m.event"
                " WHERE m.session = ? AND t.tool_use_id = ?",
                (session, tool_use_id),
            ).fetchone()
        )
        return ToolCall(**dict(row)) if row else None

    def isolated_at(self, session: int, ts: str) -> bool:
        """Say whether the session was isolated at a moment of the host's clock."""
        row = self.db.execute(
            # The kind is written out: a partial index is not used for a parameter.
            "SELECT body FROM events WHERE session = ? AND kind = 'isolation' AND at <= ?"
            " ORDER BY at DESC, id DESC LIMIT 1",
            (session, ts),
        ).fetchone()
        if row is None:  # what was said before its first switch, in a session that began isolated
            row = self.db.execute(
                "SELECT body FROM events WHERE session = ? AND kind = 'isolation'"
                " AND json_extract(meta, '$.default') = 1 LIMIT 1",
                (session,),
            ).fetchone()
        return row is not None and row["body"] == b"on"

    def hidden(self, event: int) -> bool:
        """Say whether an event is isolated and not published."""
        return self.db.execute("SELECT 1 FROM hidden WHERE event = ?", (event,)).fetchone() is not None

    def isolated(self, event: Stored, kind: NodeType) -> list[int]:
        """List what its session alone sees of a type, before this event: by the events of its records, or versions."""
        table, number, of = ("asset_versions", "event", "") if kind is NodeType.ASSET else ("records", "id", kind)
        typed = " AND o.type = ?" if of else ""
        rows = self.db.execute(
            f"SELECT h.event FROM {table} o JOIN hidden h ON h.event = o.{number} WHERE o.session = ?{typed}"
            " AND h.event < ? ORDER BY h.event",
            [event.session, *([of] if of else []), event.id],
        )
        return [row["event"] for row in rows]

    def rows_of(self, session: int, kind: NodeType, number: int) -> list[int]:
        """List the events that hold a node: of an asset the versions that a session wrote, else its own."""
        if kind is NodeType.EVENT:
            return [number]
        if kind is NodeType.ASSET:
            rows = self.db.execute(
                "SELECT v.event FROM asset_versions v WHERE v.session = ?"
                " AND v.asset = (SELECT o.asset FROM asset_versions o WHERE o.event = ?) ORDER BY v.event",
                (session, number),
            )
            return [row["event"] for row in rows]
        record = self.record(number)
        return [number] if record is not None and record.type is kind else []

    def asset(self, project: int, path: str) -> Asset | None:
        """Find an asset of the project by its path."""
        row = self.db.execute(
            "SELECT * FROM knowledge_assets WHERE project = ? AND path = ?", (project, path)
        ).fetchone()
        return Asset(**dict(row)) if row else None

    def written(self, event: Stored, path: str) -> bool:
        """Say whether a path was written before this event, as far as all that may see the event know."""
        condition, values = clause(_readers(event), "v.event")
        row = self.db.execute(
            "SELECT 1 FROM knowledge_assets a JOIN asset_versions v ON v.asset = a.id"
            f" WHERE a.project = ? AND a.path = ? AND {condition} LIMIT 1",
            (event.project, path, *values),
        ).fetchone()
        return row is not None

    def kind(self, asset: int, event: Stored) -> str | None:
        """Return the kind of an asset by its first version that all readers of this event may see; None without one."""
        condition, values = clause(_readers(event), "v.event")
        row = self.db.execute(
            f"SELECT v.kind FROM asset_versions v WHERE v.asset = ? AND {condition} ORDER BY v.event LIMIT 1",
            (asset, *values),
        ).fetchone()
        return row["kind"] if row else None

    def version_before(self, asset: int, event: Stored) -> Version | None:
        """Return the newest version before this event, among those that all its readers may see."""
        return self._version(asset, event, "(v.at, v.event) < (?, ?)", "DESC")

    def version_after(self, asset: int, event: Stored) -> Version | None:
        """Return the oldest version after this event, among those that all its readers may see."""
        return self._version(asset, event, "(v.at, v.event) > (?, ?)", "ASC")

    def _version(self, asset: int, event: Stored, where: str, order: str) -> Version | None:
        condition, values = clause(_readers(event), "v.event")
        row = self.db.execute(
            f"SELECT v.* FROM asset_versions v WHERE v.asset = ? AND {where} AND {condition}"
            f" ORDER BY v.at {order}, v.event {order} LIMIT 1",
            (asset, event.at, event.id, *values),
        ).fetchone()
        return version(row) if row else None

    def shared_version(self, asset: int) -> bool:
        """Say whether all may see a version of the asset."""
        row = self.db.execute(
            "SELECT 1 FROM asset_versions v WHERE v.asset = ?"
            " AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event) LIMIT 1",
            (asset,),
        ).fetchone()
        return row is not None

    def uncommitted(self, event: Stored, *, everyone: bool) -> list[tuple[int, str]]:
        """List the versions written until this event that nothing covers yet, as (asset event, path).

        Those of its session, or of everyone in the project; isolated ones when the event is isolated, else shared ones.
        """
        hidden = "EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event)"
        own = event.isolated or not everyone
        rows = self.db.execute(
            "SELECT v.event, a.path FROM asset_versions v JOIN knowledge_assets a ON a.id = v.asset"
            f" WHERE v.project = ? AND v.ref IS NULL AND v.at <= ?{' AND v.session = ?' if own else ''}"
            f" AND {hidden if event.isolated else f'NOT {hidden}'} ORDER BY v.at, v.event",
            (event.project, event.at, *([event.session] if own else [])),
        )
        return [(row["event"], row["path"]) for row in rows]

    def mentions(self, project: int, path: str) -> list[Mention]:
        """List the nodes whose text names a path."""
        rows = self.db.execute("SELECT * FROM mentions WHERE project = ? AND path = ?", (project, path))
        return [_mention(row) for row in rows]

    def mention(self, like: Mention) -> Mention | None:
        """Find the mention with the same key."""
        row = self.db.execute(
            "SELECT * FROM mentions WHERE project = ? AND path = ? AND src_type = ? AND src = ? AND rule = ?",
            (like.project, like.path, like.src_type, like.src, like.rule),
        ).fetchone()
        return _mention(row) if row else None

    def stale_mentions(self, asset: int, named: Sequence[str]) -> list[Mention]:
        """List the paths an asset's text named and no longer names."""
        rows = self.db.execute(
            "SELECT * FROM mentions WHERE src_type = 'asset' AND src = ? AND live = 1"
            " AND path NOT IN (SELECT value FROM json_each(?))",
            (asset, json.dumps(list(named))),
        )
        return [_mention(row) for row in rows]

    def edge(self, kind: EdgeType, src_type: NodeType, src: int, dst_type: NodeType, dst: int) -> Edge | None:
        """Find one edge by its key."""
        row = self.db.execute(
            "SELECT * FROM lineage_edges WHERE src_type = ? AND src = ? AND type = ? AND dst_type = ? AND dst = ?",
            (src_type, src, kind, dst_type, dst),
        ).fetchone()
        return edge(row) if row else None

    def inferred(self, session: int) -> list[Edge]:
        """List the standing edges between this session and others that shared records suggest."""
        rows = self.db.execute(
            "SELECT * FROM lineage_edges WHERE src_type = 'session' AND src = ? AND type = 'precedes'"
            " AND dst_type = 'session' AND confidence = 'inferred' AND end_event IS NULL"
            " UNION ALL SELECT * FROM lineage_edges WHERE dst_type = 'session' AND dst = ? AND type = 'precedes'"
            " AND src_type = 'session' AND confidence = 'inferred' AND end_event IS NULL",
            (session, session),
        )
        return [edge(row) for row in rows]

    def record(self, number: int) -> Record | None:
        """Find a goal, decision, feedback, candidate or todo by its number."""
        row = self.db.execute("SELECT * FROM records WHERE id = ?", (number,)).fetchone()
        return record(row) if row else None

    def record_by_id(self, name: str) -> Record | None:
        """Find a record by the id that people see, `decision-41`, or its bare number."""
        digits = name.rpartition("-")[2]
        return self.record(int(digits)) if digits.isascii() and digits.isdigit() and len(digits) < 18 else None

    def record_by_key(self, session: int, kind: NodeType, key: str) -> Record | None:
        """Find the newest record of a session, or of those it was copied from, by the host's own id of it."""
        row = self.db.execute(
            "SELECT * FROM records WHERE type = ? AND key = ?"
            " AND (session = ? OR id IN (SELECT event FROM membership WHERE session = ?)) ORDER BY id DESC LIMIT 1",
            (kind, key, session, session),
        ).fetchone()
        return record(row) if row else None

    def todos(self, event: Stored) -> list[Record]:
        """List the todos the event's session made, oldest first; isolated ones only when the event is isolated too."""
        condition, values = clause(_readers(event), "r.id")
        rows = self.db.execute(
            f"SELECT r.* FROM records r WHERE r.session = ? AND r.type = 'todo' AND {condition} ORDER BY r.id",
            (event.session, *values),
        )
        return [record(row) for row in rows]

    def checkpoint_before(self, event: Stored) -> int | None:
        """Return the session's checkpoint before this one."""
        return self._checkpoint(event, "<", "DESC")

    def checkpoint_after(self, event: Stored) -> int | None:
        """Return the session's checkpoint after this one."""
        return self._checkpoint(event, ">", "ASC")

    def _checkpoint(self, event: Stored, sign: str, order: str) -> int | None:
        condition, values = clause(_readers(event), "e.id")
        row = self.db.execute(
            f"SELECT e.id FROM events e WHERE e.session = ? AND e.kind = 'compact_checkpoint'"
            f" AND (e.at, e.id) {sign} (?, ?) AND e.id <= ? AND {condition}"
            f" ORDER BY e.at {order}, e.id {order} LIMIT 1",
            # Not beyond the event's own position: a replay must see what was there then.
            (event.session, event.at, event.id, event.id, *values),
        ).fetchone()
        return row["id"] if row else None


def _readers(event: Stored) -> Viewer:
    """Who may see an event: its session alone when it is isolated, else all."""
    return Viewer(session=event.session if event.isolated else None)


def version(row: sqlite3.Row) -> Version:
    """Read a version row."""
    values = {item.name: row[item.name] for item in fields(Version)}
    if values["content"] is not None:
        values["content"] = zlib.decompress(values["content"]).decode("utf-8", "surrogatepass")
    return Version(**values)


def record(row: sqlite3.Row) -> Record:
    """Read a record row."""
    values = {item.name: row[item.name] for item in fields(Record)}
    return Record(**{**values, "type": NodeType(values["type"]), "evidence": tuple(json.loads(values["evidence"]))})


def edge(row: sqlite3.Row) -> Edge:
    """Read an edge row."""
    return Edge(
        type=EdgeType(row["type"]),
        src_type=NodeType(row["src_type"]),
        src=row["src"],
        dst_type=NodeType(row["dst_type"]),
        dst=row["dst"],
        rule=row["rule"],
        confidence=row["confidence"],
        begin_event=row["begin_event"],
        begin_at=row["begin_at"],
        end_event=row["end_event"],
        end_at=row["end_at"],
        changed_event=row["changed_event"],
    )


def _mention(row: sqlite3.Row) -> Mention:
    values = dict(row)
    return Mention(**{**values, "src_type": NodeType(values["src_type"]), "live": bool(values["live"])})


def _session(row: sqlite3.Row) -> Session:
    values = dict(row)
    return Session(**{**values, "ended": bool(values["ended"]), "isolated": bool(values["isolated"])})

"""Navigation: `ls` and `cd`, the walk over sessions, assets, events and records by one hop (protocol §2.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import strawberry

from graphsvc.envelope import Long, NavContext, NavItem, NavKind, NavResult
from graphsvc.errors import NotFoundError
from graphsvc.model import Edge, EventKind, NodeId, NodeType, Record, Stored, Version
from graphsvc.recall import fit
from graphsvc.recall.fit import row
from graphsvc.recall.request import Request, call
from graphsvc.recall.targets import HIDDEN, Found, Node, resolve
from graphsvc.store import assets, edges, events, records, sessions
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Viewer, visible

MAX_EDGES: Final = 400
MAX_EVIDENCE: Final = 20
MAX_SESSIONS: Final = 1000
MANY: Final = "several documents end with this path"
_KINDS: Final = {"ls": NavKind.LIST, "cd": NavKind.NODE, "cat": NavKind.CONTENT, "grep": NavKind.HITS}
_AS_EVENTS: Final = frozenset({NodeType.GOAL, NodeType.FEEDBACK, NodeType.CANDIDATE, NodeType.EVENT})


def not_found(request: Request, error: NotFoundError) -> NavResult:
    """Say that nothing is there, with a call that works."""
    verb = request.nav or "cd"
    return fit.rows(
        NavResult(
            kind=_KINDS[verb],
            title=f"not found: {error.target}",
            items=[],
            status="not-found",
            suggestion=error.suggestion,
        ),
        (),
        request,
    )


def several(found: list[AssetRow], request: Request) -> NavResult:
    """List the documents a path may mean: a guess would be a fabricated answer."""
    result = NavResult(kind=NavKind.LIST, title=f"{request.target}: {MANY}", items=[])
    return fit.rows(result, [_asset(asset) for asset in found], request)


def ls(db: Connection, viewer: Viewer, request: Request) -> NavResult:
    """List a session's outputs and pending todos, or another node's edges; without any session, the sessions."""
    target = request.target or request.session_id
    if target is None:
        session = sessions.by_number(db, viewer.session) if viewer.session is not None else sessions.latest(db, viewer)
        if session is None:
            return _sessions(db, viewer, request)
        return _outputs(db, viewer, session, request)
    found = resolve(db, viewer, target, "ls")
    if isinstance(found, list):
        return several(found, request)
    if isinstance(found.node, SessionRow):
        return _outputs(db, viewer, found.node, request)
    if found.hidden:
        return hidden(found, NavKind.LIST, request)
    result = NavResult(
        kind=NavKind.LIST,
        title=f"{found.id} · edges",
        items=[],
        context=context(found),
        suggestion=also(found, "ls"),
    )
    return fit.rows(result, _edges(db, viewer, found.id.type, found.id.number), request)


def cd(db: Connection, viewer: Viewer, request: Request) -> NavResult:
    """Show one node: what it is, where it came from, what it touches."""
    found = resolve(db, viewer, str(request.target), "cd")
    if isinstance(found, list):
        return several(found, request)
    if found.node is None:
        return hidden(found, NavKind.NODE, request)
    items = _show(db, viewer, found.node)
    evidence = list(dict.fromkeys(str(one.id) for one in items if str(one.id).startswith("event-")))[:MAX_EVIDENCE]
    result = NavResult(
        kind=NavKind.NODE,
        title=title(found),
        items=[],
        context=context(found, evidence),
        suggestion=also(found, "cd"),
    )
    return fit.rows(result, items, request)


def _show(db: Connection, viewer: Viewer, node: Node) -> list[NavItem]:
    match node:
        case SessionRow():
            return _show_session(db, viewer, node)
        case AssetRow():
            return _show_asset(db, viewer, node)
        case Record():
            return _show_record(db, viewer, node)
        case Stored():
            return _show_event(db, viewer, node)


def hidden(found: Found, kind: NavKind, request: Request) -> NavResult:
    """Answer a direct id of something isolated: it exists, nothing of it is shown."""
    item = row(str(found.id), _type(found.id.type), HIDDEN)
    return fit.rows(NavResult(kind=kind, title=str(found.id), items=[]), [item], request)


def title(found: Found) -> str:
    """Head the answer about one node."""
    match found.node:
        case SessionRow() as session:
            return f"{found.id} · {session.title or session.project_key}"
        case AssetRow() as asset:
            return f"{found.id} · {asset.path} · {asset.title}"
        case Record() as record:
            return f"{found.id} · {record.status} · {' '.join(record.text[:200].split())}"
        case Stored() as event:
            return f"{found.id} · {describe(event)} · {event.ts or 'no time'}"
        case None:
            return str(found.id)


def context(found: Found, evidence: list[str] | None = None) -> NavContext:
    """Say where a node stands, and which events the answer rests on."""
    node = found.node
    session_id = node.session_id if isinstance(node, SessionRow | Stored) else None
    asset_id = Long(node.id) if isinstance(node, AssetRow) else None
    ids = [strawberry.ID(one) for one in evidence] if evidence else None
    return NavContext(session_id=session_id, asset_id=asset_id, evidence=ids)


def also(found: Found, verb: str) -> str | None:
    """Name the other node a bare number may mean."""
    return call({"nav": verb, "target": found.also}) if found.also else None


def describe(event: Stored) -> str:
    """Return what an event is, in a few words."""
    parts: list[str] = [event.kind]
    for name in ("tool_name", "record"):
        value = event.meta.get(name)
        if isinstance(value, str):
            parts.append(value)
    if event.meta.get("is_error") is True:
        parts.append("error")
    if event.actor:
        parts.append(f"by {event.actor}")
    return " ".join(parts)


def _sessions(db: Connection, viewer: Viewer, request: Request) -> NavResult:
    listed = sessions.page(db, viewer, None, MAX_SESSIONS)
    result = NavResult(kind=NavKind.LIST, title="sessions", items=[])
    return fit.rows(result, [_session(session) for session in listed], request)


def _outputs(db: Connection, viewer: Viewer, session: SessionRow, request: Request) -> NavResult:
    items = [_asset(asset) for asset in assets.produced(db, viewer, session.number)]
    items += [_record(todo) for todo in records.of_session(db, viewer, session.number, pending_todos=True)]
    if session.hides and viewer.session != session.number:
        items.append(row(f"session-{session.session_id}", "session", HIDDEN))
    result = NavResult(
        kind=NavKind.LIST,
        title=f"session-{session.session_id} · outputs and pending todos",
        items=[],
        context=NavContext(session_id=session.session_id),
        suggestion=None if items else call({"nav": "cd", "target": f"session-{session.session_id}"}),
    )
    return fit.rows(result, items, request)


def _show_session(db: Connection, viewer: Viewer, session: SessionRow) -> list[NavItem]:
    items = _edges(db, viewer, NodeType.SESSION, session.number, skip={NodeType.ASSET})
    items += [_asset(asset) for asset in assets.produced(db, viewer, session.number)]
    items += [_record(record) for record in records.of_session(db, viewer, session.number)]
    talk = events.marks(db, viewer, session.number)
    items += [_event(event) for event in talk]
    if session.hides and viewer.session != session.number:
        items.append(row(f"session-{session.session_id}", "session", HIDDEN))
    return items


def _show_asset(db: Connection, viewer: Viewer, asset: AssetRow) -> list[NavItem]:
    versions = assets.versions(db, viewer, asset.id)
    items: list[NavItem] = []
    for number, version in enumerate(versions, 1):
        text = "whole" if version.content is not None else "partial"
        label = f"v{number} {version.at[:19]}Z {version.title} ({text})"
        items.append(row(f"event-{version.event}", "event", label, version.ref or (version.hash or "")[:12] or None))
        items += [
            row(f"event-{place}", "event", f"v{number} {name}")
            for name, place in (("written by this call", version.call), ("result of the call", version.result))
            if place is not None and visible(db, viewer, place)
        ]
    items += _commits(db, viewer, versions)
    return items + _edges(db, viewer, NodeType.ASSET, asset.id, skip={NodeType.EVENT})


def _commits(db: Connection, viewer: Viewer, versions: list[Version]) -> list[NavItem]:
    refs = {version.ref_event: version.ref for version in versions if version.ref_event is not None}
    found = events.many(db, [number for number in refs if visible(db, viewer, number)])
    return [row(f"event-{number}", "event", event.body, refs[number]) for number, event in found.items()]


def _show_record(db: Connection, viewer: Viewer, record: Record) -> list[NavItem]:
    items = [_record(record)]
    evidence = [number for number in record.evidence if visible(db, viewer, number)]
    items += [_event(event, "evidence") for event in events.many(db, evidence).values()]
    if record.changed_event != record.id and visible(db, viewer, record.changed_event):
        changed = events.get(db, record.changed_event)
        if changed is not None:
            items.append(_event(changed, record.status))
    session = sessions.by_number(db, record.session)
    if session is not None:
        items.append(_session(session))
    return items + [
        item for item in _edges(db, viewer, record.type, record.id) if item.id not in {one.id for one in items}
    ]


def _show_event(db: Connection, viewer: Viewer, event: Stored) -> list[NavItem]:
    record = records.get(db, event.id)
    items = [_record(record) if record is not None else _event(event)]
    near = events.around(db, viewer, event)
    items += [_event(one, name) for name, one in near]
    items += [_record(one) for one in records.caused_by(db, viewer, event.id) if one.id != event.id]
    for version in assets.written_by(db, event.id):
        asset = assets.get(db, viewer, version.asset)
        if asset is not None and visible(db, viewer, version.event):
            items.append(_asset(asset))
    version_here = assets.version_of(db, event.id)
    if version_here is not None:
        asset = assets.get(db, viewer, version_here.asset)
        if asset is not None:
            items.append(_asset(asset))
    session = sessions.by_number(db, event.session)
    if session is not None:
        items.append(_session(session))
    known = {str(item.id) for item in items}
    items += [item for item in _edges(db, viewer, NodeType.EVENT, event.id) if str(item.id) not in known]
    return list({(str(item.id), item.type): item for item in reversed(items)}.values())[::-1]


def _edges(db: Connection, viewer: Viewer, kind: NodeType, number: int, skip: Iterable[NodeType] = ()) -> list[NavItem]:
    """Show the edges of a node as rows that name the other end; ends the viewer may not see are one constant row."""
    left_out, items, concealed = set(skip), [], False
    for edge in edges.around(db, viewer, kind, number, MAX_EDGES):
        out = edge.src_type is kind and edge.src == number
        other = (edge.dst_type, edge.dst) if out else (edge.src_type, edge.src)
        if other[0] in left_out:
            continue
        item = _end(db, viewer, other[0], other[1], edge, out=out)
        concealed = concealed or item is None
        items += [item] if item is not None else []
    if concealed:
        items.append(
            row(f"{kind}-{number}" if kind is not NodeType.SESSION else _name(db, number), _type(kind), HIDDEN)
        )
    return items


def _end(db: Connection, viewer: Viewer, kind: NodeType, number: int, edge: Edge, *, out: bool) -> NavItem | None:
    arrow = f"{edge.type} →" if out else f"← {edge.type}"
    how = edge.rule + (", inferred" if edge.confidence != "stated" else "") + (", ended" if edge.end_event else "")
    item = _node(db, viewer, kind, number)
    if item is None:
        return None
    return row(str(item.id), item.type.value, f"{arrow} {item.label} ({how})", item.ref)


def _node(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> NavItem | None:
    """Return the row of any node the viewer may see."""
    if kind is NodeType.SESSION:
        session = sessions.by_number(db, number)
        return _session(session) if session else None
    if kind is NodeType.ASSET:
        asset = assets.get(db, viewer, number)
        return _asset(asset) if asset else None
    if not visible(db, viewer, number):
        return None
    if kind is NodeType.EVENT:
        event = events.get(db, number)
        return _event(event) if event else None
    record = records.get(db, number)
    return _record(record) if record else None


def _session(session: SessionRow) -> NavItem:
    state = "isolated" if session.isolated else "ended" if session.ended else "open"
    title = session.title or session.project_key
    label = f"{title} · {session.host or 'session'} {state}, {session.started_at[:16]} to {session.last_at[:16]}"
    return row(f"session-{session.session_id}", "session", label, session.project_key)


def _asset(asset: AssetRow) -> NavItem:
    count = f"{asset.versions} version{'s' if asset.versions != 1 else ''}"
    return row(f"asset-{asset.id}", "asset", f"{asset.path} · {asset.title} · {asset.kind}, {count}", asset.ref)


def _record(record: Record) -> NavItem:
    """Decisions and todos are rows of their own; the others appear as the event that recorded them."""
    label = f"{record.type} {record.status}: {record.text}"
    if record.type in _AS_EVENTS:
        return row(f"event-{record.id}", "event", label, f"{record.type}-{record.id}")
    ref = f"decision-{record.superseded_by}" if record.superseded_by else None
    return row(f"{record.type}-{record.id}", record.type, label, ref)


def _event(event: Stored, name: str = "") -> NavItem:
    text = event.body if event.kind is not EventKind.RAW else event.body[:80]
    return row(f"event-{event.id}", "event", f"{name + ': ' if name else ''}{describe(event)}: {text[:300]}")


def _name(db: Connection, number: int) -> str:
    session = sessions.by_number(db, number)
    return str(NodeId(NodeType.SESSION, session.session_id if session else str(number)))


def _type(kind: NodeType) -> str:
    return "event" if kind in _AS_EVENTS else kind

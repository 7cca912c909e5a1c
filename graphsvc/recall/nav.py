"""Navigation: `ls` and `cd`, the walk over sessions, assets, events and records by one hop (protocol §2.2)."""

from __future__ import annotations

from typing import Final

import strawberry

from graphsvc.envelope import Long, NavContext, NavItem, NavKind, NavResult
from graphsvc.errors import NotFoundError, StoreError
from graphsvc.model import Edge, EventKind, NodeId, NodeType, Record, Stored, Version
from graphsvc.recall import fit
from graphsvc.recall.fit import row
from graphsvc.recall.request import Request, call
from graphsvc.recall.targets import HIDDEN, Found, Node, resolve
from graphsvc.recall.targets import session as session_named
from graphsvc.store import assets, events, records, sessions
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.edges import hop
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Viewer, visible

MAX_EDGES: Final = 400  # edges that `cd` shows; `ls` pages through all
MAX_EVIDENCE: Final = 20
MANY: Final = "several documents end with this path"
_KINDS: Final = {"ls": NavKind.LIST, "cd": NavKind.NODE, "cat": NavKind.CONTENT, "grep": NavKind.HITS}
# Ends that `cd` shows otherwise than as edges.
_SKIPPED: Final = {NodeType.SESSION: (NodeType.ASSET,), NodeType.ASSET: (NodeType.EVENT,)}
_NEWEST: Final = 2**62  # behind no session
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
    if request.target is None and request.session_id is None:
        session = sessions.by_number(db, viewer.session) if viewer.session is not None else sessions.latest(db, viewer)
        if session is None:
            return _sessions(db, viewer, request)
        return _outputs(db, viewer, session, request)
    if request.target is None:
        found: Found | list[AssetRow] = session_named(db, viewer, str(request.session_id))
    else:
        found = resolve(db, viewer, request.target, "ls")
    if isinstance(found, list):
        return several(found, request)
    if isinstance(found.node, SessionRow):
        return _outputs(db, viewer, found.node, request)
    if found.node is None:
        return hidden(found, NavKind.LIST, request)
    result = NavResult(
        kind=NavKind.LIST,
        title=f"{found.id} · edges",
        items=[],
        context=context(found),
        suggestion=also(found, "ls"),
    )
    return _edges_page(db, viewer, found.node, result, request)


def cd(db: Connection, viewer: Viewer, request: Request) -> NavResult:
    """Show one node: what it is, where it came from, what it touches."""
    found = resolve(db, viewer, str(request.target), "cd")
    if isinstance(found, list):
        return several(found, request)
    if found.node is None:
        return hidden(found, NavKind.NODE, request)
    items = _show(db, viewer, found.node)
    evidence = list(dict.fromkeys(str(one.id) for one in items if str(one.id).startswith("event-")))
    result = NavResult(
        kind=NavKind.NODE,
        title=title(viewer, found),
        items=[],
        context=context(found, evidence[:MAX_EVIDENCE]),
        suggestion=also(found, "cd"),
        notes=_left_out(db, viewer, found.node, len(evidence)) or None,
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


def title(viewer: Viewer, found: Found) -> str:
    """Head the answer about one node."""
    match found.node:
        case SessionRow() as session:
            return f"{found.id} · {session.known_as(viewer) or session.project_key}"
        case AssetRow() as asset:
            return f"{found.id} · {asset.path} · {asset.title}"
        case Record() as record:
            return f"{found.id} · {_standing(record)} · {' '.join(record.text[:200].split())}"
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
    """List sessions; the cursor is the place of the last one in time, so that a new session moves no page."""
    moment, event = fit.places(request, fit.mark(request), 2) or (_NEWEST, 0)
    listed = sessions.page(db, viewer, (moment, event), request.limit + 1)
    places = [(moment, event), *map(sessions.place, listed)]
    result = NavResult(kind=NavKind.LIST, title="sessions", items=[])
    return fit.rows(result, [_session(viewer, session) for session in listed], request, places.__getitem__)


def _edges_page(db: Connection, viewer: Viewer, node: Node, result: NavResult, request: Request) -> NavResult:
    """List the edges of a node, as many as the page holds; behind the last one, that others are isolated."""
    kind, number = _key(node)
    (start,) = fit.places(request, fit.mark(request), 1) or (0,)
    _, concealed = hop.count(db, viewer, kind, number)
    page = hop.around(db, viewer, kind, number, request.limit + 1, offset=start)
    items = [_end(db, viewer, kind, number, edge) for edge in page]
    if concealed and len(page) <= request.limit:
        items.append(_concealed(node))
    return fit.rows(result, items, request, lambda count: (start + count,))


def _left_out(db: Connection, viewer: Viewer, node: Node, evidence: int) -> list[str]:
    """Say what the answer about a node does not show."""
    kind, number = _key(node)
    known, _ = hop.count(db, viewer, kind, number, skip=_SKIPPED.get(kind, ()))
    notes = []
    if known > MAX_EDGES:
        where = "; ls has all" if kind is not NodeType.SESSION else ""
        notes.append(f"{known - MAX_EDGES} more edges are left out{where}")
    if evidence > MAX_EVIDENCE:
        notes.append(f"context names {MAX_EVIDENCE} of {evidence} events; the rows name all")
    return notes


def _key(node: Node) -> tuple[NodeType, int]:
    """Return what the edges of a node are stored under."""
    match node:
        case SessionRow():
            return NodeType.SESSION, node.number
        case AssetRow():
            return NodeType.ASSET, node.key
        case Record():
            return node.type, node.id
        case Stored():
            return NodeType.EVENT, node.id


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
    items = _edges(db, viewer, session)
    items += [_asset(asset) for asset in assets.produced(db, viewer, session.number)]
    items += [_record(record) for record in records.of_session(db, viewer, session.number)]
    talk = events.marks(db, viewer, session.number)
    items += [_event(event) for event in talk]
    if session.hides and viewer.session != session.number:
        items.append(row(f"session-{session.session_id}", "session", HIDDEN))
    return items


def _show_asset(db: Connection, viewer: Viewer, asset: AssetRow) -> list[NavItem]:
    versions = assets.versions(db, viewer, asset.key)
    items: list[NavItem] = []
    shown = events.shown(db, viewer, [place for one in versions for place in (one.call, one.result) if place])
    for number, version in enumerate(versions, 1):
        text = "whole" if version.hash else "partial"
        label = f"v{number} {version.at[:19]}Z {version.title} ({text})"
        items.append(row(f"event-{version.event}", "event", label, version.ref or (version.hash or "")[:12] or None))
        items += [
            row(f"event-{place}", "event", f"v{number} {name}")
            for name, place in (("written by this call", version.call), ("result of the call", version.result))
            if place in shown
        ]
    items += _commits(db, viewer, versions)
    return items + _edges(db, viewer, asset)


def _commits(db: Connection, viewer: Viewer, versions: list[Version]) -> list[NavItem]:
    refs = {version.ref_event: version.ref for version in versions if version.ref_event is not None}
    found = events.many(db, events.shown(db, viewer, refs))
    return [row(f"event-{number}", "event", event.body, refs[number]) for number, event in found.items()]


def _show_record(db: Connection, viewer: Viewer, record: Record) -> list[NavItem]:
    items = [_record(record)]
    if not viewer.reaches(record.project):
        return items
    evidence = [number for number in record.evidence if visible(db, viewer, number)]
    items += [_event(event, "evidence") for event in events.many(db, evidence).values()]
    if record.changed_event != record.id and visible(db, viewer, record.changed_event):
        changed = events.get(db, record.changed_event)
        if changed is not None:
            items.append(_event(changed, record.status))
    session = sessions.by_number(db, record.session)
    if session is not None:
        items.append(_session(viewer, session))
    return items + [item for item in _edges(db, viewer, record) if item.id not in {one.id for one in items}]


def _show_event(db: Connection, viewer: Viewer, event: Stored) -> list[NavItem]:
    record = records.get(db, event.id)
    items = [_record(record) if record is not None else _event(event)]
    near = events.around(db, viewer, event)
    items += [_event(one, name) for name, one in near]
    items += [_record(one) for one in records.caused_by(db, viewer, event.id) if one.id != event.id]
    for version in assets.written_by(db, event.id):
        if visible(db, viewer, version.event):
            items += [_asset(asset) for asset in assets.by_key(db, viewer, version.asset)]
    version_here = assets.version_of(db, event.id)
    if version_here is not None:
        items += [_asset(asset) for asset in assets.by_key(db, viewer, version_here.asset)]
    session = sessions.by_number(db, event.session)
    if session is not None:
        items.append(_session(viewer, session))
    known = {str(item.id) for item in items}
    items += [item for item in _edges(db, viewer, event) if str(item.id) not in known]
    return list({(str(item.id), item.type): item for item in reversed(items)}.values())[::-1]


def _edges(db: Connection, viewer: Viewer, node: Node) -> list[NavItem]:
    """Show the edges of a node as rows that name the other end; ends the viewer may not see are one constant row."""
    kind, number = _key(node)
    skip = _SKIPPED.get(kind, ())
    found = hop.around(db, viewer, kind, number, MAX_EDGES, skip=skip)
    items = [_end(db, viewer, kind, number, edge) for edge in found]
    _, concealed = hop.count(db, viewer, kind, number, skip=skip)
    return [*items, _concealed(node)] if concealed else items


def _concealed(node: Node) -> NavItem:
    """The constant row for edges of a node whose other ends are isolated."""
    kind, _ = _key(node)
    name = NodeId(kind, node.session_id if isinstance(node, SessionRow) else str(node.id))
    return row(str(name), _type(kind), HIDDEN)


def _end(db: Connection, viewer: Viewer, kind: NodeType, number: int, edge: Edge) -> NavItem:
    """Return the row of an edge's other end, which the store has found the viewer may see."""
    out = edge.src_type is kind and edge.src == number
    item = _node(db, viewer, *((edge.dst_type, edge.dst) if out else (edge.src_type, edge.src)))
    arrow = f"{edge.type} →" if out else f"← {edge.type}"
    how = edge.rule + (", inferred" if edge.confidence != "stated" else "") + (", ended" if edge.end_event else "")
    return row(str(item.id), item.type.value, f"{arrow} {item.label} ({how})", item.ref)


def _node(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> NavItem:
    """Return the row of a node that the viewer may see."""
    node: Node | None = None
    if kind is NodeType.SESSION:
        node = sessions.by_number(db, number)
    elif kind is NodeType.ASSET:
        node = next(iter(assets.by_key(db, viewer, number)), None)
    elif kind is NodeType.EVENT:
        node = events.get(db, number)
    else:
        node = records.get(db, number)
    match node:
        case SessionRow():
            return _session(viewer, node)
        case AssetRow():
            return _asset(node)
        case Record():
            return _record(node)
        case Stored():
            return _event(node)
        case None:
            raise StoreError(f"an edge leads to {kind}-{number}, which is not there: graphsvc rebuild")


def _session(viewer: Viewer, session: SessionRow) -> NavItem:
    state = "isolated" if session.isolated else "ended" if session.ended else "open"
    title = session.known_as(viewer) or session.project_key
    label = f"{title} · {session.host or 'session'} {state}, {session.started_at[:16]} to {session.last_at[:16]}"
    return row(f"session-{session.session_id}", "session", label, session.project_key)


def _asset(asset: AssetRow) -> NavItem:
    count = f"{asset.versions} version{'s' if asset.versions != 1 else ''}"
    return row(f"asset-{asset.id}", "asset", f"{asset.path} · {asset.title} · {asset.kind}, {count}", asset.ref)


def _record(record: Record) -> NavItem:
    """Decisions and todos are rows of their own; the others appear as the event that recorded them."""
    label = f"{record.type} {_standing(record)}: {record.text}"
    if record.type in _AS_EVENTS:
        return row(f"event-{record.id}", "event", label, f"{record.type}-{record.id}")
    ref = f"decision-{record.superseded_by}" if record.superseded_by else None
    return row(f"{record.type}-{record.id}", record.type, label, ref)


def _standing(record: Record) -> str:
    """Say where a record stands, and how far it holds when that is not its project."""
    return record.status if record.scope == "project" else f"{record.status}, {record.scope}"


def _event(event: Stored, name: str = "") -> NavItem:
    text = event.body if event.kind is not EventKind.RAW else event.body[:80]
    return row(f"event-{event.id}", "event", f"{name + ': ' if name else ''}{describe(event)}: {text[:300]}")


def _type(kind: NodeType) -> str:
    return "event" if kind in _AS_EVENTS else kind

"""Pure rules from one event to the rows of the projections: `apply(event, view)`.

Used at capture and by a replay of the ledger, on the same events in the same order, so it may look at nothing but the
event and what the events before it have given. "Later" is by event time: an older event that arrives late never undoes
a newer state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from graphsvc import states
from graphsvc.memory import paths, tools
from graphsvc.model import (
    RECORD_KINDS,
    TALK_KINDS,
    Asset,
    Edge,
    EdgeType,
    EventKind,
    Hidden,
    Membership,
    Mention,
    NodeType,
    Published,
    Record,
    Row,
    Session,
    Stored,
    ToolCall,
    Version,
)
from graphsvc.store.view import View

CREATES: Final = frozenset({"record", "propose", "supersede"})
MAX_TITLE: Final = 80
Rows = Iterator[Row]


def apply(event: Stored, view: View) -> Rows:
    """Yield the rows that this event changes. Each must be written before the next one is asked for."""
    if event.isolated:
        yield Hidden(event=event.id)
    yield from _session(event, view)
    for rule in _RULES.get(event.kind, ()):
        yield from rule(event, view)


def action_of(event: Stored) -> str:
    """Return what a state event does; without a word it records."""
    action = event.meta.get("action")
    return action if isinstance(action, str) else "record"


def subject(event: Stored, view: View) -> Record | None:
    """Return the record that a state event moves: by the origin that created it, or by the host's own id."""
    of, key = event.meta.get("of"), event.meta.get("key")
    if isinstance(of, str):
        source = view.by_origin(event, of)
        return view.record(source.id) if source else None
    return view.record_by_key(event.session, NodeType(event.kind), key) if isinstance(key, str) else None


def _session(event: Stored, view: View) -> Rows:
    """Every event moves its session forward; the first one may join it to sessions that named it as their parent."""
    known = view.session(event.session)
    session = known or Session(session=event.session, started_at=event.at)
    meta = event.meta
    switch = meta.get("action") if event.kind is EventKind.ISOLATION else None
    session = replace(
        session,
        host=session.host or _text(meta.get("host")),
        title=session.title if event.isolated else _text(meta.get("title")) or session.title or _prompt(event),
        cwd=session.cwd or _text(meta.get("cwd")),
        parent=session.parent or _text(meta.get("parent")),
        relation=session.relation or _text(meta.get("relation")),
        started_at=min(session.started_at or event.at, event.at),
        last_at=max(session.last_at or event.at, event.at),
        last_event=event.id,
        ended=event.kind is EventKind.SESSION_END or (session.ended and event.kind not in TALK_KINDS),
        isolated=session.isolated if switch is None else switch == "on",
    )
    yield session
    joined = known is not None and known.parent is not None
    if session.parent and not joined:
        parent = view.session_number(session.parent)
        if parent is not None and parent != event.session:
            yield _precedes(event, parent, event.session, session.relation or "resume", "stated")
    if known is None:
        for child in view.children(event.session_id):
            if child.session != event.session:
                yield _precedes(event, event.session, child.session, child.relation or "resume", "stated")


def _prompt(event: Stored) -> str | None:
    """A session without a title goes by its user's first words."""
    if event.kind is not EventKind.USER_MESSAGE or event.actor is not None:
        return None
    return next((line.strip()[:MAX_TITLE] for line in event.body.splitlines() if line.strip()), None)


def _precedes(event: Stored, before: int, after: int, rule: str, confidence: str) -> Edge:
    return Edge(
        type=EdgeType.PRECEDES,
        src_type=NodeType.SESSION,
        src=before,
        dst_type=NodeType.SESSION,
        dst=after,
        rule=rule,
        confidence=confidence,
        begin_event=event.id,
        begin_at=event.at,
    )


def _member(event: Stored, view: View) -> Rows:
    """An event of another session that this one holds too: a resume or fork copied it."""
    of = event.meta.get("of")
    source = view.by_origin(event, of) if event.meta.get("action") == "member" and isinstance(of, str) else None
    if source is None:
        return
    yield Membership(session=event.session, event=source.id)
    ours, theirs = view.session(event.session), view.session(source.session)
    if ours is None or theirs is None:
        return
    first, second = sorted((theirs, ours), key=lambda one: (one.started_at or "", one.session != source.session))
    key = (EdgeType.PRECEDES, NodeType.SESSION, first.session, NodeType.SESSION, second.session)
    back = (EdgeType.PRECEDES, NodeType.SESSION, second.session, NodeType.SESSION, first.session)
    if view.edge(*key) is None and view.edge(*back) is None:
        yield _precedes(event, first.session, second.session, "shared records", "inferred")


def _publish(event: Stored, view: View) -> Rows:
    """Publishing shows the named events of the session to all."""
    of = event.meta.get("of")
    for number in view.ids_of_origins(
        event, [name for name in of if isinstance(name, str)] if isinstance(of, list) else []
    ):
        source = view.event(number)
        if source is not None and source.session == event.session:
            yield Published(event=number)


def _call(event: Stored, _: View) -> Rows:
    tool_use_id = event.meta.get("tool_use_id")
    if isinstance(tool_use_id, str):
        yield ToolCall(session=event.session, tool_use_id=tool_use_id, event=event.id)


def _read(event: Stored, view: View) -> Rows:
    """A tool call that read a file references it, as soon as the file is an asset. A read that failed read nothing."""
    call = None if event.meta.get("is_error") is True else view.call_of(event)
    if call is None or tools.name_of(call) not in tools.READS:
        return
    path = tools.path_of(call, tools.input_of(call))
    if path is None:
        return
    project, cwd = view.project_key(event.project), _text(call.meta.get("cwd")) or _text(event.meta.get("cwd"))
    yield from _mention(event, view, paths.key(project, cwd, path), NodeType.EVENT, call.id, "reads")


def _checkpoint(event: Stored, view: View) -> Rows:
    """A checkpoint stands on the events it replaced, and in the chain of its session's checkpoints."""
    replaces = event.meta.get("replaces")
    origins = [origin for origin in replaces if isinstance(origin, str)] if isinstance(replaces, list) else []
    for number in view.ids_of_origins(event, origins):
        yield _edge(event, EdgeType.EVIDENCE, NodeType.EVENT, event.id, NodeType.EVENT, number, "replaces")
    yield from _chain(event, view, view.checkpoint_before(event), event.id, view.checkpoint_after(event), "checkpoint")


def _chain(event: Stored, view: View, before: int | None, number: int, after: int | None, rule: str) -> Rows:
    """Put a node between its neighbours in time; the edge between them ends when it came late."""
    if before is not None and after is not None and not event.isolated:
        old = view.edge(EdgeType.PRECEDES, NodeType.EVENT, before, NodeType.EVENT, after)
        if old is not None and old.end_event is None:
            yield replace(old, end_event=event.id, end_at=event.at)
    for src, dst in ((before, number), (number, after)):
        if src is not None and dst is not None and src != dst:
            yield _edge(event, EdgeType.PRECEDES, NodeType.EVENT, src, NodeType.EVENT, dst, rule)


def _asset(event: Stored, view: View) -> Rows:
    """Asset events: a write leaves a version, a commit or pull request covers versions."""
    action = action_of(event)
    if action in {"commit", "pull_request"}:
        yield from _covers(event, view)
    elif action in {"register", "write"}:
        yield from _version(event, view)


def _covers(event: Stored, view: View) -> Rows:
    ref, named = _text(event.meta.get("ref")), event.meta.get("paths")
    for version, path in view.uncommitted(event.session, event.at):
        if not isinstance(named, list) or path in named:
            yield replace(version, ref=ref, ref_event=event.id)


def _version(event: Stored, view: View) -> Rows:
    path = event.body
    asset = view.asset(event.project, path)
    call = _source(event, view, "call")
    result = _source(event, view, "cause")
    tool = tools.name_of(call) if call else ""
    registered = asset is not None
    if asset is None:
        asset = Asset(id=event.id, project=event.project, path=path, kind=tools.asset_kind(path, tool))
        yield asset
    before = view.version_before(asset.id, event.at, event.id, event.session)
    after = view.version_after(asset.id, event.at, event.id, event.session)
    content = None
    if call is not None and result is not None:
        content = tools.content(_text(event.meta.get("path")) or path, call, result, before.content if before else None)
    yield Version(
        event=event.id,
        asset=asset.id,
        project=event.project,
        session=event.session,
        call=call.id if call else None,
        result=result.id if result else None,
        at=event.at,
        title=tools.title(path, asset.kind, content) if content is not None or before is None else before.title,
        content=content,
        hash=hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest() if content is not None else None,
    )
    yield from _once(
        view, _edge(event, EdgeType.PRODUCES, NodeType.SESSION, event.session, NodeType.ASSET, asset.id, "writes")
    )
    if call is not None:
        yield _edge(event, EdgeType.REFERENCES, NodeType.ASSET, asset.id, NodeType.EVENT, call.id, "written by")
        yield from _chain(event, view, before.call if before else None, call.id, after.call if after else None, "write")
    if content is not None:
        yield from _links(event, view, asset, content, newest=after is None)
    if not registered:
        for mention in view.mentions(event.project, path):
            yield from _link(event, view, mention, asset)


def _links(event: Stored, view: View, asset: Asset, content: str, *, newest: bool) -> Rows:
    """The paths a text names become links; those that the newest text no longer names end."""
    named = paths.named(content, asset.path, view.project_key(event.project))
    for path in named:
        yield from _mention(event, view, path, NodeType.ASSET, asset.id, "names")
    if not newest or event.isolated:
        return
    for old in view.live_links(asset.id):
        target = view.asset_by_id(old.dst)
        if target is not None and target.path not in named:
            yield replace(old, end_event=event.id, end_at=event.at)


def _mention(event: Stored, view: View, path: str, src_type: NodeType, src: int, rule: str) -> Rows:
    mention = Mention(
        project=event.project, path=path, src_type=src_type, src=src, rule=rule, event=event.id, at=event.at
    )
    old = view.mention(mention)
    if old is None or (view.hidden(old.event) and not event.isolated):
        yield mention
    asset = view.asset(event.project, path)
    if asset is not None:
        yield from _link(event, view, mention, asset)


def _link(event: Stored, view: View, mention: Mention, asset: Asset) -> Rows:
    """Turn a mention into the edge of its rule: for a decision what it names is evidence, all else refers to it."""
    if mention.src_type is NodeType.ASSET and mention.src == asset.id:
        return
    kind = EdgeType.EVIDENCE if mention.src_type is NodeType.DECISION else EdgeType.REFERENCES
    edge = _edge(event, kind, mention.src_type, mention.src, NodeType.ASSET, asset.id, mention.rule)
    # The edge is as visible as the text that names the path, and as old.
    yield from _once(view, replace(edge, begin_event=mention.event, begin_at=mention.at))


def _once(view: View, edge: Edge) -> Rows:
    """Keep the edge that stands, unless it has ended, or only its own session may see it and this one is shared."""
    old = view.edge(edge.type, edge.src_type, edge.src, edge.dst_type, edge.dst)
    if old is None or old.end_event is not None or (view.hidden(old.begin_event) and not view.hidden(edge.begin_event)):
        yield edge


def _record(event: Stored, view: View) -> Rows:
    """Records: an event that creates one gives it its number, the others move it along its machine."""
    action = action_of(event)
    if action in CREATES:
        yield from _create(event, view, action)
    if action not in {"record", "propose", "snapshot"}:
        yield from _move(event, view, action)


def _create(event: Stored, view: View, action: str) -> Rows:
    kind = NodeType(event.kind)
    given = event.meta.get("evidence")
    origins = [origin for origin in given if isinstance(origin, str)] if isinstance(given, list) else []
    evidence = view.ids_of_origins(event, origins) or [event.id]
    status = event.meta.get("status")
    initial = "proposed" if action == "propose" else states.INITIAL[kind][0]
    stated = kind is NodeType.TODO and isinstance(status, str) and status in {"pending", "done", "dropped"}
    yield Record(
        id=event.id,
        type=kind,
        project=event.project,
        session=event.session,
        status=str(status) if stated else initial,
        text=event.body,
        scope=_text(event.meta.get("scope")) or "project",
        key=_text(event.meta.get("key")),
        basis=_text(event.meta.get("basis")),
        evidence=tuple(evidence),
        at=event.at,
        changed_event=event.id,
        changed_at=event.at,
    )
    if kind is NodeType.DECISION:
        for number in evidence:
            yield _edge(event, EdgeType.EVIDENCE, NodeType.DECISION, event.id, NodeType.EVENT, number, "stated by")
        for path in paths.named(event.body, "", view.project_key(event.project)):
            yield from _mention(event, view, path, NodeType.DECISION, event.id, "names")
    basis = _basis(event, view) if kind is NodeType.TODO else None
    if basis is not None:
        yield _edge(event, EdgeType.NEXT_STEP, basis[0], basis[1], NodeType.TODO, event.id, "basis")


def _basis(event: Stored, view: View) -> tuple[NodeType, int] | None:
    """Return the goal, decision or asset a todo came from: `basis` is the origin of the event that created it."""
    origin = event.meta.get("basis")
    source = view.by_origin(event, origin) if isinstance(origin, str) else None
    if source is None:
        return None
    if source.kind is EventKind.ASSET:
        return NodeType.ASSET, source.id
    return (NodeType(source.kind), source.id) if source.kind in {EventKind.GOAL, EventKind.DECISION} else None


def _move(event: Stored, view: View, action: str) -> Rows:
    record = subject(event, view)
    if record is None or event.at < record.changed_at:
        return
    if action not in states.MACHINES[record.type].get(record.status, {}):
        return  # capture refused it, or it lost a race of two late arrivals: the ledger keeps it, the state stands
    superseded = action == "supersede"
    yield replace(
        record,
        status=states.move(record.type, record.status, action),
        superseded_by=event.id if superseded else record.superseded_by,
        changed_event=event.id,
        changed_at=event.at,
    )
    if superseded:
        yield _edge(
            event, EdgeType.PRECEDES, NodeType.DECISION, record.id, NodeType.DECISION, event.id, "superseded by"
        )


def _edge(event: Stored, kind: EdgeType, src_type: NodeType, src: int, dst_type: NodeType, dst: int, rule: str) -> Edge:
    return Edge(
        type=kind,
        src_type=src_type,
        src=src,
        dst_type=dst_type,
        dst=dst,
        rule=rule,
        begin_event=event.id,
        begin_at=event.at,
    )


def _source(event: Stored, view: View, name: str) -> Stored | None:
    origin = event.meta.get(name)
    return view.by_origin(event, origin) if isinstance(origin, str) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


Rule = Callable[[Stored, View], Rows]
_RULES: Final[dict[EventKind, tuple[Rule, ...]]] = {
    EventKind.TOOL_CALL: (_call,),
    EventKind.TOOL_RESULT: (_read,),
    EventKind.COMPACT_CHECKPOINT: (_checkpoint,),
    EventKind.ASSET: (_asset,),
    EventKind.EDGE: (_member,),
    EventKind.PUBLISH: (_publish,),
    **dict.fromkeys(RECORD_KINDS, (_record,)),
}

"""Pure rules from one event to the rows of the projections: `apply(event, view)`.

Used at capture and by a replay of the ledger, on the same events in the same order, so it may look at nothing but the
event and what the events before it have given. "Later" is by event time: an older event that arrives late never undoes
a newer state.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from graphsvc import states
from graphsvc.memory import paths, tools
from graphsvc.model import (
    ASSET_KINDS,
    EDGES,
    FEEDBACK_KINDS,
    RECORD_KINDS,
    SCOPED,
    SCOPES,
    TALK_KINDS,
    Asset,
    Covered,
    Edge,
    EdgeType,
    Event,
    EventKind,
    Hidden,
    Membership,
    Mention,
    NodeType,
    Published,
    Record,
    Row,
    Session,
    State,
    Stored,
    ToolCall,
    Version,
)
from graphsvc.store.view import View

VERSION: Final = "6"  # of these rules and their tables: another one means that the ledger is replayed
CREATES: Final = frozenset({"record", "propose", "supersede"})
WRITES: Final = frozenset({"register", "write"})
DECLARE: Final = "declare"  # what somebody says is an asset
Rows = Iterator[Row]


def apply(event: Stored, view: View) -> Rows:
    """Yield the rows that this event changes. Each must be written before the next one is asked for."""
    for row in _rows(event, view):
        yield replace(row, changed_event=event.id) if isinstance(row, Edge) else row


def _rows(event: Stored, view: View) -> Rows:
    if event.isolated:
        yield Hidden(event=event.id)
    yield from _session(event, view)
    for rule in _RULES.get(event.kind, ()):
        yield from rule(event, view)


def action_of(event: Stored | Event) -> str:
    """Return what a state event does; without a word it records."""
    action = event.meta.get("action")
    return action if isinstance(action, str) else "record"


def first_status(event: Stored) -> str:
    """Return the status of the record that an event creates."""
    stated = event.meta.get("status")
    if event.kind is EventKind.TODO and isinstance(stated, str) and stated in {"pending", "done", "dropped"}:
        return stated
    return "proposed" if action_of(event) == "propose" else states.INITIAL[event.kind][0]


def may_change(event: Stored, record: Record, view: View) -> bool:
    """Say whether an event may move a record: of its project, and as visible as the event is.

    What an isolated session does changes nothing that others see, and nobody moves what another session hides.
    """
    if record.project != event.project:
        return False
    hidden = view.hidden(record.id)
    return record.session == event.session if hidden else not event.isolated


def late(event: Stored | Event, record: Record) -> bool:
    """Say whether the record's present status is newer: by the hosts' times if both gave one, else by position."""
    return event.ts is not None and record.changed_ts is not None and event.ts < record.changed_ts


def _session(event: Stored, view: View) -> Rows:
    """Every event moves its session forward; the first one may join it to sessions that named it as their parent."""
    known = view.session(event.session)
    session = known or Session(session=event.session)
    moved = replace(
        session,
        started_at=min(filter(None, (session.started_at, event.ts)), default=None),
        last_at=max(filter(None, (session.last_at, event.ts)), default=None),
        last_event=event.id,
        isolated=event.meta.get("action") == "on" if event.kind is EventKind.ISOLATION else session.isolated,
    )
    session = moved if event.isolated else _told(event, session, moved)
    yield session
    if session.parent and (known is None or known.parent is None):
        parent = view.session_number(session.parent)
        if parent is not None and parent != event.session:
            yield from _descent(event, view, parent, event.session, session.relation)
    if known is None:
        for child in view.children(event.session_id):
            if child.session != event.session:
                yield from _descent(event, view, event.session, child.session, child.relation)
    yield from _turned(event, view, session)


def _told(event: Stored, before: Session, session: Session) -> Session:
    """What an event that all may see tells about its session."""
    meta = event.meta
    talks_on = event.kind in TALK_KINDS and not (event.ts and before.last_at and event.ts < before.last_at)
    return replace(
        session,
        host=session.host or _text(meta.get("host")),
        title=_text(meta.get("title")) or session.title or _prompt(event),
        cwd=session.cwd or _text(meta.get("cwd")),
        parent=session.parent or _text(meta.get("parent")),
        relation=session.relation or _text(meta.get("relation")),
        ended=event.kind is EventKind.SESSION_END or (session.ended and not talks_on),
    )


def _descent(event: Stored, view: View, before: int, after: int, relation: str | None) -> Rows:
    """What the host states about two sessions ends what shared records suggested."""
    for edge in view.inferred(before):
        if after in {edge.src, edge.dst}:
            yield replace(edge, end_event=event.id, end_at=event.at)
    yield _precedes(event, before, after, relation or "resume", "stated")


def _turned(event: Stored, view: View, session: Session) -> Rows:
    """Of two sessions that share records the one that went on longer is the copy; more of it may turn the edge.

    What is isolated changes nothing that others see.
    """
    if event.isolated:
        return
    for edge in view.inferred(event.session):
        other = view.session(edge.dst if edge.src == event.session else edge.src)
        if other is None or session.last_at is None or other.last_at is None or session.last_at == other.last_at:
            continue
        first, second = sorted((session, other), key=lambda one: one.last_at or "")
        if edge.src != first.session:
            yield replace(edge, end_event=event.id, end_at=event.at)
            yield _precedes(event, first.session, second.session, edge.rule, "inferred")


def _prompt(event: Stored) -> str | None:
    """A session without a title goes by its user's first words; a command is none."""
    if event.kind is not EventKind.USER_MESSAGE or event.actor is not None or event.body.lstrip().startswith("/"):
        return None
    return next((line.strip()[: tools.MAX_TITLE] for line in event.body.splitlines() if line.strip()), None)


def _precedes(event: Stored, before: int, after: int, rule: str, confidence: str) -> Edge:
    edge = _edge(event, EdgeType.PRECEDES, NodeType.SESSION, before, NodeType.SESSION, after, rule)
    return replace(edge, confidence=confidence)


def _member(event: Stored, view: View) -> Rows:
    """An event of another session that this one holds too: a resume or fork copied it."""
    of = event.meta.get("of")
    source = view.by_origin(event, of) if event.meta.get("action") == "member" and isinstance(of, str) else None
    if source is None or source.session == event.session:
        return  # its own: a merged ledger notes it of both sessions
    yield Membership(session=event.session, event=source.id)
    for number in view.rule_events(event, source.origin):
        yield Membership(session=event.session, event=number)
    known = (view.edge(EdgeType.PRECEDES, NodeType.SESSION, one, NodeType.SESSION, other) for one, other in (
        (source.session, event.session), (event.session, source.session)
    ))  # fmt: skip
    if not any(known):
        yield _precedes(event, source.session, event.session, "shared records", "inferred")


def _publish(event: Stored, view: View) -> Rows:
    """Publishing shows the named events of the session to all."""
    for number in view.ids_of_origins(event, _texts(event.meta.get("of"))):
        source = view.event(number)
        if source is not None and source.session == event.session:
            yield Published(event=number)


def _call(event: Stored, _: View) -> Rows:
    tool_use_id = event.meta.get("tool_use_id")
    if isinstance(tool_use_id, str):
        yield ToolCall(session=event.session, tool_use_id=tool_use_id, event=event.id)


def _result(event: Stored, view: View) -> Rows:
    """A call knows its result."""
    tool_use_id = event.meta.get("tool_use_id")
    call = view.tool_call(event.session, tool_use_id) if isinstance(tool_use_id, str) else None
    if call is not None and call.session == event.session:
        yield replace(call, result=event.id)


def _read(event: Stored, view: View) -> Rows:
    """A tool call that read a file references it, as soon as the file is an asset. A read that failed read nothing."""
    call = None if event.meta.get("is_error") is True else view.call_of(event)
    path = tools.read(call) if call else None
    if call is None or path is None:
        return
    project, cwd = view.project_key(event.project), _text(call.meta.get("cwd")) or _text(event.meta.get("cwd"))
    yield from _mention(event, view, paths.key(project, cwd, path), NodeType.EVENT, call.id, "reads")


def _checkpoint(event: Stored, view: View) -> Rows:
    """A checkpoint stands on the events it replaced, and in the chain of its session's checkpoints."""
    for number in view.ids_of_origins(event, _texts(event.meta.get("replaces"))):
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
    elif action in WRITES:
        yield from _version(event, view)
    elif action == DECLARE:
        yield from _declared(event, view)


def _covers(event: Stored, view: View) -> Rows:
    ref, named = _text(event.meta.get("ref")), event.meta.get("paths")
    for number, path in view.uncommitted(event, everyone=isinstance(named, list)):
        if ref and (not isinstance(named, list) or path in named):
            yield Covered(event=number, ref=ref, ref_event=event.id)


def _declared(event: Stored, view: View) -> Rows:
    """Saying that a file is an asset gives it a first version; a known one keeps its own, and has one more producer."""
    asset = view.asset(event.project, event.body)
    if asset is None or not (view.version_before(asset.id, event) or view.version_after(asset.id, event)):
        yield from _version(event, view)
        return
    yield from _once(
        view, _edge(event, EdgeType.PRODUCES, NodeType.SESSION, event.session, NodeType.ASSET, asset.id, "declares")
    )


def _version(event: Stored, view: View) -> Rows:
    path = event.body
    asset = view.asset(event.project, path)
    call = _source(event, view, "call")
    result = _source(event, view, "cause")
    tool = tools.name_of(call) if call else ""
    registered = asset is not None
    if asset is None:
        asset = Asset(id=event.id, project=event.project, path=path)
        yield asset
    kind = _kind(event, view, asset, tool)
    before, after = view.version_before(asset.id, event), view.version_after(asset.id, event)
    shared = view.shared_version(asset.id)
    title = _text(event.meta.get("title"))
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
        kind=kind,
        title=title or (tools.title(path, kind, content) if content is not None or before is None else before.title),
        content=content,
        hash=hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest() if content is not None else None,
    )
    rule = "declares" if action_of(event) == DECLARE else "writes"
    yield from _once(
        view, _edge(event, EdgeType.PRODUCES, NodeType.SESSION, event.session, NodeType.ASSET, asset.id, rule)
    )
    if call is not None:
        yield _edge(event, EdgeType.REFERENCES, NodeType.ASSET, asset.id, NodeType.EVENT, call.id, "written by")
        yield from _chain(event, view, before.call if before else None, call.id, after.call if after else None, "write")
    if content is not None and after is None:
        yield from _links(event, view, asset, content)
    if not registered or (not shared and not event.isolated):
        for mention in view.mentions(event.project, path):
            yield from _link(event, view, mention, asset)


def _kind(event: Stored, view: View, asset: Asset, tool: str) -> str:
    """Return the kind of an asset: as it was when the readers of this event first saw one, else as it is stated."""
    known, stated = view.kind(asset.id, event), event.meta.get("kind")
    return known or (str(stated) if stated in ASSET_KINDS else tools.asset_kind(asset.path, tool))


def _links(event: Stored, view: View, asset: Asset, content: str) -> Rows:
    """The paths the newest text names become links; those it no longer names end."""
    named = paths.named(content, asset.path, view.project_key(event.project))
    for path in named:
        yield from _mention(event, view, path, NodeType.ASSET, asset.id, "names")
    if event.isolated:
        return
    for mention in view.stale_mentions(asset.id, named):
        if posixpath.basename(mention.path) in content:
            continue  # named further down than paths are followed
        yield replace(mention, live=False)
        target = view.asset(event.project, mention.path)
        edge = target and view.edge(EdgeType.REFERENCES, NodeType.ASSET, asset.id, NodeType.ASSET, target.id)
        if edge and edge.end_event is None:
            yield replace(edge, end_event=event.id, end_at=event.at)


def _mention(event: Stored, view: View, path: str, src_type: NodeType, src: int, rule: str) -> Rows:
    mention = Mention(
        project=event.project, path=path, src_type=src_type, src=src, rule=rule, event=event.id, at=event.at
    )
    old = view.mention(mention)
    if old is None or (not event.isolated and (not old.live or view.hidden(old.event))):
        yield mention
    asset = view.asset(event.project, path)
    if asset is not None:
        yield from _link(event, view, mention, asset)


def _link(event: Stored, view: View, mention: Mention, asset: Asset) -> Rows:
    """Turn a mention into the edge of its rule: for a decision what it names is evidence, all else refers to it."""
    if not mention.live or (mention.src_type is NodeType.ASSET and mention.src == asset.id):
        return
    kind = EdgeType.EVIDENCE if mention.src_type is NodeType.DECISION else EdgeType.REFERENCES
    edge = _edge(event, kind, mention.src_type, mention.src, NodeType.ASSET, asset.id, mention.rule)
    # The edge is as old as the text that names the path, and as visible as the less visible of its two ends: a file
    # that only an isolated session wrote is known by the event that registered it.
    seen = view.hidden(mention.event) or view.shared_version(asset.id)
    yield from _once(view, replace(edge, begin_event=mention.event if seen else asset.id, begin_at=mention.at))


def _once(view: View, edge: Edge) -> Rows:
    """Keep the edge that stands, unless it has ended, or only its own session may see it and this one is shared."""
    old = view.edge(edge.type, edge.src_type, edge.src, edge.dst_type, edge.dst)
    stands = old is not None and old.end_event is None and not view.hidden(old.begin_event)
    if old is None or not (stands or view.hidden(edge.begin_event)):
        yield edge


def _record(event: Stored, view: View) -> Rows:
    """Records: an event that creates one gives it its number, the others move it along its machine."""
    action = action_of(event)
    if action in CREATES:
        yield from _create(event, view)
    if action not in {"record", "propose", "snapshot"}:
        yield from _move(event, view, action)


def _create(event: Stored, view: View) -> Rows:
    kind = NodeType(event.kind)
    evidence = view.ids_of_origins(event, _texts(event.meta.get("evidence"))) or [event.id]
    said = event.meta.get("kind")
    yield Record(
        id=event.id,
        type=kind,
        project=event.project,
        session=event.session,
        status=first_status(event),
        text=event.body,
        scope=_scope(event, view),
        key=_text(event.meta.get("key")),
        basis=_text(event.meta.get("basis")),
        kind=str(said) if kind is NodeType.FEEDBACK and said in FEEDBACK_KINDS else None,
        evidence=tuple(evidence),
        at=event.at,
        changed_event=event.id,
        changed_ts=event.ts,
    )
    yield State(record=event.id, event=event.id, at=event.at, status=first_status(event))
    if kind is NodeType.DECISION:
        for number in evidence:
            asset = _registered(view.event(number), view)
            end = (NodeType.ASSET, asset.id) if asset else (NodeType.EVENT, number)
            yield _edge(event, EdgeType.EVIDENCE, NodeType.DECISION, event.id, *end, "stated by")
        for path in paths.named(event.body, "", view.project_key(event.project)):
            yield from _mention(event, view, path, NodeType.DECISION, event.id, "names")
        candidate = _promoted(event, view)
        if candidate is not None:
            yield replace(candidate, promoted_to=event.id)
    basis = _basis(event, view) if kind is NodeType.TODO else None
    if basis is not None:
        yield _edge(event, EdgeType.NEXT_STEP, basis[0], basis[1], NodeType.TODO, event.id, "basis")


def _scope(event: Stored, view: View) -> str:
    """Say how far a record holds: as it is stated; what takes the place of another one holds as far as that."""
    if NodeType(event.kind) not in SCOPED:
        return "project"
    old = _source(event, view, "of") if action_of(event) == "supersede" else None
    record = view.record(old.id) if old is not None else None
    if record is not None and record.type is NodeType(event.kind):
        return record.scope if may_change(event, record, view) else "project"
    said = event.meta.get("scope")
    return said if isinstance(said, str) and said in SCOPES else "project"


def _promoted(event: Stored, view: View) -> Record | None:
    """Return the candidate whose promotion caused this decision."""
    cause = _source(event, view, "cause")
    source = _source(cause, view, "of") if cause is not None and cause.kind is EventKind.CANDIDATE else None
    record = view.record(source.id) if source is not None else None
    moved = record is not None and cause is not None and record.changed_event == cause.id
    return record if moved and record is not None and record.status == "promoted" else None


def _basis(event: Stored, view: View) -> tuple[NodeType, int] | None:
    """Return the goal, decision or asset a todo came from: `basis` is the origin of the event that created it."""
    source = _source(event, view, "basis")
    asset = _registered(source, view)
    if asset is not None:
        return NodeType.ASSET, asset.id
    record = view.record(source.id) if source else None
    return (record.type, record.id) if record and record.type in {NodeType.GOAL, NodeType.DECISION} else None


def _registered(event: Stored | None, view: View) -> Asset | None:
    """Return the asset that an asset event wrote."""
    if event is None or event.kind is not EventKind.ASSET or action_of(event) not in {*WRITES, DECLARE}:
        return None
    return view.asset(event.project, event.body)


def _move(event: Stored, view: View, action: str) -> Rows:
    source = _source(event, view, "of")
    record = view.record(source.id) if source else None
    if record is None or late(event, record) or not may_change(event, record, view):
        return
    if action not in states.MACHINES[record.type].get(record.status, {}):
        return  # the loser of two late arrivals: the ledger keeps it, the state stands
    superseded, status = action == "supersede", states.move(record.type, record.status, action)
    yield State(record=record.id, event=event.id, at=event.at, status=status)
    yield replace(
        record,
        status=status,
        superseded_by=event.id if superseded else record.superseded_by,
        changed_event=event.id,
        changed_ts=event.ts or record.changed_ts,
    )
    if superseded:
        yield _edge(
            event, EdgeType.PRECEDES, NodeType.DECISION, record.id, NodeType.DECISION, event.id, "superseded by"
        )


def _stated(event: Stored, view: View) -> Rows:
    """An edge that somebody draws or ends."""
    action, named = action_of(event), event.meta.get("type")
    source, target = _end(event, view, "source"), _end(event, view, "target")
    kind = next((one for one in EdgeType if one == named), None)
    if kind is None or source is None or target is None or source == target:
        return
    if (source[0], target[0]) not in EDGES[kind]:
        return
    old = view.edge(kind, *source, *target)
    if action == "add" and (old is None or old.end_at is None or event.at >= old.end_at):
        yield from _once(view, _edge(event, kind, *source, *target, "stated"))
    if action == "retract" and old is not None and may_end(event, old, view):
        yield replace(old, end_event=event.id, end_at=event.at)


def may_end(event: Stored, edge: Edge, view: View) -> bool:
    """Say whether an event may end an edge: one that stands, is no newer, and is no more and no less isolated."""
    if edge.end_event is not None or event.at < edge.begin_at:
        return False
    begin = view.event(edge.begin_event)
    hidden = view.hidden(edge.begin_event)
    return begin is not None and (begin.session == event.session if hidden else not event.isolated)


def _end(event: Stored, view: View, name: str) -> tuple[NodeType, int] | None:
    """Return the node that one end of a stated edge names: by the host's id of a session, else by origin."""
    end = event.meta.get(name)
    kind, of = (end.get("type"), end.get("of")) if isinstance(end, dict) else (None, None)
    if not isinstance(of, str) or kind not in list(NodeType):
        return None
    if kind == NodeType.SESSION:
        session = view.session_of(event, of)
        return (NodeType.SESSION, session) if session is not None else None
    source = view.by_origin(event, of)
    if source is None or kind == NodeType.EVENT:
        return (NodeType.EVENT, source.id) if source is not None else None
    if kind == NodeType.ASSET:
        asset = _registered(source, view)
        return (NodeType.ASSET, asset.id) if asset is not None else None
    record = view.record(source.id)
    return (record.type, record.id) if record is not None and record.type == kind else None


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


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


Rule = Callable[[Stored, View], Rows]
_RULES: Final[dict[EventKind, tuple[Rule, ...]]] = {
    EventKind.TOOL_CALL: (_call,),
    EventKind.TOOL_RESULT: (_result, _read),
    EventKind.COMPACT_CHECKPOINT: (_checkpoint,),
    EventKind.ASSET: (_asset,),
    EventKind.EDGE: (_member, _stated),
    EventKind.PUBLISH: (_publish,),
    **dict.fromkeys(RECORD_KINDS, (_record,)),
}

"""What happened: events as steps of the nodes they happened to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import strawberry

from graphsvc import errors
from graphsvc.api import nodes
from graphsvc.api.context import Sight
from graphsvc.api.nodes import Event, Node
from graphsvc.api.pages import Connection, connection
from graphsvc.api.values import DateTime
from graphsvc.envelope import Long
from graphsvc.model import EventKind, NodeType, Record, Stored
from graphsvc.recall import targets
from graphsvc.store import assets, events, lists, records, sessions
from graphsvc.store.lists import Filter

_TEXT: Final = 200  # characters of what an entry of the timeline says
# What shows in a timeline, and the type of the node it happens to.
_HAPPENS: Final = {
    EventKind.SESSION_START: NodeType.SESSION,
    EventKind.SESSION_END: NodeType.SESSION,
    EventKind.COMPACT_CHECKPOINT: NodeType.SESSION,
    EventKind.ISOLATION: NodeType.SESSION,
    EventKind.ASSET: NodeType.ASSET,
    EventKind.DECISION: NodeType.DECISION,
    EventKind.GOAL: NodeType.GOAL,
    EventKind.TODO: NodeType.TODO,
    EventKind.CANDIDATE: NodeType.CANDIDATE,
    EventKind.FEEDBACK: NodeType.FEEDBACK,
}
_VERBS: Final = {
    EventKind.SESSION_START: "started",
    EventKind.SESSION_END: "ended",
    EventKind.COMPACT_CHECKPOINT: "compacted",
}


@strawberry.type(description="Something that happened to a node.")
class TimelineEntry:
    at: DateTime = strawberry.field(description="When.")
    position: Long = strawberry.field(description="Ledger position of the event that says so.")
    verb: str = strawberry.field(
        description="What happened: started, ended, compacted, or the action, such as record, supersede, write, commit."
    )
    text: str = strawberry.field(description="What the event says, at most 200 characters of it.")
    reason: str | None = strawberry.field(description="Why, when somebody said so.")
    node: Node | None = strawberry.field(description="What it happened to; null when the asker may not see that.")
    event: Event = strawberry.field(description="The event that says so.")


def page(
    seen: Sight, chosen: Filter, first: int, root: str | None, types: Sequence[NodeType] | None
) -> Connection[TimelineEntry]:
    """Return a page of what happened: to a target and in a session if there is a root, to nodes of these types."""
    kinds = {kind for kind, about in _HAPPENS.items() if types is None or about in types}
    notes = seen.notes
    if root is not None:
        # A target says where it is, whichever project lists are about.
        chosen = replace(chosen, viewer=replace(chosen.viewer, project=None))
        target = _target(seen, root)
        if target is None or target.node is None:
            chosen, notes = replace(chosen, among=frozenset()), (f"nothing is known as {root[:200]!r}",)
        elif isinstance(target.node, Record) and not seen.viewer.reaches(target.node.project):
            chosen, notes = replace(chosen, among=frozenset()), ("what happened to it is told in its own project",)
        elif isinstance(target.node, sessions.SessionRow):
            chosen = replace(chosen, session=target.node.number)
        else:
            chosen = replace(chosen, among=frozenset(_history(seen, target.node)))
    chosen = replace(chosen, types=tuple(kinds) or ("",))
    rows = lists.page(seen.db, lists.EVENTS, chosen, first + 1)
    count = lambda: lists.count(seen.db, lists.EVENTS, chosen)  # noqa: E731 # as short as its only use
    return connection(seen, rows, first, _entries, count, notes)


def _target(seen: Sight, name: str) -> targets.Found | None:
    """Find what a target of any kind names; several documents are none."""
    try:
        found = targets.resolve(seen.db, seen.viewer, name, "cd")
    except errors.NotFoundError:
        return None
    return found if isinstance(found, targets.Found) else None


def _history(seen: Sight, node: assets.AssetRow | Record | Stored) -> list[int]:
    """List the events that something happened to a node in."""
    if isinstance(node, assets.AssetRow):
        versions = assets.versions(seen.db, seen.viewer, node.key)
        return [number for one in versions for number in (one.event, one.ref_event) if number is not None]
    return records.moved(seen.db, node) if isinstance(node, Record) else [node.id]


def _entries(seen: Sight, rows: Sequence[events.EventRow]) -> list[TimelineEntry]:
    """Return what happened, with the nodes it happened to."""
    told = events.texts(seen.db, [row.id for row in rows])
    of = {row.id: told[row.id][1].get("of") for row in rows}
    moved = records.subjects(seen.db, [(row.project, str(of[row.id])) for row in rows if isinstance(of[row.id], str)])
    paths = assets.keys(seen.db, [(row.project, told[row.id][0]) for row in rows if row.kind is EventKind.ASSET])

    def key(row: events.EventRow) -> tuple[NodeType, int]:
        about = _HAPPENS[row.kind]
        if about is NodeType.SESSION:
            return about, row.session
        if told[row.id][1].get("action") in ("commit", "pull_request"):
            return NodeType.SESSION, row.session  # it happened to several files
        if about is NodeType.ASSET:
            return about, paths.get((row.project, told[row.id][0]), 0)
        return about, moved.get((row.project, str(of[row.id])), row.id) if _moves(told[row.id][1]) else row.id

    keys = {row.id: key(row) for row in rows}
    known = nodes.nodes(seen, keys.values())
    return [
        TimelineEntry(
            at=event.at,
            position=event.position,
            verb=_verb(row, told[row.id][1]),
            text=_said(told[row.id][0], known.get(keys[row.id])),
            reason=_reason(told[row.id][1]),
            node=known.get(keys[row.id]),
            event=event,
        )
        for row, event in zip(rows, nodes.event_nodes(seen, rows), strict=True)
    ]


def _said(body: str, node: Node | None) -> str:
    """Return what an event says; one that only moves a record says what the record does."""
    return (body or (node.text if isinstance(node, nodes.Recorded) else ""))[:_TEXT]


def _reason(meta: Mapping[str, object]) -> str | None:
    reason = meta.get("reason")
    return reason[:_TEXT] if isinstance(reason, str) else None


def _moves(meta: Mapping[str, object]) -> bool:
    action = meta.get("action")
    return isinstance(action, str) and action not in {"record", "propose", "supersede", "snapshot"}


def _verb(row: events.EventRow, meta: Mapping[str, object]) -> str:
    action = meta.get("action")
    return _VERBS.get(row.kind) or (action if isinstance(action, str) else "record")

"""What a target names: an id, a bare number, a session, or a document path; and what to try when it names nothing."""

from __future__ import annotations

import difflib
import posixpath
import re
from dataclasses import dataclass
from typing import Final

from graphsvc.errors import NotFoundError
from graphsvc.memory import named
from graphsvc.model import NodeId, NodeType, Record, Stored
from graphsvc.recall.request import call
from graphsvc.store import assets, events, records, sessions
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Viewer, visible

HIDDEN: Final = "[已隔离: 内容仅其所属会话可见]"
_TYPED: Final = re.compile(r"(event|asset|goal|decision|feedback|candidate|todo)-([0-9]{1,18})")


Node = SessionRow | AssetRow | Record | Stored


@dataclass(frozen=True, slots=True)
class Found:
    """What a target names; without a node it exists and is isolated from the viewer. `also`: another reading of it."""

    id: NodeId
    node: Node | None
    also: str | None = None


def resolve(db: Connection, viewer: Viewer, target: str, verb: str) -> Found | list[AssetRow]:
    """Return what the target names; several documents as a list; raise NotFoundError with a call that works."""
    # As written first: a host's id may begin or end with a space, and an id that was printed must open what it names.
    for name in dict.fromkeys((target, target.strip())):
        found = _named(db, viewer, name)
        if found:
            return found
    name = target.strip()
    typed = _TYPED.fullmatch(name)
    if typed:
        raise NotFoundError(target, _nearest(db, viewer, verb, NodeType(typed[1]), int(typed[2])))
    raise NotFoundError(target, _spelling(db, viewer, verb, name))


def within(db: Connection, viewer: Viewer, target: str) -> Found | list[AssetRow]:
    """Return what a target names to ask about its surroundings; a record of another project has none for the viewer."""
    found = resolve(db, viewer, target, "cd")
    if isinstance(found, Found) and found.node is not None and not viewer.reaches(found.node.project):
        raise NotFoundError(target, call({"nav": "cd", "target": str(found.id)}))
    return found


def numbered(name: str) -> tuple[NodeType, int] | None:
    """Return what the id of an event or a record says, which is the store's key of it; None for any other name."""
    match = _TYPED.fullmatch(name)
    return (NodeType(match[1]), int(match[2])) if match and match[1] != NodeType.ASSET else None


def typed(db: Connection, viewer: Viewer, name: str) -> Found | None:
    """Return what a node id names, as answers print it; None when nothing is there for the viewer."""
    match = _TYPED.fullmatch(name)
    if match:
        return _typed(db, viewer, NodeType(match[1]), int(match[2]))
    return _session(db, viewer, name.removeprefix(sessions.PREFIX)) if name.startswith(sessions.PREFIX) else None


def session(db: Connection, viewer: Viewer, session_id: str) -> Found:
    """Return the session that a `session_id` names; raise NotFoundError with a call that works."""
    found = sessions.find(db, viewer, session_id)
    if found is not None:
        return Found(NodeId(NodeType.SESSION, found.session_id), found)
    near = sessions.nearest(db, viewer, session_id)
    raise NotFoundError(session_id, call({"nav": "ls", **({"target": f"{sessions.PREFIX}{near}"} if near else {})}))


def _named(db: Connection, viewer: Viewer, name: str) -> Found | list[AssetRow] | None:
    """Read a name as what is printed first, and as what people may write after that."""
    typed = _TYPED.fullmatch(name)
    found = _typed(db, viewer, NodeType(typed[1]), int(typed[2])) if typed else None
    if found is None and name.startswith(sessions.PREFIX):
        found = _session(db, viewer, name.removeprefix(sessions.PREFIX))
    if found is None and re.fullmatch(r"[0-9]{1,18}", name):
        found = _number(db, viewer, int(name))
    found = found or _session(db, viewer, name)
    if found is not None:
        return found
    matches = assets.at_path(db, viewer, posixpath.normpath(name.replace("\\", "/")))
    return Found(NodeId(NodeType.ASSET, str(matches[0].id)), matches[0]) if len(matches) == 1 else matches


def _session(db: Connection, viewer: Viewer, host_id: str) -> Found | None:
    found = sessions.by_host_id(db, viewer, host_id)
    return Found(NodeId(NodeType.SESSION, found.session_id), found) if found is not None else None


def _number(db: Connection, viewer: Viewer, number: int) -> Found | None:
    """A bare number is an asset first, then an event; when both exist the other one is named."""
    asset = _typed(db, viewer, NodeType.ASSET, number)
    event = _typed(db, viewer, NodeType.EVENT, number)
    if asset is None or asset.node is None:
        return event
    return Found(asset.id, asset.node, also=str(event.id) if event else None)


def _typed(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> Found | None:
    node_id = NodeId(kind, str(number))
    asset = assets.get(db, viewer, number) if kind is NodeType.ASSET else None
    if asset is not None:
        return Found(node_id, asset)
    event = events.get(db, number)
    if event is None:
        return None
    if not viewer.reaches(event.project):
        return _beyond(db, viewer, kind, number)
    if not visible(db, viewer, number):
        # The marker under whatever type was asked for: which one it is, is a part of what is isolated.
        return Found(node_id, None)
    if kind is NodeType.EVENT:
        return Found(node_id, event)
    record = records.get(db, number)
    return Found(node_id, record) if record is not None and record.type is kind else None


def _beyond(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> Found | None:
    """Return a record of another project that holds in every one; of that project nothing else is there."""
    record = records.get(db, number) if viewer.project else None
    if record is None or record.scope != "global" or kind not in {record.type, NodeType.EVENT}:
        return None
    return Found(NodeId(record.type, str(number)), record) if visible(db, viewer, number) else None


def _nearest(db: Connection, viewer: Viewer, verb: str, kind: NodeType, number: int) -> str:
    """Suggest the nearest id of the same type in scope, else the list to start from."""
    near = named.nearest(db, viewer, kind, number)
    return call({"nav": verb, "target": near}) if near is not None else call({"nav": "ls"})


def _spelling(db: Connection, viewer: Viewer, verb: str, name: str) -> str:
    """Suggest the session or the path in scope that is spelled most like the target."""
    session = sessions.nearest(db, viewer, name)
    known = assets.paths(db, viewer)
    base = posixpath.basename(name).lower()
    same = [path for path in known if posixpath.basename(path).lower() == base]
    close = same or difflib.get_close_matches(name[:300], known, n=1, cutoff=0.6)
    if close:
        return call({"nav": verb, "target": close[0]})
    return call({"nav": verb, "target": f"session-{session}"}) if session else call({"nav": "ls"})

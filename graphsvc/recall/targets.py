"""What a target names: an id, a bare number, a session, or a document path; and what to try when it names nothing."""

from __future__ import annotations

import difflib
import posixpath
import re
from dataclasses import dataclass
from typing import Final

from graphsvc.errors import NotFoundError
from graphsvc.model import NodeId, NodeType, Record, Stored
from graphsvc.recall.request import call
from graphsvc.store import assets, events, records, sessions
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Viewer, visible

HIDDEN: Final = "[已隔离: 内容仅其所属会话可见]"
_TYPED: Final = re.compile(r"(event|asset|goal|decision|feedback|candidate|todo)-(\d{1,18})")


Node = SessionRow | AssetRow | Record | Stored


@dataclass(frozen=True, slots=True)
class Found:
    """What a target names; without a node it exists and is isolated from the viewer. `also`: another reading of it."""

    id: NodeId
    node: Node | None
    hidden: bool = False
    also: str | None = None


def resolve(db: Connection, viewer: Viewer, target: str, verb: str) -> Found | list[AssetRow]:
    """Return what the target names; several documents as a list; raise NotFoundError with a call that works."""
    name = target.strip()
    session = sessions.find(db, name)
    typed = _TYPED.fullmatch(name)
    if typed and session is None:
        found = _typed(db, viewer, NodeType(typed[1]), int(typed[2]))
        if found is not None:
            return found
        raise NotFoundError(target, _nearest(db, viewer, verb, NodeType(typed[1]), int(typed[2])))
    if re.fullmatch(r"\d{1,18}", name):
        found = _number(db, viewer, int(name))
        if found is not None:
            return found
    if session is not None and viewer.reaches(session.project):
        return Found(NodeId(NodeType.SESSION, session.session_id), session)
    matches = assets.at_path(db, viewer, posixpath.normpath(name.replace("\\", "/")))
    if len(matches) == 1:
        return Found(NodeId(NodeType.ASSET, str(matches[0].id)), matches[0])
    if matches:
        return matches
    raise NotFoundError(target, _spelling(db, viewer, verb, name))


def _number(db: Connection, viewer: Viewer, number: int) -> Found | None:
    """A bare number is an asset first, then an event; when both exist the other one is named."""
    asset = _typed(db, viewer, NodeType.ASSET, number)
    event = _typed(db, viewer, NodeType.EVENT, number)
    if asset is not None and event is not None:
        return Found(asset.id, asset.node, asset.hidden, also=str(event.id))
    return asset or event


def _typed(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> Found | None:
    node_id = NodeId(kind, str(number))
    if kind is NodeType.ASSET:
        asset = assets.get(db, viewer, number)
        if asset is not None:
            return Found(node_id, asset)
        project = assets.exists(db, number)
        return Found(node_id, None, hidden=True) if project is not None and viewer.reaches(project) else None
    if kind is NodeType.EVENT:
        event = events.get(db, number)
        if event is None or not viewer.reaches(event.project):
            return None
        return Found(node_id, event) if visible(db, viewer, number) else Found(node_id, None, hidden=True)
    record = records.get(db, number)
    if record is None or record.type is not kind or not viewer.reaches(record.project):
        return None
    return Found(node_id, record) if visible(db, viewer, number) else Found(node_id, None, hidden=True)


def _nearest(db: Connection, viewer: Viewer, verb: str, kind: NodeType, number: int) -> str:
    """Suggest the nearest id of the same type in scope, else the list to start from."""
    record = records.get(db, number)
    if (
        record is not None
        and record.type is not kind
        and viewer.reaches(record.project)
        and visible(db, viewer, number)
    ):
        return call({"nav": verb, "target": f"{record.type}-{number}"})
    near: int | None
    if kind is NodeType.EVENT:
        near = events.nearest(db, viewer, number)
    elif kind is NodeType.ASSET:
        near = assets.nearest(db, viewer, number)
    else:
        near = records.nearest(db, viewer, kind, number)
    return call({"nav": verb, "target": f"{kind}-{near}"}) if near is not None else call({"nav": "ls"})


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

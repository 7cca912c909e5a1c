"""What somebody names in order to change it or to point at it, as far as the asker may see it.

An id as answers give it (`decision-41`), its bare number, a session's id, or the path of a document.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from typing import Final

from graphsvc.errors import InvalidInput, Isolated, NotFoundError
from graphsvc.model import MAX_NAME, MAX_PATH, NodeType, Record
from graphsvc.store import assets, events, records, sessions
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Viewer, visible

_TYPED: Final = re.compile(r"(?:(event|asset|goal|decision|feedback|candidate|todo)-)?([0-9]{1,18})")
_SHOWN: Final = 10  # documents that a path may mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A node: the store's key of it, the id people know it by, and `origin`, its name in the ledger."""

    type: NodeType
    key: int
    id: str
    project: int
    origin: str  # of the event that made it; the host's id of a session


def node(db: Connection, viewer: Viewer, field: str, name: str) -> Named:
    """Return the node that a name leads to; raise NotFoundError, Isolated or InvalidInput for `field` otherwise."""
    name = name.strip()
    check_text(field, name, MAX_PATH)
    typed = _TYPED.fullmatch(name)
    if typed is not None and typed[1] is not None:
        return _typed(db, viewer, NodeType(typed[1]), int(typed[2]))
    if name.startswith(sessions.PREFIX):
        return session(db, viewer, name)
    if typed is not None:
        row = assets.get(db, viewer, int(typed[2]))
        return asset(db, row) if row else _typed(db, viewer, NodeType.EVENT, int(typed[2]))
    found = assets.at_path(db, viewer, posixpath.normpath(name.replace("\\", "/")))
    if len(found) == 1:
        return asset(db, found[0])
    if found:
        listed = ", ".join(f"asset-{one.id}" for one in found[:_SHOWN])
        raise InvalidInput(field, f"{name[:200]!r} may mean several documents", f"one of {listed}")
    return session(db, viewer, name)


def session(db: Connection, viewer: Viewer, name: str) -> Named:
    """Return the session that an id names."""
    row = session_row(db, viewer, name)
    return Named(
        type=NodeType.SESSION,
        key=row.number,
        id=f"{sessions.PREFIX}{row.session_id}",
        project=row.project,
        origin=row.session_id,
    )


def session_row(db: Connection, viewer: Viewer, name: str) -> SessionRow:
    """Return the state of the session that an id names."""
    row = sessions.find(db, viewer, name)
    if row is None:
        near = sessions.nearest(db, viewer, name)
        raise NotFoundError(name[:200], call("ls", f"{sessions.PREFIX}{near}" if near else None))
    return row


def record(db: Connection, viewer: Viewer, kind: NodeType, name: str) -> tuple[Named, Record]:
    """Return the record of that type by its id, the id of the event that recorded it, or the bare number."""
    name = name.strip()
    check_text("id", name, MAX_NAME)
    typed = _TYPED.fullmatch(name)
    if typed is None or typed[1] not in {kind, NodeType.EVENT, None}:
        raise InvalidInput("id", f"{name[:200]!r} names no {kind}", f"the id of a {kind}, such as {kind}-41")
    found = _typed(db, viewer, kind, int(typed[2]))
    [row] = records.many(db, viewer, [found.key])
    return found, row


def check_text(field: str, text: str, limit: int) -> None:
    """Refuse what is no text that can be kept and shown."""
    if not text:
        raise InvalidInput(field, "is empty", "a text")
    if len(text) > limit:
        raise InvalidInput(field, f"has {len(text)} characters", f"at most {limit}")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput(field, "holds a NUL or a lone surrogate", "valid Unicode text")


def _typed(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> Named:
    row = assets.get(db, viewer, number) if kind is NodeType.ASSET else None
    if row is not None:
        return asset(db, row)
    name = f"{kind}-{number}"
    event = events.get(db, number)
    if event is None or not viewer.reaches(event.project):
        raise _unknown(db, viewer, name, kind, number)
    if not visible(db, viewer, number):
        # Whatever type was asked for: which one it is, is a part of what is isolated.
        raise Isolated(name, "is isolated", "the session it belongs to, as viewer")
    made = records.get(db, number) if kind is not NodeType.EVENT else None
    if kind is not NodeType.EVENT and (made is None or made.type is not kind):
        raise _unknown(db, viewer, name, kind, number)
    return Named(type=kind, key=number, id=name, project=event.project, origin=event.origin)


def asset(db: Connection, row: AssetRow) -> Named:
    """Name an asset by the event of its first version that the asker may see."""
    event = events.get(db, row.id)
    origin = event.origin if event is not None else ""
    return Named(type=NodeType.ASSET, key=row.key, id=f"asset-{row.id}", project=row.project, origin=origin)


def nearest(db: Connection, viewer: Viewer, kind: NodeType, number: int) -> str | None:
    """Return what the number is instead, or the nearest id of that type in scope."""
    row = records.get(db, number)
    if row is not None and row.type is not kind and viewer.reaches(row.project) and visible(db, viewer, number):
        return f"{row.type}-{number}"
    near: int | None
    if kind is NodeType.EVENT:
        near = events.nearest(db, viewer, number)
    elif kind is NodeType.ASSET:
        near = assets.nearest(db, viewer, number)
    else:
        near = records.nearest(db, viewer, kind, number)
    return f"{kind}-{near}" if near is not None else None


def _unknown(db: Connection, viewer: Viewer, name: str, kind: NodeType, number: int) -> NotFoundError:
    near = nearest(db, viewer, kind, number)
    return NotFoundError(name, call("cd", near) if near is not None else call("ls", None))


def call(verb: str, target: str | None) -> str:
    """Write a call of the tool that runs as written."""
    return json.dumps({"nav": verb, **({"target": target} if target else {})}, ensure_ascii=False)

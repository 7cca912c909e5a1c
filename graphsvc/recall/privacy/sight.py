"""Why somebody sees a node, or does not: told as far as whoever asks sees it, and else what the marker tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.model import NodeId, NodeType
from graphsvc.recall import scope, targets
from graphsvc.recall.scope import Asker
from graphsvc.store import sessions, visibility
from graphsvc.store.database import Connection
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Reason, Rule, Viewer

SEES: Final = frozenset({Rule.SHARED, Rule.GLOBAL, Rule.PUBLISHED, Rule.OWN, Rule.MEMBER})
# In English and Chinese; `{by}` is the event that decided it, where that may be told.
TEXTS: Final[dict[Rule, tuple[str, str]]] = {
    Rule.SHARED: ("all who reach its project see it", "其项目的所有人可见"),
    Rule.GLOBAL: ("it holds in every project", "对所有项目有效"),
    Rule.PUBLISHED: ("it was isolated and is published{by}", "曾被隔离，已公开{by}"),
    Rule.OWN: ("it is isolated{by}, and belongs to this session", "已隔离{by}，属于此会话"),
    Rule.MEMBER: ("it is isolated{by}, and this session contains a copy of it", "已隔离{by}，此会话含有其副本"),
    Rule.ISOLATED: (
        "it is isolated{by}: the sessions that contain it see it, and nobody else",
        "已隔离{by}: 仅其所属会话可见",
    ),
    Rule.OTHER_PROJECT: ("it belongs to another project", "属于其他项目"),
    Rule.UNKNOWN: ("nothing is known under this name", "没有这个名称的内容"),
}
_BY: Final = (" by event-{}", "（event-{}）")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Whether a viewer sees a node, and by which rule. `by` is the event that decided it; `texts` English and Chinese.

    `suggestion` is a call that works, where nothing is known under the name.
    """

    node: str
    session_id: str | None  # of the viewer; None for one that is no session
    rule: Rule
    by: int | None = None
    suggestion: str | None = None

    @property
    def visible(self) -> bool:
        return self.rule in SEES

    @property
    def texts(self) -> tuple[str, str]:
        english, chinese = (
            text.format(by=by.format(self.by) if self.by is not None else "")
            for text, by in zip(TEXTS[self.rule], _BY, strict=True)
        )
        return english, chinese


def explain(db: Connection, asker: Asker, name: str, about: str | None = None) -> Explained:
    """Explain who asks, or the local owner the session `about`, why it sees what a target names or does not.

    What neither of the two sees is answered as the marker does, whatever the reason is.
    """
    own, _ = scope.resolve(db, asker, None)
    viewer, session_id = _subject(db, asker, own, about)
    isolated, missing = False, ""
    for eye in (viewer, own):
        try:
            found = targets.resolve(db, eye, name, "cd")
        except NotFoundError as error:
            missing = error.suggestion
            continue
        if isinstance(found, list):
            listed = ", ".join(f"asset-{one.id}" for one in found[:10])
            raise InvalidInput("node", f"{name[:200]!r} may mean several documents", f"one of {listed}")
        if found.node is None:
            isolated = True
            continue
        told = _reason(db, viewer, found.node)
        by = told.by if told.by is not None and visibility.visible(db, eye, told.by) else None
        return Explained(node=str(found.id), session_id=session_id, rule=told.rule, by=by)
    if isolated:
        return Explained(node=name, session_id=session_id, rule=Rule.ISOLATED)
    return Explained(node=name, session_id=session_id, rule=Rule.UNKNOWN, suggestion=missing)


def _subject(db: Connection, asker: Asker, own: Viewer, about: str | None) -> tuple[Viewer, str | None]:
    """Return the viewer that is asked about, and its session's id."""
    known = sessions.by_number(db, own.session) if own.session is not None else None
    if about is None:
        return own, known.session_id if known is not None else None
    row = sessions.find(db, own if not asker.owner else Viewer(), about)
    if not asker.owner and (row is None or row.number != own.session):
        raise InvalidInput("viewer", "only the local owner asks about others", "nothing, or the own session")
    if row is None:
        near = sessions.nearest(db, own, about)
        allowed = str(NodeId(NodeType.SESSION, near)) if near else "a session that is known"
        raise InvalidInput("viewer", f"{about[:200]!r} is no session that is known", allowed)
    return Viewer(session=row.number, project=row.project), row.session_id


def _reason(db: Connection, viewer: Viewer, node: targets.Node) -> Reason:
    if isinstance(node, SessionRow):
        return Reason(Rule.SHARED if viewer.reaches(node.project) else Rule.OTHER_PROJECT)
    # An asset goes by its first version that whoever asks may see.
    return visibility.reason(db, viewer, node.id)

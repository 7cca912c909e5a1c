"""Who asks, and over what: from what the transport says to a viewer of the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from graphsvc.errors import Forbidden, InvalidInput, NotFoundError
from graphsvc.memory import paths
from graphsvc.model import TokenKind
from graphsvc.recall.request import call
from graphsvc.store import events, sessions
from graphsvc.store.access.tokens import OWN, Token
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """What the transport says: the owner or not, as which session, of which project, from which folder.

    Who is not the owner is bound to that session and that project. `token` is what was shown for it.
    """

    owner: bool = True
    session_id: str | None = None
    project: str | None = None
    cwd: str | None = None
    token: Token = OWN

    @property
    def who(self) -> tuple[int, str | None]:
        """Tell askers apart that share what the service can do at once."""
        return self.token.id, self.session_id


class UnknownViewer(NotFoundError):
    """The session that the transport names as viewer does not exist. The suggestion runs without it."""


def narrowed(token: Token, asked: Asker) -> Asker:
    """Return who asks with a token; raise Forbidden for a session or a project that it is not for.

    What the transport says beside a token takes away from what that allows, and never adds to it.
    """
    if token.kind is TokenKind.OWNER:
        return replace(asked, owner=True, token=token)
    name, session_id = asked.session_id, token.session_id
    if name is not None and token.kind is TokenKind.READ and session_id is None:
        raise Forbidden("this token is no session's and cannot ask as one", "no viewer: it sees what is shared")
    if name is not None and session_id is not None and session_id not in {name, name.removeprefix(sessions.PREFIX)}:
        raise Forbidden(f"this token cannot ask as {name[:80]!r}", f"{session_id[:80]!r}, or no viewer")
    if token.project is not None and asked.project not in {None, token.project}:
        _elsewhere(token.project)
    # A folder would choose a project, and a look at it would tell what lies there.
    return Asker(
        owner=False, session_id=session_id or name, project=token.project or asked.project, cwd=None, token=token
    )


def resolve(db: Connection, asker: Asker, project: str | None) -> tuple[Viewer, list[str]]:
    """Return the viewer and what to tell about the scope.

    A session sees its own project. The owner without one sees what is shared, of all projects by typed id, and lists
    the project of the current folder when the store knows it. `project` is the tool's argument: only who is not bound
    to one may choose; others are told by Forbidden.
    """
    if not asker.owner:
        return _bound(db, asker, project), []
    chosen = project or asker.project
    if asker.session_id is not None:
        session = sessions.find(db, Viewer(), asker.session_id)
        if session is None:
            near = sessions.nearest(db, Viewer(), asker.session_id)
            target = {"target": f"{sessions.PREFIX}{near}"} if near else {}
            raise UnknownViewer(f"viewer {asker.session_id}", call({"nav": "ls", **target}))
        if chosen not in {None, session.project_key}:
            raise InvalidInput("project", "the viewer's session belongs to another one", session.project_key)
        return Viewer(session=session.number, project=session.project), []
    if chosen == "all":
        return Viewer(everywhere=True), []
    if chosen is not None:
        return Viewer(project=_project(db, chosen), everywhere=True), []
    here = events.find_project(db, paths.project_of(asker.cwd)) if asker.cwd else None
    if here is not None:
        return Viewer(project=here, everywhere=True), []
    several = len(events.project_keys(db)) > 1
    return Viewer(everywhere=True), ["all projects: this folder is none of them"] if several else []


def _bound(db: Connection, asker: Asker, project: str | None) -> Viewer:
    """Return the viewer that a token is for. What others have is not told, not even in what is refused."""
    own = asker.project if asker.project != "all" else None
    if asker.session_id is not None:
        session = sessions.find(db, Viewer(), asker.session_id)
        if session is None or own not in {None, session.project_key}:
            raise UnknownViewer(f"viewer {asker.session_id}", call({"nav": "ls"}))
        if project not in {None, "", session.project_key}:
            _elsewhere(session.project_key)
        return Viewer(session=session.number, project=session.project)
    if own is None:
        if asker.token == OWN:
            raise InvalidInput("project", "nobody asks", "the owner's token, or a session as viewer")
        chosen = project if project != "all" else None
        return Viewer(project=_project(db, chosen) if chosen else None, everywhere=True)
    if project not in {None, "", own}:
        _elsewhere(own)
    found = events.find_project(db, own)
    if found is None:
        raise InvalidInput("project", f"nothing is stored of {own[:200]!r} yet", "the same when something is")
    return Viewer(project=found)


def _elsewhere(project: str) -> NoReturn:
    raise Forbidden("this token is bound to one project", f"{project[:200]!r}, or no project")


def _project(db: Connection, key: str) -> int:
    found = events.find_project(db, key)
    if found is None and key:
        found = events.find_project(db, paths.project_of(key))
    if found is None:
        known = events.project_keys(db)
        shown = ", ".join(["all", *known[:10]]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
        raise InvalidInput("project", f"{key[:200]!r} is unknown", shown)
    return found

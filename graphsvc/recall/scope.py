"""Who asks, and over what: from what the transport says to a viewer of the store."""

from __future__ import annotations

from dataclasses import dataclass

from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.memory import paths
from graphsvc.recall.request import call
from graphsvc.store import events, sessions
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """What the transport says: the owner or not, as which session, of which project, from which folder."""

    owner: bool = True
    session_id: str | None = None
    project: str | None = None
    cwd: str | None = None


class UnknownViewer(NotFoundError):
    """The session that the transport names as viewer does not exist. The suggestion runs without it."""


def resolve(db: Connection, asker: Asker, project: str | None) -> tuple[Viewer, list[str]]:
    """Return the viewer and what to tell about the scope.

    A session sees its own project. The owner without one sees what is shared, of all projects by typed id, and lists
    the project of the current folder when the store knows it. `project` is the tool's argument: only the owner may
    choose.
    """
    chosen = project or asker.project
    if asker.session_id is not None:
        session = sessions.find(db, Viewer(), asker.session_id)
        if session is None:
            near = sessions.nearest(db, Viewer(), asker.session_id) if asker.owner else None
            target = {"target": f"{sessions.PREFIX}{near}"} if near else {}
            raise UnknownViewer(f"viewer {asker.session_id}", call({"nav": "ls", **target}))
        if chosen not in {None, session.project_key}:
            raise InvalidInput("project", "the viewer's session belongs to another one", session.project_key)
        return Viewer(session=session.number, project=session.project), []
    if not asker.owner:
        if chosen is None:
            raise InvalidInput("project", "nobody asks", "the owner's token, or a session as viewer")
        if asker.project is not None and chosen != asker.project:
            raise InvalidInput("project", "only the local owner may choose", asker.project)
        return Viewer(project=_project(db, chosen)), []
    if chosen == "all":
        return Viewer(everywhere=True), []
    if chosen is not None:
        return Viewer(project=_project(db, chosen), everywhere=True), []
    here = events.find_project(db, paths.project_of(asker.cwd)) if asker.cwd else None
    if here is not None:
        return Viewer(project=here, everywhere=True), []
    several = len(events.project_keys(db)) > 1
    return Viewer(everywhere=True), ["all projects: this folder is none of them"] if several else []


def _project(db: Connection, key: str) -> int:
    found = events.find_project(db, key)
    if found is None and key:
        found = events.find_project(db, paths.project_of(key))
    if found is None:
        known = events.project_keys(db)
        shown = ", ".join(["all", *known[:10]]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
        raise InvalidInput("project", f"{key[:200]!r} is unknown", shown)
    return found

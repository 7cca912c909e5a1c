"""What holds for an event: the owner's settings, and the more private ones of its project's files.

An agent can write a file in the project it works in, and a repository that was cloned may bring one. So a file only
makes things more private than the owner has them; what would make them less private counts when the owner says it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graphsvc.errors import InvalidInput
from graphsvc.memory import paths
from graphsvc.memory.redact import redact
from graphsvc.memory.settings import file, values
from graphsvc.memory.settings.file import ProjectFile
from graphsvc.store import imports
from graphsvc.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """A setting as it holds. `by`: who says so, the path of a file among them; `ignored`: (path, value) of files."""

    value: str
    by: str
    ignored: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What holds in a folder of a project. `problem`: a file there cannot be read, so nobody knows what it says."""

    settings: Mapping[str, Holds]
    folder: str | None = None  # without links
    problem: str | None = None

    @property
    def shares_tools(self) -> bool:
        return self.settings[values.TOOLS].value == "share"

    @property
    def begins_isolated(self) -> bool:
        return self.settings[values.DEFAULT].value == "isolated"


@dataclass(slots=True)
class Policies:
    """The policies of one batch: each folder is looked at once. `at`: the time now, UTC."""

    db: Connection
    at: str
    _known: dict[tuple[str, str | None], Policy] = field(default_factory=dict)

    def of(self, project: str, cwd: str | None) -> Policy:
        """Return what holds for what is said in a folder of a project, and note when its files began to pause it."""
        policy = self._known.get((project, cwd))
        if policy is None:
            policy = self._known[project, cwd] = self._read(project, cwd)
        return policy

    def _read(self, project: str, cwd: str | None) -> Policy:
        found: list[ProjectFile] = []
        problem = None
        for folder in paths.folders(cwd, project):
            try:
                said = file.read(folder)
            except InvalidInput as error:
                problem = str(error)
                continue
            found += [said] if said is not None else []
        self._pause(project, found)
        owner = imports.owners(self.db, project)
        settings = {name: _holds(name, owner, found) for name in values.VALUES}
        here = os.path.realpath(cwd) if cwd and cwd.startswith("/") else cwd
        return Policy(settings=settings, folder=here, problem=problem)

    def _pause(self, project: str, found: list[ProjectFile]) -> None:
        """Begin and end the pauses that files of a project state: what was said meanwhile stays out later, too."""
        said = {redact(one.folder): one for one in found if one.values.get(values.PAUSED) == "true"}
        for place, one in said.items():
            imports.pause(self.db, project, min(one.written, self.at), place)
        for pause in imports.pauses(self.db):
            folder = pause.folder if pause.project == project else None
            if folder is not None and folder not in said and not _pauses(folder):
                imports.resume(self.db, project, self.at, folder)


def _pauses(folder: str) -> bool:
    """Say whether the file of a folder pauses what is below; one that cannot be read goes on doing so."""
    try:
        said = file.read(Path(folder))
    except InvalidInput:
        return True
    return said is not None and said.values.get(values.PAUSED) == "true"


def _holds(name: str, owner: Mapping[str, tuple[str, str]], found: list[ProjectFile]) -> Holds:
    value, by = owner.get(name, (values.BUILT_IN[name], "built in"))
    ignored: list[tuple[str, str]] = []
    for one in found:
        said = one.values.get(name)
        if said is None or said == value:
            continue
        if values.most_private(name, (said, value)) == said:
            value, by = said, one.path
        else:
            ignored.append((one.path, said))
    return Holds(value=value, by=by, ignored=tuple(ignored))

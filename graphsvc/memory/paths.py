"""Paths as assets are keyed by them: project-relative where possible, and the paths that a text names."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

NO_PROJECT: Final = "(no project)"
MAX_MENTIONS: Final = 200  # distinct paths followed in one text

_LINK: Final = re.compile(r"\]\(\s{0,4}<?([^()<>\s]{1,300})>?")
_RUN: Final = re.compile(r"[\w./\\~-]{3,}")
_ENDING: Final = re.compile(r"[\w~-]\.[A-Za-z][A-Za-z0-9]{0,9}(?![A-Za-z0-9_])")
MAX_RUN: Final = 300
_DRIVE: Final = re.compile(r"[A-Za-z]:/")


def key(project: str, cwd: str | None, path: str) -> str:
    """Return the path an asset is known by: relative below the project's folder, absolute elsewhere."""
    project, cwd, clean = (part.replace("\\", "/") for part in (project, cwd or "", path))
    if not clean.startswith("/") and not _DRIVE.match(clean):
        clean = posixpath.join(cwd or (project if project != NO_PROJECT else ""), clean)
    return relative(project, posixpath.normpath(clean))


def relative(project: str, path: str) -> str:
    """Cut the project's folder off a normalised path that lies below it."""
    root = project.replace("\\", "/").rstrip("/") + "/"
    return path[len(root) :] if path.startswith(root) and path != root else path


def named(text: str, document: str, project: str) -> list[str]:
    """List the paths a text may mean, as keys: links and names with an ending, from its folder and from the project's.

    Which of them exist is for the caller to look up; a path that is nowhere registered means nothing.
    """
    found: dict[str, None] = {}
    for token in _tokens(text):
        if "://" in token or token.startswith("#"):
            continue
        clean = token.split("#", 1)[0].replace("\\", "/")
        for base in (posixpath.dirname(document), ""):
            path = relative(project, posixpath.normpath(posixpath.join(base, clean)))
            if not path.startswith("../") and path != document:
                found[path] = None
        if len(found) >= 2 * MAX_MENTIONS:
            break
    return list(found)


def _tokens(text: str) -> list[str]:
    tokens: dict[str, None] = {}
    for match in _LINK.finditer(text):
        tokens[unquote(match[1])] = None
    for match in _RUN.finditer(text):
        if "." not in match[0]:
            continue
        start = 0
        for ending in _ENDING.finditer(match[0]) if len(match[0]) <= MAX_RUN else ():
            name, start = match[0][start : ending.end()], ending.end()
            tokens[name] = None
            # A name glued to Chinese text (更新docs/design.md) is tried without it as well.
            tail = re.search(r"[!-~]+$", name)
            if tail:
                tokens[tail[0]] = None
        if len(tokens) >= MAX_MENTIONS:
            break
    return list(tokens)


def folders(cwd: str | None, project: str) -> list[Path]:
    """List the folders whose files say something of a place: from cwd up to its working tree, and its project's own.

    Nothing above the working tree; outside of one the folder alone.
    """
    found: dict[Path, None] = {}
    try:
        here = Path(cwd) if cwd else None
        if here is not None and here.is_absolute() and here.is_dir():
            resolved = here.resolve()
            way = [resolved, *resolved.parents]
            root = next((place for place in way if (place / ".git").exists()), resolved)
            found.update(dict.fromkeys(way[: way.index(root) + 1]))
        root = Path(project)
        found.update({root: None} if root.is_absolute() and root.is_dir() else {})
    except (OSError, ValueError):
        pass
    return list(found)


def project_of(cwd: str) -> str:
    """Return the key of the project a folder belongs to: its git main working tree, else the folder itself.

    Git is not started: `.git` is read. A folder that does not exist on this machine is kept as text.
    """
    folder = Path(cwd)
    try:
        if not folder.is_absolute() or not folder.is_dir():
            return cwd.rstrip("/") or cwd
        resolved = folder.resolve()
        for place in (resolved, *resolved.parents):
            root = _working_tree(place)
            if root is not None:
                return str(root)
    except (OSError, ValueError):
        return cwd.rstrip("/") or cwd
    return str(resolved)


def _working_tree(place: Path) -> Path | None:
    git = place / ".git"
    if git.is_dir():
        return place
    if not git.is_file():
        return None
    # A worktree's `.git` names <main>/.git/worktrees/<name>; a submodule's, <main>/.git/modules/<name>, is its own.
    pointer = git.read_text("utf-8", "replace").strip().removeprefix("gitdir:").strip()
    target = (place / pointer).resolve()
    if target.parent.name == "worktrees" and target.parent.parent.name == ".git":
        return target.parent.parent.parent
    return place

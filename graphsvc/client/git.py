"""What git knows of a line, read from its objects: no program that the configuration of a repository names is run.

Hooks, `core.fsmonitor`, filters, textconv and external diffs are programs that whoever wrote a repository chose. So the
working tree is read here, not by git; git compares commits, and fetches nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from graphsvc import clock
from graphsvc.errors import GraphsvcError
from graphsvc.lineage import lines

MAX_FILE: Final = 16 * 1024 * 1024  # bytes of a file
TIMEOUT_S: Final = 60
_SAFE: Final = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"),
    *("-c", "protocol.allow=never", "--no-pager", "--literal-pathspecs"),
)
_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


class GitError(GraphsvcError):
    """Git has no answer; the message is a sentence for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """The commit that a line is from. `oldest`: of a shallow clone the first one that is there, so it may be older."""

    hash: str
    subject: str
    author: str
    at: str  # UTC, when it was committed
    path: str  # from the root of the repository, as it was then
    line: int
    oldest: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """A working tree. `shallow`: its history has been cut off."""

    root: Path
    shallow: bool


def tree(folder: Path) -> Tree:
    """Return the working tree that a folder is in; raise GitError outside of one."""
    told = _git(folder, "rev-parse", "--is-shallow-repository", "--show-toplevel")
    shallow, _, root = told.removesuffix(b"\n").partition(b"\n")
    return Tree(Path(os.fsdecode(root)), shallow == b"true")


def blame(tree: Tree, path: str, text: str, line: int) -> Blamed | None:
    """Return the commit that a line of a file is from, None when it is not committed yet.

    `text` is the file as it stands in the working tree. Raise GitError when git cannot tell, and say why.
    """
    name, there = path, show(tree.root, "HEAD", path)
    if there is None:
        name = _committed_as(tree.root, path)
        there = show(tree.root, "HEAD", name)
    if there is None:
        raise GitError(f"{name} is too large or binary in the last commit")
    place = lines.surely(lines.keys(there), lines.keys(text))[line - 1]
    if place is None:
        return None
    if place == lines.UNSURE:
        raise GitError("the same stands beside it, so it cannot be told which of the two is committed")
    number = str(place + 1)
    told = _git(
        tree.root,
        "blame",
        "--porcelain",
        "-w",
        "-M",
        "-C",
        "--no-textconv",
        "-L",
        f"{number},{number}",
        "HEAD",
        "--",
        name,
    )
    first, *rest = told.split(b"\n")
    about = dict(row.partition(b" ")[::2] for row in rest if not row.startswith(b"\t"))
    commit, number_then = first.split(b" ")[:2]
    return Blamed(
        hash=commit.decode(),
        subject=about[b"summary"].decode("utf-8", "replace"),
        author=about[b"author"].decode("utf-8", "replace"),
        at=clock.utc_text(datetime.fromtimestamp(int(about[b"committer-time"]), UTC)),
        path=os.fsdecode(_unquoted(about[b"filename"])),
        line=int(number_then),
        oldest=tree.shallow and b"boundary" in about,
    )


def show(root: Path, commit: str, path: str) -> str | None:
    """Return a file as it was committed; None when it is not there, too large or binary."""
    name = f"{commit}:{path}"
    try:
        if int(_git(root, "cat-file", "-s", name)) > MAX_FILE:
            return None
        return text_of(_git(root, "cat-file", "blob", name))
    except GitError:
        return None


def text_of(content: bytes) -> str | None:
    """Read a file as text; None when it is binary, as git tells it."""
    return None if b"\0" in content[:8000] else content.decode("utf-8", "replace")


def _committed_as(root: Path, path: str) -> str:
    """Return what a file is called in the last commit; raise GitError when it is not in it."""
    try:
        _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitError:
        raise GitError("nothing is committed in this repository yet") from None
    try:
        _git(root, "cat-file", "-e", f"HEAD:{path}")
    except GitError:
        pass
    else:
        return path
    told = _git(root, "diff-index", "--cached", "-M", "--diff-filter=R", "--name-status", "-z", "HEAD").split(b"\0")
    renamed = dict(zip(told[2::3], told[1::3], strict=False))
    before = renamed.get(os.fsencode(path))
    if before is not None:
        return os.fsdecode(before)
    if _git(root, "ls-files", "--cached", "-z", "--", path):
        raise GitError(f"{path} is not committed yet")
    raise GitError(f"{path} is not tracked by git")


def _git(folder: Path, *arguments: str) -> bytes:
    """Run git; raise GitError with what it said."""
    kept = {name: value for name, value in os.environ.items() if name == "GIT_EXEC_PATH" or not _directs(name)}
    command: Sequence[str] = ("git", *_SAFE, "-C", str(folder), *arguments)
    try:
        process = subprocess.run(  # noqa: S603 # no shell; what follows -- or a commit is a name
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**kept, **_ENVIRONMENT},
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise GitError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git did not answer in {TIMEOUT_S} seconds") from None
    if process.returncode:
        said = process.stderr.decode("utf-8", "replace").strip().partition("\n")[0].removeprefix("fatal: ")
        if "not a git repository" in said:
            raise GitError("the file is in no git repository")
        raise GitError(f"git says: {said or f'exit {process.returncode}'}")
    return process.stdout


def _directs(name: str) -> bool:
    """Say whether a variable would lead git elsewhere, or have it run something: a hook is started with several."""
    return name.startswith("GIT_") and not name.startswith("GIT_CONFIG")


def _unquoted(name: bytes) -> bytes:
    """Read a path as git writes it when it has characters to escape."""
    if not name.startswith(b'"'):
        return name

    def plain(match: re.Match[bytes]) -> bytes:
        told = match[1]
        return bytes([int(told, 8)]) if len(told) == 3 else _ESCAPED.get(told, told)

    return _ESCAPE.sub(plain, name[1:-1])

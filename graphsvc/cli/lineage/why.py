"""Why something is as it is: from a line of a file to the edit, the words that asked for it, and what was decided."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from graphsvc import config
from graphsvc.cli.ask import as_options
from graphsvc.cli.lineage import walks
from graphsvc.cli.options import Command, as_json, asking, line
from graphsvc.errors import InvalidInput, NotFoundError

if TYPE_CHECKING:
    from graphsvc.client.git import Blamed

_LINE: Final = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)
_ID: Final = re.compile(r"(?:session|event|asset|goal|decision|feedback|candidate|todo)-")
_TEXT: Final = 480_000  # bytes of a text that is sent, as JSON: two of them stay below the limit of a request
_SHORT: Final = 10  # digits of a hash that are printed
_UNKNOWN: Final = "no captured edit is known to have written this line"


@click.command(cls=Command, short_help="Why a decision, a file or a line of code is as it is.")
@click.argument("target", metavar="ID|FILE:LINE")
@click.option("--author", is_flag=True, help="Of a line: print who made the commit, too.")
@click.option("--depth", type=int, metavar="N", help="Of an ID: most edges upstream from it (6).")
@click.option("--as-of", metavar="MOMENT", help="Of an ID: as things stood behind an event, or at a time or date.")
@click.option("--max-nodes", type=int, metavar="N", help="Of an ID: most nodes of an answer (200, at most 2000).")
@click.option("--resume", metavar="TOKEN", help="Of an ID: go on where the answer before stopped.")
@asking
@as_json
def why(
    target: str, author: bool, viewer: str | None, project: str | None, as_json: bool, **walked: str | int | None
) -> None:
    """Tell why something is as it is: what ID came from, upstream; or where a line of a file comes from, which is its
    commit, the edit, the prompt, decisions, and the session.

    \b
    graphsvc why decision-41
    graphsvc why src/login.py:12
    graphsvc why docs/迁移报告.md:3 --json

    Exit 0: found; 1: nothing is there, or no edit is known to have written the line; 2: there is no such line.
    """
    found = _LINE.fullmatch(target)
    if found is None or (_ID.match(target) and not Path(found[1]).exists()):
        walks.walk("why", {"root": target, "viewer": viewer, "project": project, "as_json": as_json, **walked})
        return
    got = _line(Path(found[1]), int(found[2]), author, viewer, project)
    if as_json:
        line(got)
    else:
        from graphsvc import render

        render.steps(f"{found[1]}:{found[2]}  {got['line']}", list(_steps(got)))
        render.remarks({"notes": got.get("notes", [])}, as_options(viewer, project))
    if "version" not in got:
        sys.exit(NotFoundError.exit_code)


def _line(file: Path, number: int, author: bool, viewer: str | None, project: str | None) -> dict[str, Any]:
    """Ask git for the commit of a line, and the memory for the edit."""
    from graphsvc.client import git

    file = _resolved(file)
    text = _read(file)
    count = text.count("\n") + (not text.endswith("\n")) if text else 0
    if not 1 <= number <= count:
        raise InvalidInput(
            "line", f"the file has {count} lines, none is {number}", f"1 to {count}" if count else "none"
        )
    notes, blamed, there = [], None, None
    root, path = file.parent, str(file)
    try:
        tree = git.tree(file.parent)
        root, path = tree.root, file.relative_to(tree.root).as_posix()
        blamed = git.blame(tree, path, text, number)
        if blamed is None:
            notes.append("the line is not committed yet")
        else:
            there = git.show(root, blamed.hash, blamed.path)
            if blamed.oldest:
                notes.append("the clone is shallow: the line may be older than the commit")
    except git.GitError as error:
        notes.append(f"{error}; the line was looked for by its text")
    asked: dict[str, object] = {"path": path, "line": number, "text": _sent(text, number)}
    if blamed is not None:
        asked["commit"] = {
            "hash": blamed.hash,
            "committed_at": blamed.at,
            "path": blamed.path,
            "line": blamed.line,
            **({"text": _sent(there, blamed.line)} if there is not None else {}),
        }
    got = _asked(file.parent, viewer, project, asked)
    got = _copied(got, root, blamed, path, _keys(text), number - 1)
    about = {"commit": _commit(blamed, author)} if blamed is not None else {}
    told = [*notes, *got.pop("notes", [])]
    return {"line": got.pop("line"), **about, **got, **({"notes": told} if told else {})}


def _asked(folder: Path, viewer: str | None, project: str | None, variables: Mapping[str, object]) -> dict[str, Any]:
    """Send the question as the local owner, from the folder that the file is in."""
    from graphsvc import resources
    from graphsvc.client import executor, tool
    from graphsvc.recall.scope import Asker

    asker = Asker(session_id=viewer, project=project, cwd=str(folder))
    execute = executor.connect(config.from_environment(), asker)
    given = {**variables, **({"project": project} if project else {})}
    got = tool.prune(tool.outcome(execute(resources.text("queries/explore/line_origin.graphql"), given)))
    if "problem" in got:
        raise InvalidInput(*(str(got[name]) for name in ("field", "problem", "allowed")))
    return got


def _copied(
    got: dict[str, Any], root: Path, blamed: Blamed | None, path: str, own: Sequence[str], place: int
) -> dict[str, Any]:
    """Leave out an edit of another file that still has the line, with one of its neighbours: it was not moved away."""
    if "version" not in got:
        return got
    other = got["asset"]["path"] if got["confidence"] == "moved" else blamed.path if blamed is not None else path
    if other == path:
        return got
    try:
        there = _keys(_read(root / other))
    except (InvalidInput, NotFoundError):
        return got
    pairs = {(step, there[at], there[at + step]) for at in range(1, len(there) - 1) for step in (-1, 1)}
    beside = [(step, own[place + 1], own[place + 1 + step]) for step in (-1, 1)]
    if pairs.isdisjoint(beside):
        return got
    note = f"the same lines stand in {other} still, where {got.get('call', got['version'])['id']} wrote them"
    return {"line": got["line"], "notes": [*got.get("notes", []), note]}


def _keys(text: str) -> list[str]:
    """Return the lines of a text without their white space, with what no line can be before and after them."""
    return ["\n", *("".join(row.split()) for row in text.removesuffix("\n").split("\n")), "\r"]


def _resolved(file: Path) -> Path:
    """Return the file without links on the way to it."""
    try:
        return file.resolve(strict=True)
    except (OSError, RuntimeError):
        raise NotFoundError(str(file), '{"nav": "ls"}') from None


def _read(file: Path) -> str:
    """Read a text file of the working tree."""
    from graphsvc.client import git

    try:
        about = file.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InvalidInput("target", f"{file} is no regular file", "a text file")
        if about.st_size > git.MAX_FILE:
            raise InvalidInput("target", f"{file} is too large", f"up to {git.MAX_FILE} bytes")
        text = git.text_of(file.read_bytes())
    except OSError as error:
        raise InvalidInput("target", f"{file}: {os.strerror(error.errno or 0)}", "a file that can be read") from None
    if text is None:
        raise InvalidInput("target", f"{file} is binary", "a text file")
    return text


def _sent(text: str, number: int) -> dict[str, object]:
    """Return a text as it is sent: the whole of it, or as many of the lines around one as may be sent."""
    if len(json.dumps(text)) <= _TEXT:
        return {"text": text}
    rows = text.split("\n")
    sizes = [len(json.dumps(row)) for row in rows]
    begin, end, size = number - 1, number, sizes[number - 1]
    if size > _TEXT:
        raise InvalidInput("line", f"it has {len(rows[number - 1])} characters", f"up to {_TEXT} bytes")
    while True:
        above = sizes[begin - 1] if begin else _TEXT
        below = sizes[end] if end < len(rows) else _TEXT
        if min(above, below) + size > _TEXT:
            break
        begin, end = (begin - 1, end) if above <= below else (begin, end + 1)
        size += min(above, below)
    whole = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"text": "\n".join(rows[begin:end]) + "\n", "first_line": begin + 1, "sha256": whole}


def _commit(blamed: Blamed, author: bool) -> dict[str, object]:
    found = {"hash": blamed.hash, "subject": blamed.subject, "at": blamed.at, "path": blamed.path, "line": blamed.line}
    return {**found, "author": blamed.author} if author else found


def _steps(got: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Write the way from a line to its session as (step, id, text); `cat` opens the ids."""
    from graphsvc import render

    if commit := got.get("commit"):
        who = f"  {commit['author']}" if "author" in commit else ""
        yield "commit", commit["hash"][:_SHORT], f"{commit['subject']}  {render.when(commit['at'])}{who}"
    if "version" not in got:
        yield "unknown", "", _UNKNOWN
        return
    when = render.when(got["version"]["at"])
    edit = got.get("call", got["version"])
    yield "edit", edit["id"], f"{got['asset']['path']}  {when}  found by {got['confidence']}"
    for name in ("task", "prompt"):
        if name in got:
            yield name, got[name]["id"], got[name]["body"]["text"]
    for name in ("decision", "candidate"):
        for one in got[f"{name}s"]:
            record = one[name]
            after = f" by {record['superseded_by']['id']}" if "superseded_by" in record else ""
            beside = "  (earlier in the session)" if one["basis"] == "session" else ""
            yield f"{name} {record['status']}{after}", record["id"], record["text"] + beside
    session = got["session"]
    yield "session", session["id"], "  ".join(filter(None, (session.get("title"), session.get("host"))))

"""`cat`: whole contents, in pages cut at code points. The labels of all pages joined are the content.

A live file is opened only when it is a registered asset below its project's folder: the path is walked from the root by
descriptors without following a link, and only a regular file is read, so that no swap of a folder for a link between a
check and the open can lead outside.
"""

from __future__ import annotations

import json
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from graphsvc.envelope import NavContext, NavItem, NavKind, NavResult
from graphsvc.model import EventKind, Record, Stored
from graphsvc.recall import fit, nav
from graphsvc.recall.fit import row
from graphsvc.recall.request import Request, call
from graphsvc.recall.targets import HIDDEN, Found, resolve
from graphsvc.store import assets, events
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Viewer

MAX_FILE: Final = 64 * 1024 * 1024  # bytes of a live file that are read
BINARY: Final = "[binary file, {size} bytes: {path}]"
UNREADABLE: Final = "[文件不可读: {path}]"
_AT_ONCE: Final = 20  # events of a session that are read together: some are large
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class Unreadable(Exception):
    """The live file cannot be shown; the message says why."""


def cat(db: Connection, viewer: Viewer, request: Request) -> NavResult:
    """Return the content of a session, an asset, an event or a record, from the request's cursor on."""
    found = resolve(db, viewer, str(request.target), "cat")
    if isinstance(found, list):
        return nav.several(found, request)
    match found.node:
        case None:
            return nav.hidden(found, NavKind.CONTENT, request)
        case SessionRow() as session:
            return _session(db, viewer, found, session, request)
        case AssetRow() as asset:
            return _asset(db, viewer, found, asset, request)
        case Record() as record:
            return _page(viewer, found, record.text, request)
        case Stored() as event:
            version = assets.version_of(db, event.id)
            text = version.content if version is not None and version.content is not None else event.body
            return _page(viewer, found, text, request)


def _page(
    viewer: Viewer,
    found: Found,
    text: str,
    request: Request,
    suggestion: str | None = None,
    notes: list[str] | None = None,
) -> NavResult:
    own = fit.mark(request)
    (start,) = fit.places(request, own, 1) or (0,)
    result = NavResult(
        kind=NavKind.CONTENT, title=nav.title(viewer, found), items=[], context=nav.context(found), notes=notes,
        suggestion=suggestion or nav.also(found, "cat"),
    )  # fmt: skip
    page, taken = fit.content(result, _row(found), text, start, request)
    end = start + taken
    return replace(page, cursor=fit.write(own, end) if end < len(text) else None)


def _row(found: Found) -> NavItem:
    """The row that carries the content: the node itself, typed as navigation shows it."""
    shown = found.id.type if found.id.type in {"session", "asset", "decision", "todo"} else "event"
    number = f"event-{found.id.key}" if shown == "event" else str(found.id)
    return row(number, shown, "", str(found.id) if number != str(found.id) else None)


def _asset(db: Connection, viewer: Viewer, found: Found, asset: AssetRow, request: Request) -> NavResult:
    """Show the live file; when it cannot be read, say so and name the newest whole version that was captured."""
    path = asset.path if asset.path.startswith("/") else posixpath.join(asset.project_key, asset.path)
    versions = assets.versions(db, viewer, asset.key)
    try:
        text, note = live(asset.project_key, asset.path)
        if assets.newest(db, asset.key) not in {version.event for version in versions}:
            # What lies in the folder now was written in isolation: show what lay there as far as others know.
            text, note = _captured(db, versions[-1].event), None
    except Unreadable as problem:
        whole = [version for version in versions if version.hash]
        suggestion = call({"nav": "cat", "target": f"event-{whole[-1].event}"}) if whole else None
        marker = UNREADABLE.format(path=path.encode("unicode_escape").decode() if not path.isprintable() else path)
        return _page(viewer, found, marker, request, suggestion, [str(problem)])
    return _page(viewer, found, text, request, None, [note] if note else None)


def _captured(db: Connection, event: int) -> str:
    version = assets.version_of(db, event)
    if version is None or version.content is None:
        raise Unreadable("only a part of its newest text is known")
    return version.content


def live(root: str, path: str) -> tuple[str, str | None]:
    """Read a registered file below its project's folder; return its text and a note, or raise Unreadable."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if path.startswith("/") or ".." in parts or not parts or not root.startswith("/"):
        raise Unreadable("outside its project's folder")
    try:
        folder = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except (OSError, ValueError):
        raise Unreadable("the project's folder is not on this machine") from None
    try:
        for part in parts[:-1]:
            below = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        # Non-blocking: a pipe put in the file's place must not hold the answer.
        file = os.open(parts[-1], _FLAGS | os.O_NONBLOCK, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise Unreadable(error.strerror if isinstance(error, OSError) and error.strerror else "not readable") from None
    finally:
        os.close(folder)
    try:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode):
            raise Unreadable("not a regular file")
        with os.fdopen(file, "rb", closefd=False) as stream:
            data = stream.read(MAX_FILE + 1)
    except OSError as error:
        raise Unreadable(error.strerror or "not readable") from None
    finally:
        os.close(file)
    note = f"cut at {MAX_FILE} of {state.st_size} bytes" if len(data) > MAX_FILE else None
    data = data[:MAX_FILE]
    if b"\0" in data[:8192]:
        return BINARY.format(size=state.st_size, path=path), note
    text = data.decode("utf-8", "replace")
    return text, note or ("bytes that are no UTF-8 are shown as \ufffd" if "\ufffd" in text else None)


def _session(db: Connection, viewer: Viewer, found: Found, session: SessionRow, request: Request) -> NavResult:
    """Show a session as one text: every event in order, headed by its id.

    The cursor is (event, offset, whether the marker of isolated parts was shown before that event).
    """
    numbers = events.of_session(db, session.number)
    own = fit.mark(request)
    first, offset, marked = fit.places(request, own, 3) or (numbers[0] if numbers else 0, 0, 0)
    at = numbers.index(first) if first in numbers else len(numbers)
    result = NavResult(
        kind=NavKind.CONTENT,
        title=nav.title(viewer, found),
        items=[],
        context=NavContext(session_id=session.session_id),
    )
    item = _row(found)
    text, places = "", []
    for number, event in _read(db, viewer, numbers[at:]):
        places.append((number, len(text), marked))
        if event is not None:
            text += transcript(event)
        elif not marked:
            text, marked = f"{text}{HIDDEN}\n\n", 1
        if len(text) - offset > 4 * request.token_budget:
            break
    page, taken = fit.content(result, item, text, offset, request)
    end = offset + taken
    more = None
    if end < len(text):
        number, begin, shown = [place for place in places if place[1] <= end][-1]
        more = fit.write(own, number, end - begin, shown)
    elif at + len(places) < len(numbers):
        more = fit.write(own, numbers[at + len(places)], 0, marked)
    return replace(page, cursor=more)


def _read(db: Connection, viewer: Viewer, numbers: list[int]) -> Iterator[tuple[int, Stored | None]]:
    """Read events in order, a few at a time; None stands for one the viewer may not see."""
    for start in range(0, len(numbers), _AT_ONCE):
        part = numbers[start : start + _AT_ONCE]
        found = events.many(db, events.shown(db, viewer, part))
        yield from ((number, found.get(number)) for number in part)


def transcript(event: Stored) -> str:
    """Write one event for reading: its id, what it is, its body; of a tool's input, its texts once more, plain."""
    head = f"[event-{event.id} {nav.describe(event)} {event.ts or ''}".rstrip() + "]"
    texts = "".join(_texts(event.body)) if event.kind is EventKind.TOOL_CALL else ""
    return f"{head}\n{event.body}\n{texts}\n"


def _texts(body: str) -> Iterator[str]:
    """The texts of a tool's input that JSON writes with escapes: nobody reads a file's content that way."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return
    rest = [("", value)]
    while rest:
        name, part = rest.pop(0)
        if isinstance(part, str) and part not in body:
            yield f"{name}:\n{part}\n"
        elif isinstance(part, dict):
            rest = [(str(key), one) for key, one in part.items()] + rest
        elif isinstance(part, list):
            rest = [(name, one) for one in part] + rest

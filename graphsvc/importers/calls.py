"""Tool calls: what their arguments name, and what a result says of the call it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from graphsvc.importers.source import UnreadableError, parse_object
from graphsvc.importers.values import as_json, digest, text

_PATH_KEYS: Final = ("file_path", "notebook_path", "path")


@dataclass(frozen=True, slots=True)
class Call:
    """What a result needs to know of its call. The digest stands for the arguments, which may be large."""

    tool_name: str
    file_path: str
    digest: str


def read(tool_name: str, given: object) -> tuple[str, Call]:
    """Return the body of a call with these arguments, JSON or JSON text, and the call."""
    body = given if isinstance(given, str) else as_json(given)
    named = arguments(given)
    path = next((path for key in _PATH_KEYS if (path := text(named, key))), "")
    return body, Call(tool_name, path, digest(body))


def about(tool_use_id: str, call: Call | None) -> dict[str, object]:
    """Return what the meta of a call, and of its result, says about the call."""
    known = {"tool_name": call.tool_name, "file_path": call.file_path} if call else {}
    return {"tool_use_id": tool_use_id, **known}


def arguments(given: object) -> Mapping[str, object]:
    """Return the object that arguments are, or that their text holds; an empty one for anything else."""
    if isinstance(given, dict):
        return given
    try:
        return parse_object(given) if isinstance(given, str) else {}
    except UnreadableError:
        return {}

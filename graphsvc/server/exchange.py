"""GraphQL over HTTP: what a request must look like, and which media type and status it is answered with."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from graphsvc.api.limits import LIMITS
from graphsvc.client import executor
from graphsvc.errors import Forbidden
from graphsvc.recall import budget, scope
from graphsvc.recall.scope import Asker
from graphsvc.server.guard import Refusal
from graphsvc.store.access.tokens import Token

JSON: Final = "application/json"
RESPONSE: Final = "application/graphql-response+json"
STREAM: Final = "text/event-stream"
_STATUSES: Final = {"TOKEN": 401, "FORBIDDEN": 403, "METHOD": 405}  # of codes, whatever the media type
TYPES: Final = (JSON, RESPONSE)  # the first is what an unspecific Accept gets
MAX_BODY: Final = LIMITS["body"].most
MAX_CAPTURE: Final = LIMITS["capture"].most
MAX_DEPTH: Final = LIMITS["values"].most
MAX_DOCUMENT: Final = LIMITS["document"].most
_QUALITY: Final = re.compile(r"q=([01](?:\.\d{0,3})?)", re.IGNORECASE)
_IN_JSON: Final = frozenset({"variables", "extensions"})  # of a URL
_FIELDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "query": ((str,), "a string"),
    "variables": ((dict, type(None)), "an object or null"),
    "operationName": ((str, type(None)), "a string or null"),
    "extensions": ((dict, type(None)), "an object or null"),
}


class Refused(Exception):  # carries an answer
    """A request that is no GraphQL request."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.refusal = Refusal(status, code, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked: a document, its variables, which of its operations, and whether that may only read.

    It was `checked` when another process found nothing wrong with it, or did not need to look.
    """

    document: str
    variables: Mapping[str, object]
    operation: str | None
    reads: bool = False
    checked: bool = False


def accepted_type(accept: str | None) -> str:
    """Choose the media type of the answer, a stream when nothing else will do; refuse with 406 when that will not."""
    if not accept or not accept.strip():
        return JSON
    wanted = _wanted(accept)
    ranked = [(_quality(wanted, name), name) for name in TYPES]
    best = max(quality for quality, _ in ranked)
    if best <= 0 and streamed(accept):
        return STREAM
    if best <= 0:
        raise Refused(406, "ACCEPT", f"answers are {RESPONSE} or {JSON}, those of subscriptions {STREAM}")
    return next(name for quality, name in ranked if quality == best)


def check_content_type(value: str | None) -> None:
    """Refuse everything but JSON in UTF-8: other types reach a server from any page without asking it first."""
    name, *parameters = (piece.strip().lower() for piece in (value or "").split(";"))
    if name != JSON:
        raise Refused(415, "CONTENT_TYPE", f"send the document as {JSON}")
    for parameter in parameters:
        if parameter.startswith("charset=") and parameter[8:].strip('"') not in {"utf-8", "utf8"}:
            raise Refused(415, "CONTENT_TYPE", "send JSON in UTF-8")


async def body(stream: AsyncIterable[bytes], length: str | None, limit: int, seconds: float) -> bytes:
    """Read a body of at most `limit` bytes, refusing a longer one as soon as that is known."""
    if length is not None and length.isdecimal() and int(length) > limit:
        _too_large(limit)
    parts, size = [], 0
    async with asyncio.timeout(seconds):
        async for part in stream:
            size += len(part)
            if size > limit:
                _too_large(limit)
            parts.append(part)
    return b"".join(parts)


def question(raw: bytes) -> Question:
    """Read a body as a GraphQL request; refuse with 400 what is none."""
    value = decoded(raw, "the body")
    if isinstance(value, list):
        raise Refused(400, "BATCH", "one document a request; send the documents of a batch one by one")
    if not isinstance(value, dict):
        raise Refused(400, "BAD_REQUEST", 'the body must be an object: {"query": …, "variables": {…}}')
    return checked(value)


def asked(parameters: Iterable[tuple[str, str]]) -> Question:
    """Read the parameters of a URL as a GraphQL request; refuse with 400 what is none."""
    value: dict[str, object] = {}
    for name, text in parameters:
        if name in value:
            raise Refused(400, "BAD_REQUEST", f"`{name[:80]}` is given twice")
        # Left empty means left out, as forms send it.
        value[name] = decoded(text.encode(errors="replace"), f"`{name}`") if name in _IN_JSON and text else text or None
    return replace(checked(value), reads=True)


def asker(values: Callable[[str], list[str]], token: Token) -> Asker:
    """Say who asks. The values of headers narrow what the token allows; refuse with 403 what would widen it."""
    session_id, project, cwd = (
        _header(name, values(name)) for name in (executor.VIEWER, executor.PROJECT, executor.CWD)
    )
    try:
        return scope.narrowed(token, Asker(session_id=session_id, project=project, cwd=cwd))
    except Forbidden as error:
        raise Refused(403, "FORBIDDEN", str(error)) from None


def streamed(accept: str | None) -> bool:
    """Say whether an event stream is asked for by name; `*/*` comes from clients that know nothing of streams."""
    return _wanted(accept or "").get(STREAM, 0.0) > 0


def encoded(response: Mapping[str, object]) -> bytes:
    """Write a response as JSON in UTF-8; a lone surrogate is written as its escape."""
    return budget.line(response).encode("utf-8")


def status(response: Mapping[str, object], media_type: str) -> int:
    """Return the status: a request that could not be executed is 400, which the older media type keeps as 200."""
    errors = response.get("errors")
    code = errors[0].get("extensions", {}).get("code") if isinstance(errors, list) else None
    if response.get("data") is None and code in _STATUSES:
        return _STATUSES[code]
    return 400 if media_type == RESPONSE and "data" not in response else 200


def decoded(raw: bytes, what: str) -> object:
    """Read JSON in UTF-8; refuse with 400 what is none, or nested too deeply."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "BAD_REQUEST", f"{what} is no JSON in UTF-8") from None
    if _deeper(value, MAX_DEPTH):
        raise Refused(400, "BAD_REQUEST", f"{what} is nested deeper than {MAX_DEPTH}")
    return value


def checked(value: Mapping[str, Any]) -> Question:
    """Read an object as a GraphQL request; refuse with 400 what is none."""
    for name, (types, what) in _FIELDS.items():
        if not isinstance(value.get(name), types):
            raise Refused(400, "BAD_REQUEST", f"`{name}` must be {what}")
    if not value["query"].strip():
        raise Refused(400, "BAD_REQUEST", "`query` holds no document")
    if len(value["query"]) > MAX_DOCUMENT:
        raise Refused(400, "TOO_EXPENSIVE", f"the document is longer than {MAX_DOCUMENT} characters; use variables")
    return Question(
        document=value["query"], variables=value.get("variables") or {}, operation=value.get("operationName")
    )


def _wanted(accept: str) -> dict[str, float]:
    wanted: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        found = [match for parameter in parameters if (match := _QUALITY.fullmatch(parameter))]
        wanted[name.lower()] = float(found[0][1]) if found else 1.0
    return wanted


def _header(name: str, values: list[str]) -> str | None:
    if len(values) > 1:
        raise Refused(400, "BAD_REQUEST", f"{name} is given twice")
    try:
        value = unquote(values[0], errors="strict") if values else ""
    except UnicodeDecodeError:
        value = "\0"
    if "\0" in value:
        raise Refused(400, "BAD_REQUEST", f"{name} must be percent-encoded UTF-8")
    return value or None


def _quality(wanted: Mapping[str, float], name: str) -> float:
    for pattern in (name, "application/*", "*/*"):
        if pattern in wanted:
            return wanted[pattern]
    return 0.0


def _too_large(limit: int) -> NoReturn:
    raise Refused(413, "TOO_LARGE", f"the body is larger than {limit} bytes; send fewer events, or less, at a time")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _deeper(value: object, limit: int) -> bool:
    """Say whether JSON is nested deeper than that, level by level: recursion is what the limit protects."""
    level = [value]
    for _ in range(limit + 1):
        if not level:
            return False
        level = [
            part
            for outer in level
            for part in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(part, dict | list)
        ]
    return bool(level)

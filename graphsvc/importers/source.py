"""Files of hosts as records: split on LF only, one JSON object a line, damage reported by line and the rest read on.

Nothing here trusts a file: not its name, its encoding, its end, nor the depth of its JSON. Memory is bounded by the
largest line, also for compressed files.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import zstandard

from graphsvc.importers.values import as_json, digest, levels, mapping, session_fault, stated_cwd, text
from graphsvc.model import Event

FORMATS: Final = ("claude-code", "dsh", "codex", "swe-agent", "neutral")
MAX_DEPTH: Final = 200  # json can read deeper than it can write: both recurse, and the writer starts lower on the stack
UNFINISHED: Final = "unfinished"

_HEAD_LINES: Final = 64
_HEAD_BYTES: Final = 1 << 20
_CHUNK: Final = 1 << 18
_PACKED_CHUNK: Final = 1 << 10  # a packed KiB unpacks to 32 MiB at most
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BOM: Final = b"\xef\xbb\xbf"
_UNTHREADED: Final = frozenset({"custom-title", "last-prompt", "mode", "pr-link", "queue-operation", "tools-used"})
_DOCUMENT: Final = re.compile(rb'"(?:trajectory|history)"\s{0,64}:\s{0,64}\[')


@dataclass(frozen=True, slots=True)
class Gap:
    """A line that could not be read."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Noise:
    """A record that is counted and not stored."""

    type: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record type no importer knows. Its event follows or precedes it; this one is for the count."""

    type: str


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object and its line, counted from 1."""

    line: int
    value: Mapping[str, object]


Item = tuple[int, Event | Noise | Unknown | Gap]  # with the line it comes from


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the first lines of a file say."""

    format: str
    session_id: str = ""
    inferred: bool = False  # no record of the head names its session: the id is a hash of the first record
    cwd: str | None = None


class SkippedError(Exception):
    """The file is none that an importer reads; the message says why."""


class UnreadableError(Exception):
    """Bytes that are no JSON object; the message says why."""


class DamagedError(Exception):
    """The bytes of the file end before the file does; the message says why."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    data: bytes
    whole: bool = True  # it ends with LF
    damage: str | None = None  # why nothing follows


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise SkippedError for anything else."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SkippedError("not a regular file")
        return path.open("rb")
    except FileNotFoundError:
        raise SkippedError("no such file") from None
    except (OSError, ValueError) as error:
        raise SkippedError(f"unreadable: {getattr(error, 'strerror', None) or error}") from None


def sniff(stream: BinaryIO, forced: str | None = None) -> Head:
    """Recognise the format by the first lines, leaving the stream at its start; raise what hides it if there is none.

    That is DamagedError when the head is damaged, and SkippedError otherwise.
    """
    head, damage = _head_bytes(stream)
    stream.seek(0)
    if damage and not head.strip():
        raise damage
    if not head.strip():
        raise SkippedError("empty file")
    records = [record for record in map(_object_or_none, _head_lines(head)) if record is not None]
    found = forced or next((name for record in records if (name := _format(record))), None)
    if found is None and head.lstrip(_BOM + b" \t\r\n")[:1] == b"{" and _DOCUMENT.search(head):
        found = "swe-agent"
    if found is None:
        raise damage or SkippedError("no known format")
    session = next((name for record in records if (name := _session(found, record))), "")
    path = next((path for record in records if (path := _cwd(record))), None)
    if session:
        return Head(format=found, session_id=session, cwd=path)
    first = as_json(records[0]) if records else _head_lines(head)[0].decode("utf-8", "backslashreplace")
    return Head(format=found, session_id=f"{found}-{digest(first)}", inferred=True, cwd=path)


def records(stream: BinaryIO) -> Iterator[Record | Gap]:
    """Yield the object of every line, and a gap for every line that holds none."""
    for line in _lines(stream):
        data = line.data.removeprefix(_BOM) if line.number == 1 else line.data
        if data.strip(b" \t\r"):
            try:
                yield Record(line.number, decode(data))
            except UnreadableError as error:
                reason = str(error) if line.whole else f"{UNFINISHED} last line: {error}"
                yield Gap(line.number, line.damage or reason)
                continue
        if line.damage:
            yield Gap(line.number + 1 if data.strip() else line.number, line.damage)


def document(stream: BinaryIO) -> Iterator[Record | Gap]:
    """Yield the one object a whole file holds, or the gap where it breaks."""
    try:
        data = b"".join(_chunks(stream)).removeprefix(_BOM)
    except DamagedError as error:
        yield Gap(1, str(error))
        return
    try:
        yield Record(1, decode(data))
    except UnreadableError as error:
        cause = error.__cause__
        yield Gap(cause.lineno if isinstance(cause, json.JSONDecodeError) else 1, str(error))


def decode(data: bytes) -> dict[str, object]:
    """Read one JSON object; raise UnreadableError for anything that is none, or that could not be written again."""
    try:
        line = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"invalid UTF-8 at byte {error.start} of the line") from error
    return parse_object(line)


def parse_object(line: str) -> dict[str, object]:
    """Read one JSON object from text; raise UnreadableError as `decode` does."""
    try:
        value = json.loads(line, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"invalid JSON: {error.msg} at character {error.pos}") from error
    except RecursionError:
        raise UnreadableError("nested too deep") from None
    except ValueError as error:  # more digits than an integer may have, NaN, out of range
        raise UnreadableError(f"invalid JSON: {str(error)[:120]}") from None
    if not isinstance(value, dict):
        raise UnreadableError("not a JSON object")
    if line.count("[") + line.count("{") > MAX_DEPTH and sum(1 for _ in levels(value)) > MAX_DEPTH:
        raise UnreadableError("nested too deep")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("number out of range")
    return number


def _lines(stream: BinaryIO) -> Iterator[_Line]:
    number, parts, damage = 1, list[bytes](), None
    try:
        for chunk in _chunks(stream):
            pieces = chunk.split(b"\n")
            for piece in pieces[:-1]:
                parts.append(piece)
                yield _Line(number, b"".join(parts))
                number, parts = number + 1, []
            parts.append(pieces[-1])
    except DamagedError as error:
        damage = str(error)
    rest = b"".join(parts)
    if rest or damage:
        yield _Line(number, rest, whole=False, damage=damage)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    try:
        first = stream.read(len(_ZSTD))
        stream.seek(0)
        if first == _ZSTD:
            yield from filter(None, _unpacked(stream))
            return
        while chunk := stream.read(_CHUNK):
            yield chunk
    except OSError as error:
        raise DamagedError(f"unreadable: {error.strerror or error}") from error


def _unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """Unpack frame after frame. A stream reader would end silently in the middle of a cut frame."""
    unpacker, frame = zstandard.ZstdDecompressor().decompressobj(), 0
    while data := stream.read(_PACKED_CHUNK):
        while data:
            place = stream.tell() - len(data)
            if unpacker.eof:
                unpacker, frame = zstandard.ZstdDecompressor().decompressobj(), place
            try:
                yield unpacker.decompress(data)
            except zstandard.ZstdError as error:
                yield from _before_damage(stream, frame, place)
                raise DamagedError(f"damaged zstd data: {error}") from error
            data = unpacker.unused_data
    if not unpacker.eof:
        raise DamagedError(f"{UNFINISHED} zstd frame")


def _before_damage(stream: BinaryIO, frame: int, place: int) -> Iterator[bytes]:
    """Unpack a damaged chunk again, byte by byte: an unpacker that fails drops what it made of the chunk."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    stream.seek(frame)
    while stream.tell() < place:
        unpacker.decompress(stream.read(min(_PACKED_CHUNK, place - stream.tell())))
    with suppress(zstandard.ZstdError):
        while data := stream.read(1):
            yield unpacker.decompress(data)


def _head_bytes(stream: BinaryIO) -> tuple[bytes, DamagedError | None]:
    """Read the head: 1 MiB, and the first line to its end if it can be an object; with the damage that ends it."""
    parts, size, ended = list[bytes](), 0, False
    damage = None
    try:
        for chunk in _chunks(stream):
            parts.append(chunk)
            size += len(chunk)
            ended = ended or b"\n" in chunk
            # A document over several lines begins with a line that holds the brace only.
            if size >= _HEAD_BYTES and (ended or parts[0].lstrip(_BOM + b" \t\r\n")[:1] != b"{"):
                break
    except DamagedError as error:
        damage = error
    return b"".join(parts), damage


def _head_lines(head: bytes) -> list[bytes]:
    return head.removeprefix(_BOM).split(b"\n", _HEAD_LINES)[:_HEAD_LINES]


def _object_or_none(data: bytes) -> dict[str, object] | None:
    try:
        return decode(data)
    except UnreadableError:
        return None


def _is_claude(record: Mapping[str, object]) -> bool:
    kind = text(record, "type")
    if kind in {"file-history-snapshot", "summary"}:
        return "snapshot" in record or "leafUuid" in record
    return bool(text(record, "sessionId")) and ("uuid" in record or kind in _UNTHREADED)


def _is_dsh(record: Mapping[str, object]) -> bool:
    if record.get("type") == "session":
        return isinstance(record.get("id"), str) and "createdAt" in record
    return isinstance(record.get("seq"), int) and isinstance(record.get("data"), dict)


_SIGNS: Final[tuple[tuple[str, Callable[[Mapping[str, object]], bool]], ...]] = (
    ("neutral", lambda record: all(key in record for key in ("session_id", "kind", "origin", "body"))),
    ("codex", lambda record: isinstance(record.get("payload"), dict) and "type" in record),
    ("dsh", lambda record: "type" in record and _is_dsh(record)),
    ("claude-code", lambda record: "type" in record and _is_claude(record)),
    ("swe-agent", lambda record: any(isinstance(record.get(key), list) for key in ("history", "trajectory"))),
)


def _format(record: Mapping[str, object]) -> str | None:
    return next((name for name, fits in _SIGNS if fits(record)), None)


def _session(name: str, record: Mapping[str, object]) -> str:
    """Return the first id of a record that can be one of a session."""
    kind = text(record, "type")
    given: tuple[str, ...] = ()
    if name == "claude-code":
        given = (text(record, "sessionId"),)
    elif name == "dsh" and kind == "session":
        given = (text(record, "id"),)
    elif name == "codex" and kind == "session_meta":
        payload = mapping(record, "payload")
        given = (text(payload, "id"), text(payload, "session_id"))
    return next((found for found in given if found and session_fault(found) is None), "")


def _cwd(record: Mapping[str, object]) -> str:
    return stated_cwd(record) or stated_cwd(mapping(record, "payload"))

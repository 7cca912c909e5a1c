"""Values out of foreign JSON: typed access that never raises, names the store can hold, hashes where there is no id."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from graphsvc import clock
from graphsvc.model import MAX_NAME, MAX_PATH

UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")  # a NUL or a lone surrogate: no key of the store may hold it


def text(record: Mapping[str, object], key: str) -> str:
    """Return the text at `key`, or an empty one."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def mapping(record: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the object at `key`, or an empty one."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def items(record: Mapping[str, object], key: str) -> list[object]:
    """Return the list at `key`, or an empty one."""
    value = record.get(key)
    return value if isinstance(value, list) else []


def objects(record: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """Return the objects of the list at `key`."""
    return [item for item in items(record, key) if isinstance(item, dict)]


def as_json(value: object) -> str:
    """Write a value as JSON text with its characters unescaped."""
    return json.dumps(value, ensure_ascii=False)


def digest(content: str) -> str:
    """Return 16 hex digits that stand for a text."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def named(value: str) -> str:
    """Return a text as a name that the store takes; one that had to be changed ends in the hash of what it was."""
    if len(value) <= MAX_NAME and not UNUSABLE.search(value):
        return value
    printable = value.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    return f"{printable[: MAX_NAME - 17]}~{digest(value)}"


def identifier(record: Mapping[str, object], key: str) -> str:
    """Return the text at `key` as a name, or an empty one."""
    return named(text(record, key))


def session_fault(value: object) -> str | None:
    """Say why a host's session id cannot be one; None when it can, or when there is none."""
    if value is None:
        return None
    if not isinstance(value, str):
        return f"session id: {type(value).__name__} given"
    if len(value) > MAX_NAME:
        return f"session id: {len(value)} characters"
    return "session id: holds a NUL or a lone surrogate" if UNUSABLE.search(value) else None


def stated_cwd(record: Mapping[str, object]) -> str:
    """Return the working directory a record states, or an empty text when it states none that can be one."""
    path = text(record, "cwd")
    return "" if len(path) > MAX_PATH or UNUSABLE.search(path) else path


def unusable_cwd(record: Mapping[str, object]) -> str:
    """Return what a record has in the place of a working directory, or an empty text when `stated_cwd` takes it."""
    return "" if stated_cwd(record) else _shown(record.get("cwd"))


def host_time(value: object) -> tuple[str | None, dict[str, object]]:
    """Read a host's time text as (UTC text or None, what meta says about it)."""
    ts, naive = clock.from_host(value)
    return ts, present(ts_naive=naive, ts_raw=_shown(value) if ts is None else None)


def epoch_time(value: object) -> tuple[str | None, dict[str, object]]:
    """Read a host's epoch milliseconds as `host_time` reads texts."""
    ts = clock.from_epoch_ms(value)
    return ts, present(ts_raw=_shown(value) if ts is None else None)


def _shown(value: object) -> str:
    return "" if value is None else named(value if isinstance(value, str) else as_json(value))


def levels(value: object) -> Iterator[list[object]]:
    """Yield what a JSON value holds, level by level: itself, its parts, their parts."""
    level = [value]
    while level:
        yield level
        inner = [item for item in level if isinstance(item, dict | list)]
        level = [part for item in inner for part in (item.values() if isinstance(item, dict) else item)]


def present(**meta: object) -> dict[str, object]:
    """Keep what says something: no None, no False, no empty text."""
    return {key: value for key, value in meta.items() if value is not None and value is not False and value != ""}


def type_name(*parts: object) -> str:
    """Name a record type for the counts: `system/turn_duration`."""
    return "/".join(str(part)[:80] for part in parts if part not in (None, "")) or "(no type)"


def split(content: object) -> tuple[str, list[tuple[int, object]]]:
    """Split a content value into its texts, joined by LF, and the (index, block) pairs that are none."""
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        return "", [] if content is None else [(0, content)]
    texts = [found for block in content if (found := block_text(block)) is not None]
    return "\n".join(texts), [(index, block) for index, block in enumerate(content) if block_text(block) is None]


def block_text(block: object) -> str | None:
    """Return the text of a text block (or of a bare text); None for any other block."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict) or not isinstance(block.get("text"), str):
        return None
    kind = block.get("type")
    return block["text"] if isinstance(kind, str) and kind.lower().replace("_", "").endswith("text") else None


@dataclass(slots=True)
class Numbering:
    """Counts how often the same content came, so that records without an id keep apart."""

    seen: Counter[str] = field(default_factory=Counter)

    def number(self, key: str) -> int:
        """Return 0 for the first occurrence of a key, 1 for the second."""
        self.seen[key] += 1
        return self.seen[key] - 1

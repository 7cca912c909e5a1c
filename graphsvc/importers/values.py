"""Values out of foreign JSON: typed access that never raises, JSON text, hashes for records without an id."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

_PATH_KEYS: Final = ("file_path", "notebook_path", "path")


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


def file_path(tool_input: Mapping[str, object]) -> str:
    """Return the path a tool's input names, or an empty text."""
    return next((path for key in _PATH_KEYS if (path := text(tool_input, key))), "")


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


@dataclass(frozen=True, slots=True)
class Call:
    """What a result needs to know of its call."""

    tool_name: str
    file_path: str
    digest: str

    @staticmethod
    def of(name: str, arguments: str, tool_input: Mapping[str, object]) -> Call:
        return Call(name, file_path(tool_input), digest(arguments))


def contains_all(haystack: str, needles: Iterable[str]) -> bool:
    """Say whether every text stands in the other one, surrounding blanks aside."""
    return all(needle.strip() in haystack for needle in needles)

"""The printed line: how an answer is written, what it costs, and how texts are cut to fit."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Final

# CJK, kana, hangul and their punctuation cost a token each; four other characters cost one.
_WIDE: Final = re.compile(
    r"[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
# Lone surrogates are no UTF-8; the others end a line for many readers, and an answer is one line.
_ESCAPED: Final = re.compile(r"[\ud800-\udfff\u0085\u2028\u2029]")


def wire(value: object) -> object:
    """Return an answer as JSON values: enums as their values, fields that say nothing left out."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((item.name, getattr(value, item.name)) for item in fields(value))
        return {name: wire(part) for name, part in pairs if part is not None}
    if isinstance(value, list | tuple):
        return [wire(part) for part in value]
    return value


def line(value: object) -> str:
    """Print an answer as one compact line of valid JSON."""
    text = json.dumps(wire(value), ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def tokens(text: str) -> int:
    """Count the tokens of a printed text."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // 4)


def cost(value: object) -> int:
    """Count the tokens of an answer as it is printed."""
    return tokens(line(value))


@dataclass(frozen=True, slots=True)
class Size:
    """What a printed text costs, in parts that add up: wide characters, and the others that count four to one."""

    wide: int = 0
    narrow: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.wide + other.wide, self.narrow + other.narrow)

    @property
    def tokens(self) -> int:
        return self.wide - (-self.narrow // 4)


def size(value: object) -> Size:
    """Measure an answer, or a part of one, as it is printed."""
    text = line(value)
    wide = len(_WIDE.findall(text))
    return Size(wide, len(text) - wide)


def cut(text: str, limit: int, fixed: Size) -> int:
    """Return how many characters of a text fit into `limit` tokens beside what is fixed, as printed in JSON."""
    if (fixed + size(text)).tokens <= limit:
        return len(text)
    # Each character is at least a quarter of a token, so nothing behind this point can fit.
    low, high = 0, min(len(text), max(0, 4 * limit))
    while low < high:
        middle = (low + high + 1) // 2
        if (fixed + size(text[:middle])).tokens <= limit:
            low = middle
        else:
            high = middle - 1
    return low

"""Where a text matches what was asked, and the part of it that is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from graphsvc.recall import budget

MARK: Final = "…"
_SEEN: Final = 200  # matches that are looked at for the densest place
_NEAR: Final = 400  # characters that are read at one glance
_LINES: Final = 20
_WIDE_LATIN: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


@dataclass(frozen=True, slots=True)
class Needles:
    """What to look for: the query as it was written, else its terms, else its identifiers however they are written."""

    literal: str
    terms: re.Pattern[str] | None
    identifiers: re.Pattern[str] | None


def needles(literal: str, terms: Sequence[str], identifiers: Sequence[str]) -> Needles:
    """Compile what to look for; a short Latin term must begin a word."""
    parts = [re.escape(term) if len(term) > 3 or not term.isascii() else rf"(?<!\w){re.escape(term)}" for term in terms]
    loose = [r"[\W_]?".join(map(re.escape, name)) for name in identifiers if len(name) <= 64]
    return Needles(
        _lowered(literal),
        re.compile("|".join(sorted(parts, key=len, reverse=True))) if parts else None,
        re.compile("|".join(loose)) if loose else None,
    )


def place(text: str, asked: Needles) -> int:
    """Return where the text matches best; its beginning when nothing can be pointed at."""
    lowered = _lowered(text)
    at = lowered.find(asked.literal) if asked.literal else 0
    if at >= 0:
        return at
    found = _matches(lowered, asked.terms)
    if not found and not lowered.isascii():
        found = _matches(lowered.translate(_WIDE_LATIN), asked.terms)
    if found:
        return max(
            found, key=lambda start: (len({word for at, word in found.items() if 0 <= at - start < _NEAR}), -start)
        )
    return next(iter(_matches(lowered, asked.identifiers)), 0)


def cut(text: str, at: int, allowed: int) -> str:
    """Return the text, or the part around `at` that costs no more than `allowed` tokens when printed."""
    if len(text) <= 4 * allowed and printed(text) <= allowed:
        return text
    low, high = 0, 4 * max(allowed, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if printed(_window(text, at, middle)) <= allowed:
            low = middle
        else:
            high = middle - 1
    return _window(text, at, low) if low else ""


def printed(text: str) -> int:
    """Count the tokens a text adds to a printed answer, quotes aside."""
    return budget.tokens(budget.line(text)[1:-1])


def lines(text: str, asked: Needles) -> str:
    """Return the matching lines with one line around each; the beginning when none can be pointed at."""
    spans: list[tuple[int, int]] = []
    for start in _lines(text, asked) or [text.rfind("\n", 0, place(text, asked)) + 1]:
        begin = text.rfind("\n", 0, start - 1) + 1 if start else 0
        end = _line_end(text, _line_end(text, start) + 1)
        if spans and begin <= spans[-1][1] + 1:
            begin, _ = spans.pop()
        spans.append((begin, end))
    return f"\n{MARK}\n".join(text[begin:end] for begin, end in spans).strip("\n")


def _lines(text: str, asked: Needles) -> list[int]:
    """Return where the first lines that hold the query or one of its terms begin."""
    lowered = _lowered(text)
    patterns = [re.compile(re.escape(asked.literal))] if asked.literal else []
    found: set[int] = set()
    for pattern in (*patterns, *([asked.terms] if asked.terms else [])):
        at = 0
        for _ in range(_LINES):
            match = pattern.search(lowered, at)
            if match is None:
                break
            found.add(lowered.rfind("\n", 0, match.start()) + 1)
            at = _line_end(lowered, match.start())
    return sorted(found)[:_LINES]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _window(text: str, at: int, size: int) -> str:
    """Return about `size` characters, a third of them before `at`, with a mark where text is left out."""
    start = max(0, min(at - size // 3, len(text) - size))
    end = min(len(text), start + size)
    return f"{MARK if start else ''}{text[start:end]}{MARK if end < len(text) else ''}"


def _matches(lowered: str, pattern: re.Pattern[str] | None) -> dict[int, str]:
    found: dict[int, str] = {}
    for match in pattern.finditer(lowered) if pattern else ():
        found[match.start()] = match[0]
        if len(found) == _SEEN:
            break
    return found


def _lowered(text: str) -> str:
    # The one letter whose lower case is two characters; offsets must stay true.
    return text.replace("İ", "i").lower()

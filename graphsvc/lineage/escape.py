"""Texts that others wrote, as a file may hold them: nothing in a label steers whoever shows it."""

from __future__ import annotations

import json
import re
from typing import Final

# Controls, marks of direction, line separators, and what no XML and no UTF-8 can hold.
_STEERING: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff"
)
_UNSEEN: Final = re.compile(f"[{_STEERING}]")
_ESCAPED: Final = re.compile(f"[<>&{_STEERING}]")


def plain(text: str) -> str:
    """Replace every character that would steer a reader instead of being seen; lines end with a line feed."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))


def json_line(value: object) -> str:
    """Write a value as one line of JSON that loses nothing, and that may stand inside of HTML.

    Such characters occur in strings only, where an escape means the same.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

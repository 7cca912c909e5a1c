"""What a GraphQL document may do, as far as its tokens tell: whether one of its operations is a mutation."""

from __future__ import annotations

import re
from typing import Final

# Names count, and the brackets they stand in; of comments and texts only where they end. What is no GraphQL is passed
# over: whoever executes the document refuses it.
_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\"""|\\|"(?!""))*(?:"""|\Z)'  # a block string: only its end can be escaped
    r'|"(?:[^"\\\r\n]|\\.)*"?'
    r"|#[^\r\n]*"
    r"|(?P<name>[_A-Za-z][_0-9A-Za-z]*)"
    r"|(?P<open>[{(\[])"
    r"|(?P<close>[})\]])"
)


def mutates(document: str) -> bool:
    """Say whether a document holds a mutation."""
    depth, begins = 0, True  # a definition begins at the start, and behind the selections of the one before
    for token in _TOKEN.finditer(document):
        if token["open"]:
            depth += 1
            begins = False
        elif token["close"]:
            depth -= 1
            begins = depth <= 0 and token["close"] == "}"
        elif token["name"]:
            if begins and token["name"] == "mutation":
                return True
            begins = False
    return False

"""What can be set about privacy: one table. The owner sets it, and a project's file may only make it more private."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from graphsvc.errors import InvalidInput

TOOLS: Final = "isolation.tools"
DEFAULT: Final = "isolation.default"
PAUSED: Final = "capture.paused"
# The values of each setting, the most private one last. What is built in stands first in BUILT_IN.
VALUES: Final[dict[str, tuple[str, ...]]] = {
    TOOLS: ("share", "isolate"),  # tool calls and results of an isolated session
    DEFAULT: ("shared", "isolated"),  # how a session begins
    PAUSED: ("false", "true"),  # whether what is said is not recorded
}
BUILT_IN: Final = {TOOLS: "isolate", DEFAULT: "shared", PAUSED: "false"}


def check(field: str, name: str, value: str) -> str:
    """Return a value of a setting; raise InvalidInput for a name that is none, the nearest one first, or a value."""
    if name not in VALUES:
        near = difflib.get_close_matches(name[:100], VALUES, n=1, cutoff=0.4)
        raise InvalidInput(field, f"{name[:100]!r} is unknown", ", ".join(dict.fromkeys([*near, *VALUES])))
    if value not in VALUES[name]:
        raise InvalidInput(field, f"{name} cannot be {value[:100]!r}", " or ".join(VALUES[name]))
    return value


def most_private(name: str, values: Iterable[str]) -> str:
    """Return the most private one of some values of a setting."""
    return max(values, key=VALUES[name].index)

"""The status machines as tables. Whatever is not in a table is InvalidTransition, naming what is allowed."""

from __future__ import annotations

from typing import Final

from graphsvc.errors import InvalidTransition

INITIAL: Final = {
    "goal": ("active",),
    "decision": ("active", "proposed"),
    "candidate": ("pending",),
    "todo": ("pending",),
    "feedback": ("active",),
}
MACHINES: Final[dict[str, dict[str, dict[str, str]]]] = {
    "goal": {"active": {"complete": "completed", "drop": "dropped"}},
    "decision": {
        "proposed": {"activate": "active", "supersede": "superseded", "revoke": "revoked"},
        "active": {"supersede": "superseded", "revoke": "revoked"},
    },
    "candidate": {"pending": {"promote": "promoted", "reject": "rejected", "expire": "expired"}},
    "todo": {"pending": {"finish": "done", "drop": "dropped"}},
    "feedback": {"active": {"revoke": "revoked"}},
}


def statuses(machine: str) -> tuple[str, ...]:
    """List what a record of this machine may be, first to last."""
    table = MACHINES[machine]
    return tuple(dict.fromkeys((*table, *(end for ends in table.values() for end in ends.values()))))


def move(machine: str, status: str, action: str) -> str:
    """Return the status that `action` leads to from `status`; raise InvalidTransition otherwise."""
    allowed = MACHINES[machine].get(status, {})
    if action not in allowed:
        raise InvalidTransition(machine, status, action, tuple(allowed))
    return allowed[action]

"""Which session a process asks as, when its host started it: by what the host says, never by an argument of the asker.

A host that knows graphsvc states it: GRAPHSVC_SESSION. Claude Code tells what it starts CLAUDE_CODE_SESSION_ID and
CLAUDE_PID. Both are inherited by whatever such a process starts in turn, so the second pair counts only where the
process it names is the parent, or the parent of a launcher: a terminal that outlives the session has another one, and
so has what an agent starts that was itself started in the session's shell. Where a host hands its servers an
environment without either, their ancestors' environments are looked at, the nearest first (Linux only).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

STATED: Final = "GRAPHSVC_SESSION"
_HOST: Final = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_PID")
_MOST: Final = 16  # ancestors
_NEAR: Final = 2  # of them that may be the host: there is a launcher between at most
_BYTES: Final = 1 << 20  # of an environment
_PROC: Final = Path("/proc")


def stated(env: Mapping[str, str]) -> str | None:
    """Return the session that the environment states outright."""
    return env.get(STATED) or None


def session(env: Mapping[str, str] = os.environ, proc: Path = _PROC) -> str | None:
    """Return the session of the host that started this process; None when no host says.

    For servers that a host starts for one session. A command in a shell uses `stated` alone: an agent that starts
    another agent hands on its environment, and the other one would ask as the first.
    """
    above = [*_ancestors(proc)]
    environments = [env, *(_environment(proc, one) for one in above)]
    return next((found for one in environments if (found := _named(one, above)) is not None), None)


def _named(env: Mapping[str, str], above: list[int]) -> str | None:
    name, number = (env.get(one, "") for one in _HOST)
    host = name if number.isdecimal() and int(number) in above[:_NEAR] else None
    return stated(env) or host or None


def _ancestors(proc: Path) -> Iterator[int]:
    """Yield the processes above this one, the nearest first, as far as they can be told."""
    number = os.getppid()
    for _ in range(_MOST):
        if number <= 1:
            return
        yield number
        try:
            # The name of a program stands in brackets, and may hold anything.
            fields = (proc / str(number) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return
        number = int(fields[1])


def _environment(proc: Path, number: int) -> dict[str, str]:
    """Read the environment that a process was started with; nothing of one that is not ours."""
    try:
        with (proc / str(number) / "environ").open("rb") as file:
            raw = file.read(_BYTES)
    except OSError:
        return {}
    pairs = (os.fsdecode(one).partition("=") for one in raw.split(b"\0"))
    return {name: value for name, _, value in pairs if name}

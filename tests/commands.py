"""Commands: of this process, or of the real program in a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from graphsvc.cli.main import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        """The one JSON line on standard output."""
        return json.loads(self.out)


def run(home: Path, *arguments: str, cwd: Path, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
    """Run a command in this process, from where the program starts to its exit; a bug in it is raised here."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (stdin, b"", b""))
    with (
        mock.patch.dict(os.environ, _environment(home, env), clear=True),
        mock.patch.multiple(sys, argv=["graphsvc", *arguments], stdin=given, stdout=out, stderr=err),
        chdir(cwd),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    out.flush()
    err.flush()
    return Ran(ended.value.code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())


def program(home: Path, *arguments: str, cwd: Path, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
    """Run the real program in a process of its own, for what a process has: streams, exit codes, a locale."""
    process = subprocess.run(
        [sys.executable, "-m", "graphsvc", *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=_environment(home, env),
        timeout=300,
        check=False,
    )
    return Ran(process.returncode, process.stdout.decode(), process.stderr.decode())


def _environment(home: Path, env: dict[str, str] | None) -> dict[str, str]:
    """Add this home and `env` to what the tests run in, without what is the developer's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHSVC_", "XDG_", "CLAUDE"))}
    return {**kept, "GRAPHSVC_HOME": str(home), "HOME": str(home.parent), **(env or {})}

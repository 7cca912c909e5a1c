"""What a shell completes: commands, options, and the values of options, in the shells there are."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

SCRIPTS = f"{sysconfig.get_path('scripts')}{os.pathsep}{Path(sys.executable).parent}"
ENV = {**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", "PS1": "$ ", "TERM": "dumb"}
LINES = [
    ("graphsvc expo", "graphsvc export"),
    ("graphsvc rebuild --ch", "graphsvc rebuild --check"),
    ("graphsvc search --kind todo --order de", "graphsvc search --kind todo --order desc"),
    ("graphsvc grep --kind assis", "graphsvc grep --kind assistant_message"),
    ("graphsvc completion fi", "graphsvc completion fish"),
]


def typed(command: list[str], setup: str, line: str, until: str) -> str:
    """Type a line and the tab key into a shell on a terminal; return what it shows."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, ENV)  # noqa: S606 # the shell that is tested
    shown, deadline = "", time.monotonic() + 60
    try:
        os.write(terminal, f"{setup}; echo rea''dy\n".encode())
        sent = False
        while time.monotonic() < deadline and until not in shown.rpartition("ready")[2]:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode("utf-8", "replace")
            if not sent and "ready" in shown:
                os.write(terminal, f"{line}\t".encode())
                sent = True
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return shown.rpartition("ready")[2]


@pytest.mark.parametrize(("line", "whole"), LINES, ids=[line for line, _ in LINES])
def test_bash_completes_what_is_typed(home, line, whole):
    shown = typed(["bash", "--norc", "--noprofile", "-i"], 'eval "$(graphsvc completion bash)"', line, f"{whole} ")

    assert f"{whole} " in shown


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(run, shell, tmp_path):
    script = run("completion", shell)
    assert script.code == 0
    assert "_GRAPHSVC_COMPLETE" in script.out
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine; its script was printed")
    (tmp_path / "script").write_text(script.out)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=60)


def test_another_shell_is_refused(run):
    assert run("completion", "dos").code == 2

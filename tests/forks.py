"""The program in processes that fork from one that has imported it: what a start of it takes is mostly its imports.

A fork has its own arguments, environment, working directory and standard streams, runs `main` to the end of the
interpreter, and is stopped by real signals. Run as a script, this is the process that forks.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

MAIN = "from graphsvc.cli.main import main\nmain()\n"


def sooner(module: str, **seconds: float) -> str:
    """Write what shortens deadlines of a module, for a process to do before it begins."""
    lines = [f"assert module.{name} > {value}\nmodule.{name} = {value}\n" for name, value in seconds.items()]
    return f"import {module} as module\n{''.join(lines)}"


class Forks:
    """Starts processes; each process of the tests has one."""

    def __init__(self) -> None:
        self._control, there = socket.socketpair()
        with there:
            command = [sys.executable, "-P", str(Path(__file__)), str(there.fileno())]
            self._parent = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[there.fileno()])

    def start(self, *arguments: str, env: Mapping[str, str], cwd: Path, program: str = MAIN) -> Forked:
        """Start the program, or another text of Python."""
        out, its_out = os.pipe()
        err, its_err = os.pipe()
        asked = {"arguments": arguments, "env": dict(env), "cwd": str(cwd), "program": program}
        pid = self.ask(asked, its_out, its_err)
        os.close(its_out)
        os.close(its_err)
        return Forked(self, pid, open(out, "rb"), open(err, "rb"))  # noqa: PTH123 # pipes, closed with it

    def ask(self, asked: object, *handles: int) -> int | None:
        socket.send_fds(self._control, [json.dumps(asked).encode() + b"\n"], handles)
        with self._control.makefile("rb") as stream:
            return json.loads(stream.readline())

    def close(self) -> None:
        """End the process that forks."""
        self._control.close()
        self._parent.wait(10)


class Forked:
    """A process as `subprocess.Popen` shows one, with standard output and standard error in pipes."""

    def __init__(self, forks: Forks, pid: int, stdout: BinaryIO, stderr: BinaryIO) -> None:
        self._forks = forks
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._forks.ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float = 30) -> int:
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Leave nothing of it behind."""
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()


def forking(control: socket.socket) -> Mapping[str, object] | None:
    """Fork as asked, and return in each fork what it is to run; return nothing when nobody asks any more."""
    while True:
        text, handles, _, _ = socket.recv_fds(control, 2**16, 2)
        while text and not text.endswith(b"\n"):
            text += control.recv(2**16)
        if not text:
            return None
        asked = json.loads(text)
        if "ended" in asked:
            pid, status = os.waitpid(asked["ended"], os.WNOHANG)
            control.sendall(json.dumps(os.waitstatus_to_exitcode(status) if pid else None).encode() + b"\n")
            continue
        pid = os.fork()
        if not pid:
            control.close()
            for handle, place in zip(handles, (1, 2), strict=True):
                os.dup2(handle, place)
                os.close(handle)
            return asked
        for handle in handles:
            os.close(handle)
        control.sendall(json.dumps(pid).encode() + b"\n")


if __name__ == "__main__":
    import graphsvc.cli.main
    import graphsvc.server.service  # noqa: F401 # what a fork need not import any more

    asked = None
    with suppress(KeyboardInterrupt):  # of the terminal that the tests run in
        asked = forking(socket.socket(fileno=int(sys.argv[1])))
    if asked:
        sys.argv[1:] = asked["arguments"]
        os.environ.clear()
        os.environ.update(asked["env"])
        os.chdir(asked["cwd"])
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 # what they are when a process begins
        sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        exec(compile(asked["program"], "<program>", "exec"), {"__name__": "__main__"})  # noqa: S102 # written by a test

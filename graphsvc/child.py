"""A process of our own that is asked over a pair of sockets, and ends with the process that began it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Child:
    """The process, and our end of the pair."""

    process: subprocess.Popen[bytes]
    connection: socket.socket

    def end(self) -> int:
        """Kill the process; return how it ended, which may have been before."""
        # It first: what it has not read of ours, or we of its, would be an error of the other's connection.
        self.process.kill()
        code = self.process.wait()
        self.connection.close()
        return code


def begin(module: str, *arguments: str) -> Child:
    """Begin a process that runs the `main` of a module, where `asked` waits for us."""
    here, there = socket.socketpair()
    with there:
        command = [sys.executable, "-P", "-m", module, *arguments]
        process = subprocess.Popen(command, stdin=there.fileno(), stdout=subprocess.DEVNULL)  # noqa: S603 # ours
    return Child(process, here)


@contextmanager
def asked(nice: int) -> Iterator[socket.socket]:
    """Be such a process: standard input is a socket, whose end is ours too. Others go first, as `nice` says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for all its processes: who began this one ends it
    with suppress(OSError):
        os.nice(nice)
    with suppress(ConnectionError), socket.socket(fileno=os.dup(0)) as connection:  # who began this one is gone
        yield connection

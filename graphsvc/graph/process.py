"""The process that Kuzu runs in: it keeps the mirror at the end of the ledger and answers what its parent asks.

A line of JSON each. From the parent `{"wake": true}`, which the state answers, and questions `{"id", "name",
"parameters", "most", "timeout_ms"}`. To it the state `{"state", "position", …}`, and answers `{"id", "rows", "more",
"position"}`, `{"id", "absent": why}`, or `{"id", "wrong": why}`, which is the asker's fault.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from graphsvc import child, resources
from graphsvc.graph.driver import Failed, Refused
from graphsvc.graph.follow import Absent, Follower
from graphsvc.graph.place import Place
from graphsvc.store import database

MEMORY: Final = 4 << 30  # bytes of address space
NICE: Final = 3  # askers wait for what was stored
POLL_S: Final = 0.25  # for what others store
BEAT_S: Final = 5.0  # the state is told so often, whatever it is
RETRY_S: Final = 1.0  # after a state without a mirror, each time twice as long
MOST_RETRY_S: Final = 60.0
QUESTIONS: Final = "queries/insights"


class Speaker:
    """Tells the parent what is new of the state."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._told: dict[str, object] = {}
        self._beat = 0.0

    def state(self, **told: object) -> None:
        """Tell the state, when it is another one or was not told for long."""
        if told != self._told or time.monotonic() >= self._beat:
            self.say(told)
            self._told, self._beat = told, time.monotonic() + BEAT_S

    def due(self) -> None:
        """Tell the state the next time, whatever it is."""
        self._beat = 0.0

    def say(self, told: dict[str, Any]) -> None:
        """Send a line."""
        self._connection.sendall(json.dumps(told, default=str).encode() + b"\n")


class Ended(Exception):
    """The parent is gone."""


def run(connection: socket.socket, store: Path, place: Place, rules: str) -> None:
    """Follow the store and answer, until the connection is closed."""
    speaker = Speaker(connection)
    follower = Follower(store, place, rules, speaker.state)
    heard = _lines(connection)
    failed, due = 0, 0.0
    try:
        while True:
            if time.monotonic() >= due:
                try:
                    follower.step()
                    failed, due = 0, 0.0
                except (Absent, OSError, database.Error) as error:
                    speaker.state(state="absent", why=str(error))
                    due = time.monotonic() + min(MOST_RETRY_S, RETRY_S * 2**failed)
                    failed = min(failed + 1, 10)
            for line in next(heard):
                if "id" in line:
                    speaker.say({"id": line["id"], **answer(follower, line)})
                else:
                    speaker.due()
    except (Ended, ConnectionError):
        follower.close()


def answer(follower: Follower, asked: dict[str, Any]) -> dict[str, object]:
    """Answer one question, whatever it asks for."""
    try:
        text = question(asked["name"])
        rows, more = follower.ask(text, asked["parameters"], most=asked["most"], timeout_ms=asked["timeout_ms"])
    except ValueError as error:
        return {"wrong": str(error)}
    except (Absent, Refused) as error:
        return {"absent": str(error)}
    except Failed as error:
        follower.broken()
        return {"absent": f"it failed and is made anew: {error.kind}"}
    return {"rows": rows, "more": more, "position": follower.position}


def question(name: str) -> str:
    """Return the text of a named question; raise ValueError for a name that there is not."""
    path = f"{QUESTIONS}/{name}.cypher"
    if path not in resources.names(QUESTIONS, ".cypher"):
        raise ValueError(f"there is no question {name!r}")
    return resources.text(path)


def _lines(connection: socket.socket) -> Iterator[list[dict[str, Any]]]:
    """Yield what was heard within a poll, perhaps nothing; raise Ended at the end."""
    rest = b""
    while True:
        if not select.select([connection], [], [], POLL_S)[0]:
            yield []
            continue
        received = connection.recv(1 << 20)
        if not received:
            raise Ended
        *whole, rest = (rest + received).split(b"\n")
        yield [json.loads(line) for line in whole]


def main() -> None:
    """Be the process; the arguments are the store, the folder of the mirror, and the version of the rules."""
    store, folder, rules = sys.argv[1:]
    with suppress(OSError, ValueError):  # not everywhere
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    with child.asked(NICE) as connection:
        run(connection, Path(store), Place(Path(folder)), rules)


if __name__ == "__main__":
    main()

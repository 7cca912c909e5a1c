"""The mirror as its readers know it: Kuzu in a process of its own, begun again when it dies. It never harms who asks.

Whoever asks says behind which position of the ledger the answer must be, and waits for the mirror to reach it.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from subprocess import TimeoutExpired
from typing import Any, Final

from graphsvc import bugs, child
from graphsvc.child import Child
from graphsvc.config import Settings
from graphsvc.graph.place import place

DELAY_S: Final = 3.0  # after `begin`: short runs do not pay for it
WAIT_S: Final = 0.2  # for the mirror to reach a position
ANSWER_S: Final = 2.0  # for a question
MOST: Final = 2_000  # rows of an answer
SILENT_S: Final = 60.0  # a process that says nothing for so long hangs
PAUSE_S: Final = 1.0  # after the end of a process until the next one, each time twice as long
MOST_PAUSE_S: Final = 300.0
NOT_INSTALLED: Final = "kuzu is not installed: there was none for this Python"
_LOG: Final = logging.getLogger("graphsvc")
_KILLED: Final = frozenset({0, -9, -15})  # how a process ends that did nothing wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a question was answered with; `more`: there are more rows than were asked for."""

    rows: list[dict[str, Any]]
    more: bool
    position: int  # of the ledger, which the answer tells of


@dataclass(frozen=True, slots=True)
class Unanswered:
    """There is no answer now. `state` is absent, building, behind (the position was not reached in time) or slow."""

    state: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the mirror is: ok, building or absent; `why` when it is not ok. `done` of `expected` rows while building."""

    state: str = "building"
    position: int = 0
    why: str | None = None
    done: int = 0
    expected: int = 0


@dataclass(eq=False, slots=True)
class _Pending:
    answered: threading.Event = field(default_factory=threading.Event)
    told: dict[str, Any] | None = None


class Mirror:
    """The mirror of a home's store. It may be used by several threads, from `begin` until `close`."""

    def __init__(self, settings: Settings, rules: str, *, delay_s: float = DELAY_S) -> None:
        """`rules` is the version of the rules that the store's tables must have been written by."""
        self._store, self._place, self._rules = settings.database, place(settings), rules
        self._delay_s = delay_s
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphsvc-graph", daemon=True)
        self._changed = threading.Condition(threading.RLock())
        # All of these belong to whoever holds `_changed`.
        self._child: Child | None = None
        self._sender: socket.socket | None = None  # never waits
        self._woken = False  # and not heard of since
        self._status = Status()
        self._pending: dict[int, _Pending] = {}
        self._last = 0

    def begin(self) -> None:
        """Begin to follow the store; the process itself begins a little later, or when it is first asked."""
        self._thread.start()

    def close(self) -> None:
        """End the process."""
        self._stopped.set()
        self._wanted.set()
        with self._changed:
            if self._sender is not None:
                with suppress(OSError):
                    self._sender.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join()

    def status(self) -> Status:
        """Return how the mirror was when it told last."""
        with self._changed:
            return self._status

    def wake(self) -> None:
        """Say that something was stored."""
        with self._changed:
            if not self._woken:
                self._woken = self._child is not None
                self._send({"wake": True})

    def ask(
        self,
        name: str,
        parameters: Mapping[str, object],
        *,
        after: int = 0,
        wait_s: float = WAIT_S,
        seconds: float = ANSWER_S,
        most: int = MOST,
    ) -> Rows | Unanswered:
        """Answer a named question from a mirror that has reached the position `after`, or say why that cannot be.

        Raise ValueError for a name or parameters that there are not.
        """
        self._wanted.set()
        missing = self._reached(after, wait_s)
        if missing is not None:
            return missing
        pending = _Pending()
        with self._changed:
            self._last += 1
            number = self._last
            self._pending[number] = pending
        asked = {"name": name, "parameters": dict(parameters), "most": min(most, MOST)}
        self._send({"id": number, **asked, "timeout_ms": int(seconds * 1000)})
        pending.answered.wait(seconds + wait_s)
        with self._changed:
            del self._pending[number]
        told = pending.told
        if told is None:
            status = self.status()
            return Unanswered("slow", "no answer in time") if status.state == "ok" else _unanswered(status)
        if "wrong" in told:
            raise ValueError(told["wrong"])
        if "absent" in told:
            return Unanswered("slow" if told["absent"].startswith("Interrupted") else "absent", told["absent"])
        return Rows(rows=told["rows"], more=told["more"], position=told["position"])

    def _reached(self, after: int, wait_s: float) -> Unanswered | None:
        """Wait for a position; say why it was not reached."""

        def there() -> bool:
            return self._status.state == "ok" and self._status.position >= after

        if not there():
            self.wake()
        with self._changed:
            if self._changed.wait_for(there, wait_s):
                return None
            return _unanswered(self._status)

    def _send(self, told: Mapping[str, object]) -> None:
        """Send a line; what cannot be sent at once is not sent."""
        line = json.dumps(told).encode() + b"\n"
        with self._changed:
            if self._child is None or self._sender is None:
                return
            try:
                sent = self._sender.send(line)
            except OSError:
                return  # it is full: no answer will come in time; or it ended, as the thread finds out
            if sent < len(line):
                self._child.process.kill()

    def _run(self) -> None:
        """Keep a process running."""
        if not installed():
            with self._changed:
                self._status = Status(state="absent", why=NOT_INSTALLED)
            return
        self._wanted.wait(self._delay_s)
        failed = 0
        while not self._stopped.is_set():
            begun = time.monotonic()
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 # a bug here must not end the mirror
                bugs.log("the mirror", error)
            failed = 0 if time.monotonic() - begun > MOST_PAUSE_S else failed + 1
            self._stopped.wait(min(MOST_PAUSE_S, PAUSE_S * 2**failed))

    def _follow(self) -> None:
        """Begin a process and hear what it says, until it ends."""
        one = child.begin("graphsvc.graph.process", str(self._store), str(self._place.folder), self._rules)
        one.connection.settimeout(SILENT_S)
        sender = one.connection.dup()
        sender.settimeout(0)
        with self._changed:
            self._child, self._sender, self._woken = one, sender, False
            if self._stopped.is_set():  # meanwhile: `close` found nothing to end
                with suppress(OSError):
                    sender.shutdown(socket.SHUT_RDWR)
        try:
            with one.connection.makefile("rb") as stream:
                for line in stream:
                    self._heard(json.loads(line))
        except (OSError, ValueError) as error:
            _LOG.warning("the graph's process was ended: %(error)s", {"error": type(error).__name__})
        finally:
            self._over(one)

    def _heard(self, told: dict[str, Any]) -> None:
        with self._changed:
            if "id" in told:
                pending = self._pending.get(told["id"])
                if pending is not None:
                    pending.told = told
                    pending.answered.set()
                return
            before, self._status = self._status, Status(**{"why": None, **told})
            now = self._status
            self._woken = False
            self._changed.notify_all()
        if now.why not in {None, before.why}:
            level = logging.WARNING if now.state == "absent" else logging.INFO
            _LOG.log(level, "the graph is %(state)s: %(why)s", {"state": now.state, "why": now.why})

    def _over(self, one: Child) -> None:
        """Take note that the process ended; a fault may have been that of the file."""
        with self._changed:
            if self._sender is not None:
                self._sender.close()
            self._child = self._sender = None
        one.connection.close()
        try:
            code = one.process.wait(1.0)  # it ended by itself, or closes its files
        except TimeoutExpired:
            code = one.end()
        if code not in _KILLED and self._place.folder.is_dir():
            self._place.doubt.touch(0o600)
            _LOG.warning("the graph's process died: %(code)s", {"code": code})
        with self._changed:
            self._status = Status(state="absent", why="its process ended; another one is begun")
            self._changed.notify_all()
            for pending in self._pending.values():
                pending.answered.set()


@contextmanager
def kept(settings: Settings, rules: str) -> Iterator[Mirror]:
    """Keep a mirror for the block, where no service does."""
    mirror = Mirror(settings, rules, delay_s=0)
    mirror.begin()
    try:
        yield mirror
    finally:
        mirror.close()


def installed() -> bool:
    """Say whether Kuzu is there; it is not imported for that."""
    return importlib.util.find_spec("kuzu") is not None


def _unanswered(status: Status) -> Unanswered:
    if status.state == "ok":
        return Unanswered("behind", f"the graph stands at {status.position}")
    return Unanswered(status.state, status.why or "it is made anew")

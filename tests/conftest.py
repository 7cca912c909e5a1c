"""A home of its own for every test, a fixed clock, and `talk`: a builder of conversations."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import commands
import pytest
from forks import MAIN, Forked, Forks

from graphsvc.client import executor
from graphsvc.client import tool as api_tool
from graphsvc.clock import Clock, utc_text
from graphsvc.config import Settings, from_environment
from graphsvc.memory import capture, rebuild
from graphsvc.model import Event, EventKind
from graphsvc.recall.scope import Asker
from graphsvc.store.database import Connection

ROOT = Path(__file__).resolve().parent.parent
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PROJECT = "/srv/talk/harbor"  # a path that exists on no machine: projects are kept as text then


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """GRAPHSVC_HOME of this test; nothing of the developer's own environment leaks in."""
    for name in ("GRAPHSVC_DURABILITY", "GRAPHSVC_ORIGINS", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRAPHSVC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def settings(home: Path) -> Settings:
    return from_environment({"GRAPHSVC_HOME": str(home)})


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that nothing was told yet; tests begin with a copy of it, for it is copied sooner than made."""
    home = tmp_path_factory.mktemp("blank") / "home"
    rebuild.connect(Settings(home=home)).close()
    return home


@pytest.fixture
def db(settings: Settings, blank: Path) -> Iterator[Connection]:
    if not settings.home.exists():
        shutil.copytree(blank, settings.home)
    with closing(rebuild.connect(settings)) as connection:
        yield connection


@pytest.fixture(scope="session")
def clock() -> Clock:
    """Stands still, so that what was received when is the same in every run."""
    return lambda: NOW


@pytest.fixture
def shared() -> Path:
    """Real transcripts beside the checkout; tests that read them are skipped where they are not."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared beside this checkout")
    return folder


@dataclass(kw_only=True)
class Talk:
    """One conversation at a time, captured as it is told. Every method returns the origin of the event it made.

    Ten seconds pass between events. `session` switches to another session; whatever is not told has a sensible value.
    """

    db: Connection
    clock: Clock
    project: str = PROJECT
    session_id: str = "s1"
    moment: datetime = datetime(2026, 11, 30, 9, tzinfo=UTC)
    told: int = 0
    calls: int = 0
    captured: list[capture.Captured] = field(default_factory=list)

    def session(self, session_id: str) -> Talk:
        self.session_id = session_id
        return self

    def at(self, moment: str) -> Talk:
        """Go on at this time (ISO 8601)."""
        self.moment = datetime.fromisoformat(moment)
        return self

    def event(self, kind: str, body: str, *, origin: str | None = None, **meta: object) -> str:
        """Tell any event; what `meta` holds goes into the event's meta."""
        self.told += 1
        self.moment += timedelta(seconds=10)
        event = Event(
            session_id=self.session_id,
            kind=EventKind(kind),
            origin=origin or f"{self.session_id}:{self.told}",
            body=body,
            ts=utc_text(self.moment),
            project=self.project,
            cwd=self.project,
            meta=meta,
        )
        self.captured.append(capture.capture(self.db, [event], now=self.clock))
        return event.origin

    def user(self, text: str, **meta: object) -> str:
        return self.event("user_message", text, **meta)

    def assistant(self, text: str, **meta: object) -> str:
        return self.event("assistant_message", text, **meta)

    def tool(self, name: str, given: dict[str, object], answer: str = "ok", **meta: object) -> str:
        """Tell a tool call and its result; return the origin of the call."""
        self.calls += 1
        about: dict[str, object] = {"tool_name": name, "tool_use_id": f"call-{self.calls}"}
        if "file_path" in given:
            about["file_path"] = given["file_path"]
        call = self.event("tool_call", json.dumps(given, ensure_ascii=False), **about)
        self.event("tool_result", answer, **about, **{"is_error": False, **meta})
        return call

    def wrote(self, path: str, content: str = "# Notes\n\nText.\n") -> str:
        return self.tool(
            "Write", {"file_path": self.path(path), "content": content}, f"File created at {self.path(path)}"
        )

    def edited(self, path: str, old: str, new: str, **meta: object) -> str:
        given: dict[str, object] = {"file_path": self.path(path), "old_string": old, "new_string": new}
        return self.tool("Edit", given, f"The file {self.path(path)} has been updated", **meta)

    def read(self, path: str, content: str = "text") -> str:
        return self.tool("Read", {"file_path": self.path(path)}, content)

    def ran(self, command: str, answer: str = "") -> str:
        return self.tool("Bash", {"command": command}, answer)

    def failed(self, name: str = "Read", path: str = "docs/missing.md", answer: str = "File does not exist.") -> str:
        return self.tool(name, {"file_path": self.path(path)}, answer, is_error=True)

    def compacted(self, summary: str, **meta: object) -> str:
        return self.event("compact_checkpoint", summary, **{"trigger": "auto", **meta})

    def decided(self, text: str, **meta: object) -> str:
        return self.event("decision", text, **{"action": "record", **meta})

    def superseded(self, old: str, text: str, **meta: object) -> str:
        """Replace the decision whose creating event has the origin `old`."""
        return self.event("decision", text, action="supersede", of=old, **meta)

    def isolated(self, on: bool = True) -> str:
        return self.user("/thread-iso" if on else "/thread-uniso")

    def ended(self) -> str:
        return self.event("session_end", "")

    def path(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.project}/{path}"


@pytest.fixture
def talk(db: Connection, clock: Clock) -> Talk:
    return Talk(db=db, clock=clock)


@pytest.fixture
def tool(settings: Settings) -> Callable[..., dict]:
    """Call query_session_memory in this process: `tool(nav="ls", target="s1", viewer="s2")` returns the parsed line."""

    def tool(*, viewer: str | None = None, **arguments: object) -> dict:
        printed, _ = api_tool.call(arguments, executor.in_process(settings, Asker(session_id=viewer)))
        return json.loads(printed)

    return tool


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Callable[..., commands.Ran]:
    """Run a command in this process: `run("ls", "--json", stdin=b"", cwd=…, env={…})`."""
    return partial(commands.run, home, cwd=tmp_path)


@pytest.fixture
def program(home: Path, tmp_path: Path) -> Callable[..., commands.Ran]:
    """Run the real program in a process of its own, called as `run` is."""
    return partial(commands.program, home, cwd=tmp_path)


@dataclass(frozen=True, slots=True)
class Serving:
    """A service in a process of its own, asked over a real socket."""

    process: Forked
    port: int
    token: str

    def send(self, raw: bytes, read: float = 30) -> bytes:
        """Send bytes on a connection of their own and return all that comes back until the service closes it."""
        with closing(socket.create_connection(("127.0.0.1", self.port), timeout=read)) as connection:
            with suppress(ConnectionError):  # what is refused early is not read to its end
                connection.sendall(raw)
            parts = []
            with suppress(ConnectionError):
                while part := connection.recv(65_536):
                    parts.append(part)
            return b"".join(parts)

    def post(self, body: bytes, headers: dict[str, str] | None = None, path: str = "/graphql") -> Answer:
        """Send a body as the owner; `headers` replace or add."""
        about = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}", **(headers or {})}
        return self.ask("POST", path, body, about)

    def ask(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
        """Send any request."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            with suppress(ConnectionError):
                connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    def query(self, document: str, headers: dict[str, str] | None = None, **variables: object) -> Answer:
        """Ask a document as the owner."""
        return self.post(json.dumps({"query": document, "variables": variables}).encode(), headers)

    def end(self) -> str:
        """End the service and return what it wrote to standard error."""
        self.process.terminate()
        self.process.wait(30)
        return self.process.stderr.read().decode()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered with."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The machine-readable code of the first error."""
        errors = self.json.get("errors") or [{}]
        return errors[0].get("extensions", {}).get("code")


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """What starts processes of the program, soon."""
    with closing(Forks()) as forks:
        yield forks


@pytest.fixture
def serving(home: Path, tmp_path: Path, forks: Forks) -> Iterator[Callable[..., Serving]]:
    """Start the program's service: `serving("--log", "file", env={"GRAPHSVC_LOG": "info"})`.

    `before` is what of Python the process does first.
    """
    with ExitStack() as stack:

        def serving(*arguments: str, env: dict[str, str] | None = None, before: str = ""):
            process = forks.start(
                *("serve", "--port", "0", "--json", *arguments),
                env={**os.environ, "GRAPHSVC_HOME": str(home), **(env or {})},
                cwd=tmp_path,
                program=before + MAIN,
            )
            stack.enter_context(closing(process))
            said = process.stdout.readline()
            assert said, process.stderr.read().decode()
            ready = json.loads(said)
            token = Path(ready["token_file"]).read_text().strip()
            return Serving(process, int(ready["url"].rsplit(":", 1)[1]), token)

        yield serving

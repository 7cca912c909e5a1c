"""Made-up histories, homes to keep them in, and what it means that two homes hold the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from click.testing import CliRunner
from hypothesis import strategies as st

from graphsvc.cli.main import program
from graphsvc.clock import utc_text
from graphsvc.config import Settings
from graphsvc.memory import capture, rebuild
from graphsvc.model import Event, EventKind
from graphsvc.store import database
from graphsvc.store.rows import tables

START = datetime(2026, 11, 30, 9, tzinfo=UTC)
TOKEN = "ghp_" + "a1B2" * 9
TEXTS = (
    "Implement docs/a.md, then see src/b.py",
    "We decided: sessions use JWT. Let's go with tea.",
    "决定改用服务端会话。就用 docs/a.md",
    "a\ud800b \0 \u2028 👩‍👩‍👧‍👦 \ufeff",
    "half \ud83d" + "\ude00 of a character",
    f"the key is {TOKEN}, <private>my doctor</private> and password=hunter2hunter2",
    "x" * 9000 + "决",
    "",
)
PATHS = ("docs/a.md", "src/b.py", "docs/说明.md")
# The second one reads like a secret together with what follows it in an origin of ours.
SESSIONS = ("s1", "password", "会话3")
STATES = ("pending", "completed", "in_progress")
Step = tuple[str, int, int]  # what, in which session, and a number to choose with


@dataclass
class Home:
    """A home of its own, used through the command line and looked into by its tables."""

    path: Path

    def run(self, *arguments: str, stdin: bytes = b"", code: int | None = 0) -> Ran:
        got = CliRunner(env={"GRAPHSVC_HOME": str(self.path)}).invoke(program, arguments, input=stdin)
        assert got.exception is None or isinstance(got.exception, SystemExit), repr(got.exception)
        assert code is None or got.exit_code == code, got.stderr
        return Ran(got.exit_code, got.stdout_bytes, got.stderr)

    def export(self, *options: str) -> bytes:
        return self.run("export", *options).out

    def capture(self, log: bytes) -> dict:
        """Capture lines; all must be taken or known."""
        return json.loads(self.run("capture", "--json", stdin=log).out)

    @property
    def settings(self) -> Settings:
        return Settings(home=self.path)

    def tell(self, events: Iterable[Event], *, history: bool = True) -> None:
        """Store events as an importer does, each as it comes."""
        with closing(rebuild.connect(self.settings)) as db:
            for number, event in enumerate(events):
                moment = START + timedelta(days=1, seconds=number)
                capture.capture(db, [event], now=lambda moment=moment: moment, history=history)

    def ledger(self) -> list[dict]:
        """Return every row of the ledger, with the names that keys stand for and the body whole."""
        return self.rows(
            "SELECT e.id, p.key AS project, s.host_id AS session, e.seq, e.kind, e.origin, e.ts, e.at, e.received_at,"
            " e.actor, e.isolated, e.body, e.meta, b.body AS packed, b.meta AS packed_meta FROM events e"
            " JOIN projects p ON p.id = e.project JOIN sessions s ON s.id = e.session"
            " LEFT JOIN bodies b ON b.event = e.id ORDER BY e.id"
        )

    def tables(self) -> dict[str, list]:
        """Return what every projection holds."""
        return {table: sorted(map(repr, self.rows(f"SELECT * FROM {table}"))) for table in tables()}

    def holds(self) -> list:
        """Return the differences between the tables and a replay: none."""
        return rebuild.check(self.settings, lambda *_: None)

    def content(self) -> set[tuple]:
        """Return the set of events, whatever their order."""
        return {
            tuple(repr(row[name]) for name in ("project", "origin", "kind", "ts", "actor", "body", "packed", "meta"))
            for row in self.ledger()
        }

    def said(self) -> set[tuple]:
        """Return the set of events apart from who came first: no conflict marks, and not what only the first says."""
        return {
            (row["project"], re.sub("#[0-9a-f]{8}", "", row["origin"]), row["kind"], repr(row["body"] or row["packed"]))
            for row in self.ledger()
        }

    def rows(self, query: str) -> list[dict]:
        with closing(database.open_file(self.settings.database)) as db:
            return [dict(row) for row in db.execute(query)]


@dataclass(frozen=True)
class Ran:
    code: int
    out: bytes
    err: str


def equal(one: Home, other: Home) -> None:
    """Assert that two homes hold the same: every row of the ledger, every row of every projection, and rightly."""
    assert other.ledger() == one.ledger()
    assert other.tables() == one.tables()
    assert one.holds() == other.holds() == []


@dataclass
class Story:
    """Turns steps into events. The names are such that two stories of one machine each do not meet by accident."""

    projects: int = 1
    machine: str = ""
    folder: str = "/srv/story"

    def __post_init__(self) -> None:
        self.told: list[Event] = []

    def tell(self, steps: Iterable[Step]) -> list[Event]:
        for what, session, choice in steps:
            DOES[what](self, session, choice)
        return self.told

    def say(self, session: int, choice: int, kind: str = "user_message", **more: object) -> None:
        self.add(session, kind, text(choice), **more)

    def write(self, session: int, choice: int) -> None:
        self.tool(session, "Write", {"file_path": self.path(choice), "content": f"# T{choice}\n\nb.py {text(choice)}"})

    def edit(self, session: int, choice: int) -> None:
        self.tool(session, "Edit", {"file_path": self.path(choice), "old_string": "b.py", "new_string": "src/b.py"})

    def list_todos(self, session: int, choice: int) -> None:
        todos = [{"content": f"todo {n}", "status": STATES[(choice + n) % 3]} for n in range(choice % 4)]
        self.tool(session, "TodoWrite", {"todos": todos})

    def escape(self, session: int, choice: int) -> None:
        """Write a secret so that only a reader of the JSON finds it."""
        name = "".join(f"\\u{ord(char):04x}" for char in f"{TOKEN} <private>mine</private>")
        given = f'{{"todos": [{{"content": "{name}"}}], "file_path": "/srv/{name}.md", "content": "# T"}}'
        self.tool(session, ("TodoWrite", "Write")[choice % 2], given)

    def move(self, session: int, choice: int, kind: str, action: str) -> None:
        old = [event.origin for event in self.told if event.kind == kind]
        self.say(session, choice, kind, action=action, of=old[choice % len(old)] if old else "nowhere")

    def compact(self, session: int, choice: int) -> None:
        self.say(session, choice, "compact_checkpoint", replaces=self.mine(session)[-3:])

    def publish(self, session: int, choice: int) -> None:
        if mine := self.mine(session):
            self.add(session, "publish", "", of=[mine[choice % len(mine)]])

    def repeat(self, choice: int, **other: object) -> None:
        """Tell again what was told, perhaps with another content, or in another session."""
        if self.told:
            earlier = self.told[choice % len(self.told)]
            body = f"{earlier.body}{other.pop('also', '')}"
            self.told.append(replace(earlier, body=body, **other))

    def mine(self, session: int) -> list[str]:
        return [event.origin for event in self.told if event.session_id == self._session(session)]

    def path(self, choice: int) -> str:
        return f"{self.folder}/{PATHS[choice % len(PATHS)]}"

    def _session(self, number: int) -> str:
        return self.machine + SESSIONS[number]

    def _project(self, session: int) -> str:
        return f"{self.folder}{session % self.projects or ''}"

    def add(self, session: int, kind: str, body: str, *, actor: str | None = None, **meta: object) -> None:
        number = len(self.told)
        ts = meta.pop("ts", utc_text(START + timedelta(seconds=(number * 37) % 100)))
        self.told.append(
            Event(
                session_id=self._session(session),
                kind=EventKind(kind),
                origin=f"{self.machine}{kind}:Xy7Kq9{number}",
                body=body,
                ts=ts if isinstance(ts, str) else None,
                project=self._project(session),
                cwd=self.folder,
                actor=actor,
                meta=meta,
            )
        )

    def tool(self, session: int, name: str, given: dict[str, object] | str, answer: str = "ok") -> None:
        about = {"tool_name": name, "tool_use_id": f"{self.machine}call-{len(self.told)}"}
        self.add(session, "tool_call", given if isinstance(given, str) else json.dumps(given), **about)
        self.add(session, "tool_result", answer, **about, is_error=False)


def text(choice: int) -> str:
    return TEXTS[choice % len(TEXTS)]


# What can happen next, by name.
DOES: dict[str, Callable[[Story, int, int], None]] = {
    "user": lambda story, session, n: story.say(session, n),
    "assistant": lambda story, session, n: story.say(session, n, "assistant_message"),
    "helper": lambda story, session, n: story.say(session, n, "assistant_message", actor="helper"),
    "timeless": lambda story, session, n: story.say(session, n, ts=None),
    "started": lambda story, session, n: story.say(
        session, n, "session_start", parent=story.machine + SESSIONS[n % 3], relation="fork", host="dsh"
    ),
    "ended": lambda story, session, n: story.say(session, n, "session_end"),
    "raw": lambda story, session, n: story.say(session, n, "raw", pull_request=f"https://example.org/a/pull/{n}"),
    "odd": lambda story, session, n: story.say(
        session, n, "tool_result", tool_name=5, is_error="no", secret_token=TOKEN, nested=[{"a": [text(n), 1.5, None]}]
    ),
    "wrote": Story.write,
    "edited": Story.edit,
    "escaped": Story.escape,
    "todos": Story.list_todos,
    "read": lambda story, session, n: story.tool(session, "Read", {"file_path": story.path(n)}, text(n)),
    "commit": lambda story, session, _: story.tool(
        session, "Bash", {"command": "git add -A && git commit -m x"}, "[main 1a2b3c4] x"
    ),
    "question": lambda story, session, n: story.tool(session, "AskUserQuestion", {"questions": []}, text(n) or "yes"),
    "decided": lambda story, session, n: story.say(
        session, n, "decision", action="record", evidence=story.mine(session)[-1:]
    ),
    "superseded": lambda story, session, n: story.move(session, n, "decision", "supersede"),
    "goal": lambda story, session, n: story.say(session, n, "goal", action="record", key=f"g{n}"),
    "completed": lambda story, session, n: story.move(session, n, "goal", "complete"),
    "refused": lambda story, session, n: story.say(session, n, "todo", action="finish", key="unknown"),
    "compacted": Story.compact,
    "on": lambda story, session, _: story.add(session, "user_message", "/thread-iso"),
    "off": lambda story, session, _: story.add(session, "user_message", "解除隔离"),
    "publish": Story.publish,
    "again": lambda story, _, n: story.repeat(n),
    "conflict": lambda story, _, n: story.repeat(n, also=f"{story.machine}{n % 2}"),
    "copy": lambda story, session, n: story.repeat(n, session_id=story.machine + SESSIONS[session]),
}
STEPS = tuple(DOES)
QUIET = tuple(step for step in STEPS if step not in {"on", "off", "publish"})


def histories(steps: Iterable[str] = STEPS, most: int = 40) -> st.SearchStrategy[list[Step]]:
    """Make up histories of up to so many steps."""
    step = st.tuples(st.sampled_from(list(steps)), st.integers(0, 2), st.integers(0, 40))
    return st.lists(step, min_size=1, max_size=most)

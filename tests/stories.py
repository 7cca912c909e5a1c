"""Random histories of several sessions and projects, told twice: as they are, and with blanks for what is isolated.

The second time blanks stand in the place of whatever others may not learn: rows of no content, in the same session, at
the same positions and times. So what is accepted to show (the marker, the constant note, gaps in ids, positions, sizes,
timing) is the same in both, and the answers are compared as they are.

Of one project are `open`, `late` (which began from others and holds some of what they share), `closed` (which isolates
itself, and publishes a little) and `heir` (which copies from `closed` what is isolated, too); `far` is of another one.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graphsvc.audit.asking import Place
from graphsvc.audit.reads import Pool
from graphsvc.clock import utc_text
from graphsvc.config import Settings
from graphsvc.graph.mirror import kept
from graphsvc.memory import capture, rebuild
from graphsvc.memory.apply import VERSION
from graphsvc.model import Event, EventKind
from graphsvc.recall.scope import Asker
from graphsvc.store import assets as files
from graphsvc.store.database import Connection

HERE, THERE = "/srv/talk/harbor", "/srv/talk/island"  # on no machine
# To all of these what is isolated is closed.
VIEWERS = {
    "the owner": Asker(project="all"),
    "a session that shares rows": Asker(session_id="late"),
    "a session of another project": Asker(session_id="far"),
    "the owner, one project": Asker(project=HERE),
    "a session beside": Asker(session_id="open"),
    "a viewer of one project": Asker(owner=False, project=HERE),
}
ITSELF = Asker(session_id="closed")
SECRET = re.compile(r"zs[0-9]+q")
PATHS = ("docs/plan.md", "docs/设计.md", "src/login.py", "README.md")
WORDS = ("token", "ferry", "渡轮", "rounding", "harbor", "refresh", "会话", "cursor", "ledger", "窗口")
_TALK = ("user_message", "assistant_message")
OPENINGS = ("", "Write the ", "We decided: use ", "决定改用", "Fix the ", "看看 ")


@dataclass(frozen=True, slots=True)
class Step:
    """One event as a host hands it over. `secret`: others must not learn what it holds."""

    event: Event
    secret: bool


@dataclass(slots=True)
class Story:
    """A random conversation of several sessions and projects, some of it isolated."""

    chance: random.Random
    steps: list[Step] = field(default_factory=list)
    moment: datetime = datetime(2026, 11, 30, 9, tzinfo=UTC)
    isolated: set[str] = field(default_factory=set)
    texts: dict[tuple[str, bool, str], str] = field(default_factory=dict)  # what a session wrote, isolated or not
    calls: int = 0
    told: int = 0  # isolated texts

    def tell(self, session: str, kind: str, body: str, *, origin: str | None = None, **meta: object) -> Event:
        self.moment += timedelta(seconds=self.chance.choice((0, 5, 10)))
        event = Event(
            session_id=session,
            kind=EventKind(kind),
            origin=origin or f"{session}:{len(self.steps)}",
            body=body,
            ts=utc_text(self.moment) if self.chance.random() < 0.95 else None,
            project=THERE if session == "far" else HERE,
            meta=meta,
        )
        self.steps.append(Step(event, session in self.isolated and kind != "isolation"))
        return event

    def switch(self, session: str) -> None:
        on = session not in self.isolated
        (self.isolated.add if on else self.isolated.discard)(session)
        self.tell(session, "isolation", "on" if on else "off", action="on" if on else "off")
        if not on and self.chance.random() < 0.5:
            # A host names a conversation after all of it, and says so when others may hear it.
            self.tell(session, "user_message", "go on", title=f"title of {self.words(session)}")
            self.steps[-1] = replace(self.steps[-1], secret=False)

    def words(self, session: str) -> str:
        some = " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 5)))
        if session not in self.isolated:
            return some
        self.told += 1
        return f"{some} zzsecret zs{self.told}q {self.chance.choice(WORDS)}xx"

    def use(self, session: str, name: str, given: dict[str, object], answer: str, **meta: object) -> None:
        self.calls += 1
        about: dict[str, object] = {"tool_name": name, "tool_use_id": f"call-{self.calls}"}
        if "file_path" in given:
            about["file_path"] = given["file_path"]
        self.tell(session, "tool_call", json.dumps(given, ensure_ascii=False), **about)
        self.tell(session, "tool_result", answer, **about, **{"is_error": False, **meta})


def _said(story: Story, session: str) -> None:
    kind = story.chance.choice(("user_message", "assistant_message"))
    story.tell(session, kind, story.chance.choice(OPENINGS) + story.words(session))


def _wrote(story: Story, session: str) -> None:
    path, links = story.chance.choice(PATHS), story.chance.sample(PATHS, story.chance.randint(0, 2))
    text = f"# {story.words(session)}\n\n{story.words(session)}\n" + "".join(f"see `{one}`\n" for one in links)
    story.texts[session, session in story.isolated, path] = text
    story.use(session, "Write", {"file_path": f"{_root(session)}/{path}", "content": text}, "File created")


def _declared(story: Story, session: str) -> None:
    kind = story.chance.choice(("document", "report", "code", "other"))
    story.tell(session, "asset", story.chance.choice(PATHS))
    step = story.steps[-1]
    story.steps[-1] = replace(step, event=replace(step.event, meta={"action": "declare", "kind": kind}))


def _edited(story: Story, session: str) -> None:
    path = story.chance.choice(PATHS)
    old = story.texts.get((session, session in story.isolated, path), "# nothing").splitlines()[0]
    new = f"# {story.words(session)}"
    given: dict[str, object] = {"file_path": f"{_root(session)}/{path}", "old_string": old, "new_string": new}
    story.use(session, "Edit", given, "updated", is_error=story.chance.random() < 0.1)


def _read(story: Story, session: str) -> None:
    path = story.chance.choice(PATHS)
    story.use(session, "Read", {"file_path": f"{_root(session)}/{path}"}, story.words(session))


def _committed(story: Story, session: str) -> None:
    subject = story.words(session)
    hash_ = f"{story.chance.getrandbits(28):07x}"
    story.use(session, "Bash", {"command": f"git add -A && git commit -m '{subject}'"}, f"[main {hash_}] {subject}")


def _decided(story: Story, session: str) -> None:
    text = f"{story.words(session)} in {story.chance.choice(PATHS)}"
    # In the open nobody speaks of what is isolated: it is no secret then.
    open_ = [one for one in story.steps if not one.secret]
    known = [
        one.event.origin
        for one in open_
        if one.event.kind == "decision" and _root(one.event.session_id) == _root(session)
    ]
    if known and story.chance.random() < 0.5:
        story.tell(session, "decision", text, action="supersede", of=story.chance.choice(known))
    elif story.chance.random() < 0.5:
        evidence = [story.chance.choice(story.steps).event.origin]
        story.tell(session, "decision", text, action="record", evidence=evidence)
    else:
        scope = story.chance.choice(("session", "project", "global"))
        story.tell(session, "decision", text, action="record", scope=scope)


def _recorded(story: Story, session: str) -> None:
    given: dict[str, object] = {"text": story.words(session)}
    if story.chance.random() < 0.5:
        given["supersedes_id"] = f"decision-{story.chance.randint(1, 3 * len(story.steps) + 1)}"
    story.use(session, "record_decision", given, "recorded")


def _preferred(story: Story, session: str) -> None:
    kind = story.chance.choice(("preference", "correction"))
    if story.chance.random() < 0.5:
        story.tell(session, "feedback", story.words(session), action="record")
        step = story.steps[-1]
        story.steps[-1] = replace(step, event=replace(step.event, meta={"action": "record", "kind": kind}))
    else:
        story.tell(session, "candidate", story.words(session), action="record")


def _planned(story: Story, session: str) -> None:
    states = ("pending", "in_progress", "completed")
    listed = [
        {"content": word, "status": story.chance.choice(states)}
        for word in story.chance.sample(WORDS, story.chance.randint(0, 4))
    ]
    story.use(session, "TodoWrite", {"todos": listed}, "ok")


def _compacted(story: Story, session: str) -> None:
    own = [step.event.origin for step in story.steps if step.event.session_id == session]
    replaces = story.chance.sample(own, min(len(own), 3))
    story.tell(session, "compact_checkpoint", story.words(session), trigger="auto", replaces=replaces)


def _forked(story: Story, session: str) -> None:
    """The session `late` starts from this one: it says so, and copies some of its events."""
    if session not in {"open", "closed"}:
        return
    story.tell("late", "session_start", "", parent=session, relation=story.chance.choice(("fork", "resume")))
    own = [step for step in story.steps if step.event.session_id == session and step.event.kind == "user_message"]
    shared = [step for step in own if not step.secret]
    for step in story.chance.sample(shared, min(len(shared), 3)):
        copy = replace(step.event, session_id="late")
        story.steps.append(Step(copy, "late" in story.isolated))


def _inherited(story: Story, _: str) -> None:
    """The session `heir` copies events of `closed`, isolated ones too: both hold those then, and nobody else."""
    own = [step for step in story.steps if step.event.session_id == "closed" and step.event.kind in _TALK]
    for step in story.chance.sample(own, min(len(own), 3)):
        story.steps.append(Step(replace(step.event, session_id="heir"), step.secret))


def _published(story: Story, _: str) -> None:
    """The session `closed` shows some of what it said or decided; what its files hold stays where it is."""
    moved = max((place for place, step in enumerate(story.steps) if step.secret and _moves(step.event)), default=-1)
    own = [
        place
        for place, step in enumerate(story.steps)
        if step.secret
        and step.event.session_id == "closed"
        and (step.event.kind in _TALK or (step.event.kind == "decision" and place > moved))
        and "evidence" not in step.event.meta
    ]
    shown = {story.steps[place].event.origin for place in story.chance.sample(own, min(len(own), 2))}
    if shown:
        # It was told by whoever copied it, too.
        story.steps = [replace(step, secret=False) if step.event.origin in shown else step for step in story.steps]
        story.tell("closed", "publish", "", of=sorted(shown))
        story.steps[-1] = replace(story.steps[-1], secret=False)


def _moves(event: Event) -> bool:
    """Say whether an event may move a record of an older one."""
    return event.meta.get("tool_name") == "record_decision"


def _drawn(story: Story, session: str) -> None:
    """Somebody draws an edge between two nodes by hand, or ends it."""
    known = [step.event for step in story.steps if step.event.kind == "decision" and not step.secret]
    said = [step.event for step in story.steps if step.event.kind in _TALK and not step.secret]
    near = [one for one in known if _root(one.session_id) == _root(session)]
    beside = [one for one in said if _root(one.session_id) == _root(session)]
    if near and beside:
        one, other = story.chance.choice(near), story.chance.choice(beside)
        ends = {"source": {"type": "decision", "of": one.origin}, "target": {"type": "event", "of": other.origin}}
        story.tell(session, "edge", "", action=story.chance.choice(("add", "add", "retract")), type="evidence", **ends)


def _finished(story: Story, session: str) -> None:
    story.tell(session, "session_end", "")


MOVES: tuple[Callable[[Story, str], None], ...] = (
    *(_said,) * 4, *(_wrote,) * 3, _declared, _edited, _edited, _read, _read, _committed, _committed, _decided,
    _decided, _recorded, _planned, _planned, _compacted, _forked, _finished, _inherited, _inherited, _published,
    _drawn, _preferred,
)  # fmt: skip


def _root(session: str) -> str:
    return THERE if session == "far" else HERE


def tell(seed: int) -> list[Step]:
    story = Story(dice(seed))
    for session in ("open", "late", "far", "closed", "heir"):
        story.tell(session, "user_message", f"{session} begins", host="host")
    if seed % 4:
        story.switch("closed")
    for number in range(story.chance.randint(20, 35)):
        session = story.chance.choice(("open", "closed", "closed", "closed", "late", "far"))
        if number == 8 and not story.isolated:
            story.switch("closed")
        if session == "closed" and story.chance.random() < 0.15:
            story.switch(session)
        story.chance.choice(MOVES)(story, session)
    if "closed" not in story.isolated:
        story.switch("closed")
        _said(story, "closed")
    return story.steps


@dataclass(frozen=True, slots=True)
class World(Place):
    """One telling of a story: its store, and the id of the newest event after each step."""

    rows: list[int] = field(default_factory=list)


def _as_told(db: Connection, steps: list[Step]) -> World:
    return World(db, rows=[_capture(db, step.event) for step in steps])


def _with_blanks(db: Connection, steps: list[Step], told: World) -> World:
    """Tell the same, with as many blanks as there were rows in the place of what is secret."""
    rows, before = [], 0
    for step, after in zip(steps, told.rows, strict=True):
        event = step.event
        if not step.secret:
            title = {"title": "title of nothing"} if "title" in event.meta else {}
            rows.append(_capture(db, replace(event, meta={**event.meta, **title})))
        else:
            for number in range(after - before):
                origin = f"{event.origin}:{number}" if number else event.origin
                _capture(db, replace(event, kind=EventKind.RAW, origin=origin, body="", meta={}))
            rows.append(after)
        before = after
    return World(db, rows=rows)


@contextmanager
def worlds(steps: list[Step], folder: Path, *, mirrored: bool = False) -> Iterator[tuple[World, World]]:
    """Tell a story twice, in two homes below a folder, with a mirror of the graph or without: it takes a process."""
    homes = [Settings(home=folder / name / "home") for name in ("told", "blank")]
    with ExitStack() as stack:
        here, there = (stack.enter_context(closing(rebuild.connect(one))) for one in homes)
        told = _as_told(here, steps)
        blank = _with_blanks(there, steps, told)
        if mirrored:
            mirrors = [stack.enter_context(kept(one, VERSION)) for one in homes]
            told, blank = (replace(world, mirror=one) for world, one in zip((told, blank), mirrors, strict=True))
        yield told, blank


def dice(seed: int) -> random.Random:
    """Return what chooses in a story, and what is asked of it."""
    return random.Random(seed)  # noqa: S311 # nothing to guess


def secrets(steps: list[Step]) -> list[str]:
    """List the isolated texts that nobody else was told."""
    held: dict[bool, set[str]] = {True: set(), False: set()}
    for step in steps:
        title = str(step.event.meta.get("title", ""))
        held[True] |= set(SECRET.findall(title))
        held[step.secret] |= set(SECRET.findall(f"{step.event.body} {step.event.meta}".replace(title or "\0", "")))
    return sorted(held[True] - held[False])


def pool(world: World) -> Pool:
    """Return what can be asked for: every id that a story as told gives, whether it is isolated or not."""
    db = world.db
    events = [f"event-{row[0]}" for row in db.execute("SELECT id FROM events ORDER BY id")]
    records = [f"{row[0]}-{row[1]}" for row in db.execute("SELECT type, id FROM records ORDER BY id")]
    assets = [f"asset-{row[0]}" for row in db.execute("SELECT event FROM asset_versions ORDER BY event")]
    sessions = [row[0] for row in db.execute("SELECT host_id FROM sessions ORDER BY id")]
    moments = [row[0] for row in db.execute("SELECT DISTINCT at FROM events ORDER BY at")]
    written = [
        (row[0], files.texts(db, [row[1]])[row[1]])
        for row in db.execute(
            "SELECT a.path, v.event FROM asset_versions v JOIN knowledge_assets a ON a.id = v.asset"
            " WHERE v.hash IS NOT NULL ORDER BY v.event"
        ).fetchall()
    ]
    beyond = [f"{kind}-{len(events) + 9}" for kind in ("event", "asset", "decision", "todo", "goal", "candidate")]
    return Pool(
        ids=(
            *events,
            *records,
            *assets,
            *beyond,
            *(f"session-{one}" for one in sessions),
            *PATHS,
            "plan.md",
            "5",
            "13",
        ),
        sessions=tuple(sessions),
        projects=(HERE, THERE),
        moments=tuple(moments),
        paths=(*PATHS, "nowhere.md"),
        words=(*WORDS, "zzsecret", "zzsecre", f"{WORDS[0]}xx", "docs/plan.md", "!", "plan"),
        texts=tuple(written) or (("README.md", "# one\n"),),
        position=world.rows[-1],
    )


def _capture(db: Connection, event: Event) -> int:
    return capture.capture(db, [event], now=lambda: datetime(2026, 11, 30, 12, tzinfo=UTC)).position

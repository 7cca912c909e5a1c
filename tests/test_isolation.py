"""What others learn of isolated rows: nothing. Stories are told twice, and every read must answer the same.

The second time blanks stand in the place of whatever was isolated: rows of no content, in the same session, at the same
positions and times. So what is accepted to show (the marker, the constant note, gaps in ids, positions, sizes, timing)
is the same in both, and the answers are compared as they are.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest
import stores
from graphql import (
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLUnionType,
    build_schema,
    get_named_type,
)

from graphsvc import resources
from graphsvc.client import tool
from graphsvc.clock import utc_text
from graphsvc.config import Settings
from graphsvc.graph.mirror import Mirror, kept
from graphsvc.memory import capture, export, rebuild
from graphsvc.memory.apply import VERSION
from graphsvc.model import Event, EventKind
from graphsvc.recall import scope
from graphsvc.recall.scope import Asker
from graphsvc.store import assets as files
from graphsvc.store.database import Connection

STORIES = 12
MIRRORED = 6  # of so many stories one has a mirror
HERE, THERE = "/srv/talk/harbor", "/srv/talk/island"  # on no machine
SDL = build_schema(resources.text("schema/graphsvc.graphql"))
VIEWERS = (
    Asker(session_id="open"),
    Asker(session_id="late"),
    Asker(session_id="far"),
    Asker(project="all"),
    Asker(project=HERE),
)
PATHS = ("docs/plan.md", "docs/设计.md", "src/login.py", "README.md")
WORDS = ("token", "ferry", "渡轮", "rounding", "harbor", "refresh", "会话", "cursor", "ledger", "窗口")
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
        return f"{some} zzsecret {self.chance.choice(WORDS)}xx" if session in self.isolated else some

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
        story.tell(session, "decision", text, action="record")


def _recorded(story: Story, session: str) -> None:
    given: dict[str, object] = {"text": story.words(session)}
    if story.chance.random() < 0.5:
        given["supersedes_id"] = f"decision-{story.chance.randint(1, 3 * len(story.steps) + 1)}"
    story.use(session, "record_decision", given, "recorded")


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
    if session in {"late", "far"}:
        return
    story.tell("late", "session_start", "", parent=session, relation=story.chance.choice(("fork", "resume")))
    own = [step for step in story.steps if step.event.session_id == session and step.event.kind == "user_message"]
    shared = [step for step in own if not step.secret]
    for step in story.chance.sample(shared, min(len(shared), 3)):
        copy = replace(step.event, session_id="late")
        story.steps.append(Step(copy, "late" in story.isolated))


def _finished(story: Story, session: str) -> None:
    story.tell(session, "session_end", "")


MOVES: tuple[Callable[[Story, str], None], ...] = (
    *(_said,) * 4, *(_wrote,) * 3, _declared, _edited, _edited, _read, _read, _committed, _committed, _decided,
    _decided, _recorded, _planned, _planned, _compacted, _forked, _finished,
)  # fmt: skip


def _root(session: str) -> str:
    return THERE if session == "far" else HERE


def _told(seed: int) -> list[Step]:
    story = Story(random.Random(seed))  # noqa: S311 # a story, no secret
    for session in ("open", "late", "far", "closed"):
        story.tell(session, "user_message", f"{session} begins", host="host")
    if seed % 2:
        story.switch("closed")
    for _ in range(story.chance.randint(20, 35)):
        session = story.chance.choice(("open", "closed", "closed", "closed", "late", "far"))
        if session == "closed" and story.chance.random() < 0.15:
            story.switch(session)
        story.chance.choice(MOVES)(story, session)
    if "closed" not in story.isolated:
        story.switch("closed")
        _said(story, "closed")
    return story.steps


@dataclass(frozen=True, slots=True)
class World:
    """One telling of a story: its store, and the id of the newest event after each step."""

    db: Connection
    rows: list[int]
    mirror: Mirror | None = None  # of some: it takes a process


def _as_told(db: Connection, steps: list[Step]) -> World:
    return World(db, [_capture(db, step.event) for step in steps])


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
    return World(db, rows)


def _capture(db: Connection, event: Event) -> int:
    return capture.capture(db, [event], now=lambda: datetime(2026, 11, 30, 12, tzinfo=UTC)).position


@pytest.fixture(params=range(STORIES))
def worlds(request, tmp_path) -> Iterator[tuple[World, World]]:
    steps = _told(request.param)
    homes = [Settings(home=tmp_path / name) for name in ("told", "blank")]
    with ExitStack() as stack:
        here, there = (stack.enter_context(closing(rebuild.connect(one))) for one in homes)
        told = _as_told(here, steps)
        blank = _with_blanks(there, steps, told)
        if request.param % MIRRORED == 0:
            mirrors = [stack.enter_context(kept(one, VERSION)) for one in homes]
            told, blank = (replace(world, mirror=one) for world, one in zip((told, blank), mirrors, strict=True))
        yield told, blank


@dataclass(frozen=True, slots=True)
class Targets:
    """What can be asked for: every id that the story as told gives, whether it is isolated or not."""

    ids: tuple[str, ...]
    sessions: tuple[str, ...]
    moments: tuple[str, ...]
    texts: tuple[tuple[str, str], ...] = ()  # that were written, with their paths


def _targets(world: World) -> Targets:
    db = world.db
    events = [f"event-{row[0]}" for row in db.execute("SELECT id FROM events ORDER BY id")]
    records = [f"{row[0]}-{row[1]}" for row in db.execute("SELECT type, id FROM records ORDER BY id")]
    assets = [f"asset-{row[0]}" for row in db.execute("SELECT id FROM knowledge_assets ORDER BY id")]
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
    ids = (*events, *records, *assets, *beyond, *(f"session-{one}" for one in sessions), *PATHS, "plan.md", "5", "13")
    return Targets(ids, tuple(sessions), tuple(moments), tuple(written))


Call = tuple[str, Mapping[str, object]]  # document or name of it, variables


def _navs(targets: Targets, chance: random.Random, thorough: bool) -> Iterator[Call]:
    for target in targets.ids if thorough else chance.sample(targets.ids, 8):
        yield "tool", {"nav": "cd", "target": target, "limit": 50, "token_budget": 20_000}
        if chance.random() < 0.25:
            yield "tool", {"nav": chance.choice(("ls", "cat")), "target": target, "limit": 50}
    for session in targets.sessions:
        yield "tool", {"nav": "cat", "target": session, "token_budget": 50_000}
        yield "tool", {"nav": "ls", "session_id": session, "limit": 50, "token_budget": 20_000}
    yield "tool", {"nav": "ls"}
    yield "tool", {"nav": "ls", "target": "session-open", "limit": 2}
    for word in chance.sample(WORDS, 2):
        yield "tool", {"nav": "grep", "query": word, **_filters(targets, chance)}
    yield "tool", {"nav": "grep", "query": "plan"}


def _searches(targets: Targets, chance: random.Random, _: bool) -> Iterator[Call]:
    for word in (*chance.sample(WORDS, 3), "zzsecret", "zzsecre", f"{WORDS[0]}xx", "docs/plan.md", "!"):
        yield "tool", {"query": word, **_filters(targets, chance)}
        yield "tool", {"query": word, "count_only": True}
    for kind in ("decision", "todo", "asset", "candidate", "goal"):
        yield "tool", {"kind": kind, "limit": 50, "token_budget": 20_000}
    yield "tool", {"limit": chance.randint(1, 9), **_filters(targets, chance)}
    yield "tool", {"limit": 50, "token_budget": 50_000, "project": "all"}
    yield "tool", {"count_only": True, "session_id": chance.choice(targets.sessions)}


def _filters(targets: Targets, chance: random.Random) -> dict[str, object]:
    every: dict[str, object] = {
        "kind": chance.choice(("user_message", "tool_call", "decision", "asset", "todo")),
        "session_id": chance.choice(targets.sessions),
        "since": chance.choice(targets.moments),
        "until": chance.choice(targets.moments),
        "order": chance.choice(("asc", "desc")),
        "limit": chance.randint(1, 8),
    }
    return {name: value for name, value in every.items() if chance.random() < 0.25}


def _nodes(targets: Targets, chance: random.Random, thorough: bool) -> Iterator[Call]:
    types = {one.name.lower(): one for one in SDL.get_possible_types(SDL.type_map["Node"])}
    for target in chance.sample(targets.ids, 20 if thorough else 4):
        kind = types.get(target.partition("-")[0], types["isolated"])
        yield f"query ($id: ID!) {{ node(id: $id) {{ id ... on {kind.name} {_fields(kind, 1)} }} }}", {"id": target}


def _node_lists(targets: Targets, chance: random.Random, _: bool) -> Iterator[Call]:
    ids = chance.sample(targets.ids, 12)
    yield _whole("nodes", "$ids: [ID!]!", "ids: $ids"), {"ids": ids}


def _pages(name: str) -> Callable[[Targets, random.Random, bool], Iterator[Call]]:
    """Return the calls of a list: whole, and with each of its arguments now and then."""

    def calls(targets: Targets, chance: random.Random, _: bool) -> Iterator[Call]:
        field = SDL.query_type.fields[name]
        possible = {
            "query": chance.choice((*WORDS, "zzsecret", f"{WORDS[0]}xx")),
            "session_id": chance.choice(targets.sessions),
            "since": chance.choice(targets.moments),
            "until": chance.choice(targets.moments),
            "updated_after": chance.choice(targets.moments),
            "order": chance.choice(("asc", "desc")),
            "root": chance.choice(targets.ids),
            "project": HERE,
            "after": f"{chance.randint(63_000_000_000_000_000, 64_000_000_000_000_000)}.{chance.randint(1, 60)}",
            **{
                name: chance.sample([*get_named_type(argument.type).values], 2)
                for name, argument in field.args.items()
                if name in {"status", "kind", "types"}
            },
        }
        document = _whole(
            name,
            ", ".join(f"${name}: {one.type}" for name, one in field.args.items()),
            ", ".join(f"{name}: ${name}" for name in field.args),
        )
        for first in (10, chance.randint(1, 4)):
            given = {name: value for name, value in possible.items() if name in field.args and chance.random() < 0.3}
            yield document, {"first": first, "order": "desc", **given}
        yield document, {"first": 10, "order": "desc"}

    return calls


def _sums(targets: Targets, chance: random.Random, _: bool) -> Iterator[Call]:
    document = _whole(
        "aggregate",
        "$measure: Measure!, $by: [Dimension!], $zone: TimeZone!, $since: DateTime, $until: DateTime, $session: String,"
        " $project: String",
        "measure: $measure, by: $by, zone: $zone, since: $since, until: $until, session_id: $session,"
        " project: $project",
    )
    for measure in get_named_type(SDL.query_type.fields["aggregate"].args["measure"].type).values:
        by = chance.sample([*get_named_type(SDL.query_type.fields["aggregate"].args["by"].type).values], 2)
        yield document, {"measure": measure, "by": by, "zone": chance.choice(("UTC", "Asia/Shanghai"))}
        bounds = {"since": chance.choice(targets.moments), "session": chance.choice(targets.sessions)}
        yield document, {"measure": measure, "by": by[:1], "zone": "UTC", **bounds}


def _walks(name: str) -> Callable[[Targets, random.Random, bool], Iterator[Call]]:
    """Return the calls of a question about lineage: each with some of its arguments, pages by their token."""

    def calls(targets: Targets, chance: random.Random, thorough: bool) -> Iterator[Call]:
        field = SDL.query_type.fields[name]
        moments = [*targets.moments, *(one for one in targets.ids if one.startswith("event-"))]
        for _ in range(12 if thorough else 3):
            possible = {
                "direction": chance.choice(("upstream", "downstream", "both")),
                "depth": chance.choice((1, 2, 4)),
                "as_of": chance.choice(moments),
                "max_nodes": chance.randint(2, 9),
                "fanout": chance.randint(1, 4),
                "stated": True,
                "first": chance.randint(0, 3),
                "mode": "subgraph",
                "max_length": chance.randint(1, 6),
                "project": HERE,
                **{
                    one: chance.sample([*get_named_type(argument.type).values], 2)
                    for one, argument in field.args.items()
                    if one in {"types", "nodes", "listed"}
                },
            }
            given = {one: value for one, value in possible.items() if one in field.args and chance.random() < 0.4}
            if name in {"path", "lineage_diff"}:
                pool = targets.ids if name == "path" else moments
                given |= {"from": chance.choice(pool), "to": chance.choice(pool)}
            if "format" in field.args:
                given["format"] = chance.choice(("json", "csv", "mermaid", "openlineage"))
            if "root" in field.args:
                given["root"] = chance.choice(targets.ids)
            arguments = [*given, next(one for one in ("resume", "after", "project") if one in field.args)]
            document = _whole(
                name,
                ", ".join(f"${one}: {field.args[one].type}" for one in dict.fromkeys(arguments)),
                ", ".join(f"{one}: ${one}" for one in dict.fromkeys(arguments)),
            )
            yield document, given

    return calls


def _insights(targets: Targets, chance: random.Random, thorough: bool) -> Iterator[Call]:
    yield "{ insights { name title title_zh takes } }", {}
    field = SDL.query_type.fields["insight"]
    for name in get_named_type(field.args["name"].type).values if thorough else ():
        given: dict[str, object] = {"name": name, "first": 4}
        if name == "closure_impact":
            given["node"] = chance.choice(targets.ids)
        arguments = [*given, "after"]
        document = _whole(
            "insight",
            ", ".join(f"${one}: {field.args[one].type}" for one in arguments),
            ", ".join(f"{one}: ${one}" for one in arguments),
        )
        yield document, given


def _counts(_: Targets, __: random.Random, ___: bool) -> Iterator[Call]:
    yield _whole("stats", "$project: String", "project: $project"), {}
    yield _whole("stats", "$project: String", "project: $project"), {"project": HERE}


def _origins(targets: Targets, chance: random.Random, _: bool) -> Iterator[Call]:
    """Ask about lines of all texts that were written, in isolation or not, in their own place and in others."""
    field = SDL.query_type.fields["line_origin"]
    document = _whole(
        "line_origin",
        ", ".join(f"${name}: {one.type}" for name, one in field.args.items()),
        ", ".join(f"{name}: ${name}" for name in field.args),
    ).replace("{ line ", "{ ")  # it is what the asker sent
    for path in (*PATHS, "nowhere.md"):
        yield document, {"path": path, "line": chance.randint(1, 4), "project": chance.choice((HERE, THERE, "all"))}
    for path, text in chance.sample(targets.texts, min(len(targets.texts), 8)):
        line = chance.randint(1, text.count("\n"))
        yield document, {"path": path, "line": line, "text": {"text": text}}
        yield document, {"path": chance.choice(PATHS), "line": 3, "text": {"text": f"# one\n\n{text}"}}


def _bounds(_: Targets, __: random.Random, ___: bool) -> Iterator[Call]:
    yield resources.text("queries/dashboard/limits.graphql"), {}


def _self(_: Targets, __: random.Random, ___: bool) -> Iterator[Call]:
    yield resources.text("queries/explore/whoami.graphql"), {}


LISTS = ("sessions", "events", "assets", "decisions", "goals", "todos", "candidates", "feedback", "timeline")
READS: Mapping[str, Callable[[Targets, random.Random, bool], Iterator[Call]]] = {
    "nav": _navs,
    "search": _searches,
    "node": _nodes,
    "nodes": _node_lists,
    **{name: _pages(name) for name in LISTS},
    **{name: _walks(name) for name in ("lineage", "lineage_export", "why", "impact", "path", "lineage_diff")},
    "aggregate": _sums,
    "stats": _counts,
    "insight": _insights,
    "insights": _insights,
    "line_origin": _origins,
    "limits": _bounds,
    "cost": _bounds,
    "whoami": _self,
}


@lru_cache
def _whole(name: str, variables: str, arguments: str, depth: int = 1) -> str:
    """Write a document that asks for everything a field has, and of nodes further in than `depth` for their ids."""
    return f"query ({variables}) {{ {name}({arguments}) {_selection(SDL.query_type.fields[name].type, depth)} }}"


def _selection(kind: object, depth: int) -> str:
    named = get_named_type(kind)
    if isinstance(named, GraphQLObjectType):
        return _fields(named, depth)
    if isinstance(named, GraphQLInterfaceType):
        return "{ __typename id }"
    if isinstance(named, GraphQLUnionType):
        return "{ " + " ".join(f"... on {one.name} {_selection(one, depth)}" for one in named.types) + " }"
    return ""


def _fields(kind: GraphQLObjectType, depth: int) -> str:
    inside = depth - any(one.name == "Node" for one in kind.interfaces)
    if inside < 0:
        return "{ id }"
    told = {name: one for name, one in kind.fields.items() if name != "elapsed_ms"}  # takes what it takes
    return "{ " + " ".join(f"{name} {_selection(one.type, inside)}" for name, one in told.items()) + " }"


def _answers(world: World, asker: Asker, call: Call, pages: int = 3) -> list[object]:
    """Return what a call answers; of a search or a walk the next pages too."""
    document, given = call
    execute = stores.reader(world.db, asker, world.mirror)
    found: list[object] = []
    while document != "tool" and len(found) < pages:
        answer = dict(execute(document, given))
        assert "errors" not in answer, answer
        found.append(answer)
        field = next(iter(answer["data"].values()))
        following = _following(field) if isinstance(field, dict) else {}
        if not following:
            return found
        given = {**given, **following}
    while document == "tool" and len(found) < pages:
        line, code = tool.call(given, execute)
        found += [line, code]
        cursor = json.loads(line).get("cursor")
        if cursor is None:
            break
        given = {**given, "cursor": cursor}
    return found


def _following(field: Mapping[str, Any]) -> dict[str, object]:
    """Return the argument that asks for the next page, if there is one."""
    page = field.get("pageInfo")
    if page is not None:
        return {"after": page["endCursor"]} if page["hasNextPage"] else {}
    if field.get("end_cursor"):
        return {"after": field["end_cursor"]}
    resume = field.get("truncation", {}).get("resume")
    return {"resume": resume} if resume else {}


def _exported(world: World, asker: Asker) -> list[tuple[int, bytes]]:
    viewer, _ = scope.resolve(world.db, asker, None)
    return list(export.export(world.db, viewer, 0, world.rows[-1]))


def _calls(targets: Targets, seed: int, thorough: bool) -> Iterator[Call]:
    chance = random.Random(seed)  # noqa: S311 # nothing to guess
    for calls in READS.values():
        yield from calls(targets, chance, thorough)


def test_every_read_that_the_schema_lists_is_compared():
    assert SDL.query_type is not None
    assert set(READS) == set(SDL.query_type.fields)
    targets = Targets(("event-1",) * 20, ("open",), ("2026-11-30",))
    asked = {
        name for seed in range(40) for call, given in _calls(targets, seed, True) if call == "tool" for name in given
    }
    named = {name for field in ("nav", "search") for name in SDL.query_type.fields[field].args}
    assert named <= asked | {"verb", "cursor", "nav"}


def test_others_get_what_they_got_if_blanks_stood_in_the_place_of_isolated_rows(worlds, request):
    told, blank = worlds
    seed = request.node.callspec.params["worlds"]
    targets = _targets(told)

    assert blank.rows == told.rows
    # One opens every id, another one a part.
    askers = [VIEWERS[(seed + number) % len(VIEWERS)] for number in range(2)]
    for asker in askers:
        for call in _calls(targets, seed, asker is askers[0]):
            if asker.session_id is not None and "project" in call[1]:
                continue
            if "insight(" in call[0] and told.mirror is None:
                continue
            here, there = _answers(told, asker, call), _answers(blank, asker, call)
            assert here == there, (asker, call)
            assert "zzsecret" not in json.dumps(here).replace(json.dumps(call[1].get("query", "")), "")
        assert _exported(told, asker) == _exported(blank, asker)


@pytest.mark.parametrize("worlds", [0], indirect=True)
def test_the_session_itself_is_not_spared(worlds):
    """Without this, a store that shows nothing to anybody would pass."""
    told, blank = worlds
    asked = ("tool", {"nav": "cat", "target": "session-closed", "token_budget": 50_000})

    assert _answers(told, Asker(session_id="closed"), asked) != _answers(blank, Asker(session_id="closed"), asked)

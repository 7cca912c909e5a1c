"""What a token of one project learns of another one: nothing, from any field that the schema has.

Conversations of two projects are told side by side, the second time with blanks in a third project where the other
one's events were. Positions and times are the same, so every answer must be: ids, names, counts, scores, pages, notes.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import pytest
import stores
from conftest import NOW, Talk
from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLUnionType,
    build_schema,
    get_named_type,
    is_enum_type,
    is_list_type,
    is_required_argument,
)

from graphsvc import clock as clocks
from graphsvc import resources
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.api.live import Reader
from graphsvc.config import Settings
from graphsvc.graph.mirror import Mirror, kept
from graphsvc.memory import capture, export, rebuild, record
from graphsvc.memory.apply import VERSION
from graphsvc.memory.record import Author, Link
from graphsvc.model import Event, EventKind, TokenKind
from graphsvc.recall import index, scope
from graphsvc.recall.scope import Asker
from graphsvc.store import events
from graphsvc.store.access.tokens import Token
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

SDL = build_schema(resources.text("schema/graphsvc.graphql"))
MINE, THEIRS, BLANK = "/srv/talk/harbor", "/srv/talk/zzname", "/srv/talk/blank"  # on no machine
Call = tuple[str, dict[str, Any]]  # document, variables
DRAWS = 10  # of arguments for each field
PAGES = 3
BOUND = {
    "project": Token(id=1, kind=TokenKind.READ, project=MINE),
    "session": Token(id=2, kind=TokenKind.READ, project=MINE, session_id="mine-2"),
}


@dataclass(kw_only=True)
class Told(Talk):
    """A conversation that knows the position of the ledger after each of its events."""

    rows: list[int] = field(default_factory=list)

    def event(self, kind: str, body: str, **more: object) -> str:
        origin = super().event(kind, body, **more)
        self.rows.append(events.position(self.db))
        return origin

    def linked(self, name: str) -> None:
        viewer = Viewer(project=events.find_project(self.db, self.project), everywhere=True)
        link = Link(type="precedes", source=f"session-{name}-1", target=f"session-{name}-3")
        record.link(self.db, Author(viewer=viewer, mutation_id="drawn"), link, now=self.clock)
        self.rows.append(events.position(self.db))


@dataclass(kw_only=True)
class Blanks(Told):
    """Stores blanks for the rows that the same conversation made elsewhere."""

    wanted: list[int]  # the positions after each of its events there
    names: dict[str, str] = field(default_factory=dict)

    def event(self, _kind: str, _body: str, *, origin: str | None = None, **_: object) -> str:
        self.told += 1
        self.moment += timedelta(seconds=10)
        self._fill(self.session_id)
        return origin or f"{self.session_id}:{self.told}"

    def linked(self, _: str) -> None:
        self._fill("graphsvc's own")

    def _fill(self, session: str) -> None:
        until = self.wanted[len(self.rows)]
        for number in range(events.position(self.db), until):
            blank = Event(
                session_id=self.names.setdefault(session, f"blank-{len(self.names)}"), kind=EventKind.RAW,
                origin=f"b{number}", body="", ts=clocks.utc_text(self.moment), project=BLANK,
            )  # fmt: skip
            capture.capture(self.db, [blank], now=self.clock)
        self.rows.append(until)


def told(talk: Told, name: str, word: str) -> Iterator[None]:
    """Tell what makes nodes and edges of every type, step by step: `word` is in every text, `name` in every name."""
    talk.session(f"{name}-1").event("session_start", "", host=f"host {word}", title=f"title {word}")
    yield talk.user(f"Write the plan for {word}")
    yield talk.wrote("docs/plan.md", f"# Plan\n\nsee `docs/{name}.md`\n{word} ferry\n")
    yield talk.wrote(f"docs/{name}.md", f"# {word}\n\nsee `docs/plan.md`\n")
    yield talk.edited("docs/plan.md", "# Plan", f"# Plan {word}")
    yield talk.read("docs/plan.md", f"{word} read")
    yield talk.ran(f"git commit -m '{word}'", f"[main 1a2b3c4] {word}")
    old = talk.decided(f"use {word} in docs/plan.md")
    yield talk.superseded(old, f"use {word} and ferry in docs/plan.md", reason=f"because {word}")
    yield talk.user(f"We decided: {word} is blue")
    yield talk.event("goal", f"reach {word}", action="record")
    yield talk.event("feedback", f"prefer {word}", action="record")
    yield talk.tool("TodoWrite", {"todos": [{"content": f"do {word}", "status": "pending"}]})
    yield talk.failed(path=f"docs/{name}-missing.md")
    yield talk.compacted(f"summary {word}")
    talk.session(f"{name}-2").event("session_start", "", parent=f"{name}-1", relation="fork")
    yield talk.wrote("docs/plan.md", f"# Plan\n\n{word} again\n")
    yield talk.decided(f"{word} in docs/plan.md")
    yield talk.isolated()
    yield talk.user(f"isolated {word}")
    yield talk.wrote("docs/secret.md", f"# secret {word}\n")
    yield talk.session(f"{name}-3").user(f"later {word}")
    yield talk.ended()
    yield talk.linked(name)


def beside(mine: Told, theirs: Told) -> None:
    """Tell both conversations, a step of each at a time, and then more of mine."""
    for _ in zip_longest(told(mine, "mine", "harbor"), told(theirs, "zzname", "zzcanary")):
        pass
    mine.session("mine-1").user("We decided: ferry for harbor")
    # What is said here may name what lies there.
    for number in theirs.rows[4:20:3]:
        ids = [f"{kind}-{number}" for kind in ("event", "decision", "asset")]
        mine.decided(f"harbor stands on {number}", evidence=[*ids, f"{THEIRS}/docs/plan.md", "zzname-1:5"])
        mine.tool("record_decision", {"text": f"harbor, not {number}", "supersedes_id": f"decision-{number}"})
        mine.event("todo", f"harbor after {number}", action="record", basis=f"decision-{number}")
        mine.compacted(f"harbor {number}", replaces=[f"event-{number}", "zzname-1:5"])
    mine.read(f"{THEIRS}/docs/zzname.md", "harbor")
    mine.session("mine-4").event("session_start", "", parent="zzname-1", relation="fork")
    mine.user("harbor goes on")


@dataclass(frozen=True, slots=True)
class World:
    """A store and its mirror."""

    db: Connection
    mirror: Mirror


@pytest.fixture(scope="module")
def worlds(tmp_path_factory) -> Iterator[tuple[World, World]]:
    folder = tmp_path_factory.mktemp("scoped")
    homes = [Settings(home=folder / name) for name in ("told", "blank")]
    with ExitStack() as stack:
        here, there = (stack.enter_context(closing(rebuild.connect(one))) for one in homes)
        theirs = Told(db=here, clock=lambda: NOW, project=THEIRS)
        beside(Told(db=here, clock=lambda: NOW, project=MINE), theirs)
        blanks = Blanks(db=there, clock=lambda: NOW, wanted=theirs.rows)
        beside(Told(db=there, clock=lambda: NOW, project=MINE), blanks)
        for db in (here, there):
            while index.catch_up(db):
                pass
        mirrors = [stack.enter_context(kept(one, VERSION)) for one in homes]
        until = time.monotonic() + 120
        for mirror in mirrors:
            while mirror.status().position < events.position(here):
                assert time.monotonic() < until
                time.sleep(0.05)
        yield World(here, mirrors[0]), World(there, mirrors[1])


@dataclass(frozen=True, slots=True)
class Pools:
    """What arguments are drawn from: names of both projects, and ids by counting, whatever they are."""

    ids: tuple[str, ...]
    sessions: tuple[str, ...]
    moments: tuple[str, ...]


WORDS = ("harbor", "zzcanary", "zzcanar", "ferry", "plan", "docs/zzname.md", "blank")
PATHS = ("docs/plan.md", "docs/zzname.md", f"{THEIRS}/docs/plan.md", f"{MINE}/docs/plan.md", "zzname.md")
TEXTS = ("# Plan\n\nzzcanary again\n", "# Plan\n\nharbor again\n", "# zzcanary\n\nsee `docs/plan.md`\n")


def pools(db: Connection) -> Pools:
    last = events.position(db)
    kinds = ("event", "asset", "decision", "goal", "todo", "candidate", "feedback")
    counted = [f"{kind}-{number}" for number in range(1, last + 2) for kind in kinds]
    sessions = [row[0] for row in db.execute("SELECT host_id FROM sessions ORDER BY id")]
    moments = [row[0] for row in db.execute("SELECT DISTINCT at FROM events ORDER BY at")]
    numbers = [str(number) for number in range(1, last + 2)]
    ids = (*counted, *numbers, *(f"session-{one}" for one in sessions), *sessions, *PATHS)
    return Pools(ids, tuple(sessions), tuple(moments))


def drawn(name: str, argument: Any, known: Pools, chance: random.Random) -> object:
    """Draw a value for an argument; one that nothing is known of ends the test, so that none is left out."""
    kind = get_named_type(argument.type)
    if is_enum_type(kind):
        values = [*kind.values]
        return chance.sample(values, min(2, len(values))) if is_list_type(argument.type) else chance.choice(values)
    by_name = {
        **dict.fromkeys(("id", "root", "target", "node", "from", "to"), known.ids),
        **dict.fromkeys(("since", "until", "updated_after"), known.moments),
        **dict.fromkeys(("first", "limit"), (1, 3, 8)),
        **dict.fromkeys(("depth", "max_length"), (1, 2, 5)),
        **dict.fromkeys(("max_nodes", "max_edges"), (3, 30, 200)),
        "ids": [chance.sample(known.ids, 12)],
        **dict.fromkeys(("session_id", "viewer"), (*known.sessions, "nobody")),
        "query": WORDS,
        "project": (MINE, MINE, MINE, THEIRS, "all", "/srv/nowhere"),
        "as_of": (*known.moments, *(one for one in known.ids if one.startswith("event-"))),
        "fanout": (1, 25),
        "deadline_ms": (2000,),
        "token_budget": (200, 4000, 50_000),
        "count_only": (True, False),
        "stated": (True, False),
        "zone": ("UTC", "Asia/Shanghai"),
        "path": PATHS,
        "line": (1, 3),
        "text": [{"text": text} for text in TEXTS],
        "commit": [{"hash": "1a2b3c4" + "0" * 33, "committed_at": "2026-12-30", "path": "docs/plan.md", "line": 1}],
    }
    return chance.choice(by_name[name])


def calls(name: str, asked: GraphQLField, known: Pools, chance: random.Random) -> Iterator[Call]:
    """Write documents that ask for all that a field has, each with some of its arguments."""
    pages = [one for one in ("after", "cursor", "resume") if one in asked.args]
    always = {one for one, argument in asked.args.items() if is_required_argument(argument) or one == "first"}
    kinds = [*get_named_type(asked.args["name"].type).values] if name == "insight" else [None]
    for kind in kinds * (DRAWS // len(kinds) if asked.args else 1):
        given = {
            one: drawn(one, argument, known, chance)
            for one, argument in asked.args.items()
            if one not in pages and (one in always or chance.random() < 0.25)
        }
        if kind is not None:
            given = {"name": kind, "first": 8} | ({"node": "session-mine-1"} if kind == "closure_impact" else {})
        yield written("query", name, asked, [*given, *pages]), given


def written(operation: str, name: str, asked: GraphQLField, named: Sequence[str]) -> str:
    """Write a document that asks for everything a field has, with these arguments."""
    variables = ", ".join(f"${one}: {asked.args[one].type}" for one in named)
    arguments = ", ".join(f"{one}: ${one}" for one in named)
    head = f"{operation} ({variables})" if named else operation
    return f"{head} {{ {name}{f'({arguments})' if named else ''} {selection(asked.type, 1)} }}"


def selection(kind: object, depth: int) -> str:
    named = get_named_type(kind)
    if isinstance(named, GraphQLInterfaceType):
        return (
            "{ __typename id }" if depth < 1 else "{ __typename id " + branches(SDL.get_possible_types(named), 0) + "}"
        )
    if isinstance(named, GraphQLUnionType):
        return "{ __typename " + branches(named.types, depth) + " }"
    return fields(named, depth) if isinstance(named, GraphQLObjectType) else ""


def branches(types: Sequence[GraphQLObjectType], depth: int) -> str:
    # Under names of their own: fields of one name are of several types.
    return " ".join(f"... on {one.name} {{ {one.name}: __typename {fields(one, depth)[1:]}" for one in types)


def fields(kind: GraphQLObjectType, depth: int) -> str:
    inside = depth - any(one.name == "Node" for one in kind.interfaces)
    if inside < 0:
        return "{ id }"
    told = {name: one for name, one in kind.fields.items() if name != "elapsed_ms"}  # takes what it takes
    return "{ " + " ".join(f"{name} {selection(one.type, inside)}" for name, one in told.items()) + " }"


def answers(world: World, asker: Asker, call: Call) -> list[object]:
    """Return what a call answers, and its next pages."""
    document, given = call
    execute = stores.reader(world.db, asker, world.mirror)
    found: list[object] = []
    while len(found) < PAGES:
        answer = dict(execute(document, given))
        found.append(answer)
        value = next(iter((answer.get("data") or {"": None}).values()))
        more = following(value) if isinstance(value, dict) else {}
        if not more:
            break
        given = {**given, **more}
    return found


def following(value: Mapping[str, Any]) -> dict[str, object]:
    """Return the argument that asks for the next page, if there is one."""
    page = value.get("pageInfo")
    if page is not None:
        return {"after": page["endCursor"]} if page["hasNextPage"] else {}
    if value.get("end_cursor"):
        return {"after": value["end_cursor"]}
    if value.get("cursor"):
        return {"cursor": value["cursor"]}
    resume = value.get("truncation", {}).get("resume")
    return {"resume": resume} if resume else {}


def told_of(answer: object, given: Mapping[str, object]) -> str:
    """Return an answer as text, without what the asker said."""
    text = json.dumps(answer, ensure_ascii=False)
    for said in sorted(texts(given), key=len, reverse=True):
        text = text.replace(json.dumps(said, ensure_ascii=False)[1:-1], "")
    return text


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (value, *value.splitlines())
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from texts(part)


@pytest.fixture(params=BOUND)
def asker(request) -> Asker:
    return scope.narrowed(BOUND[request.param], Asker())


@pytest.mark.parametrize("name", [*SDL.query_type.fields])
def test_a_query_tells_the_token_of_a_project_nothing_of_another(worlds, asker, name):
    here, there = worlds
    chance = random.Random(name)  # noqa: S311 # nothing to guess
    for call in calls(name, SDL.query_type.fields[name], pools(here.db), chance):
        mine, blank = answers(here, asker, call), answers(there, asker, call)
        assert mine == blank, call
        assert "zzcanary" not in told_of(mine, call[1]), call


def test_the_same_questions_tell_the_owner_of_both(worlds):
    """Without this, a store that answers nothing would pass."""
    here, there = worlds
    known, differs = pools(here.db), set()
    for name, asked in SDL.query_type.fields.items():
        chance = random.Random(name)  # noqa: S311
        for call in calls(name, asked, known, chance):
            if answers(here, Asker(), call) != answers(there, Asker(), call):
                differs.add(name)

    assert differs == set(SDL.query_type.fields) - {"limits", "whoami", "cost", "insights"}


def test_ids_that_are_counted_through_as_every_type_open_nothing_of_another_project(worlds, asker):
    here, _ = worlds
    own = {row[0] for row in here.db.execute("SELECT id FROM events WHERE project = 1")}
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { id __typename } }"
    execute = stores.reader(here.db, asker)
    opened = 0
    for one in range(1, events.position(here.db) + 2):
        ids = [f"{kind}-{one}" for kind in ("event", "asset", "decision", "goal", "todo", "candidate", "feedback")]
        found = execute(document, {"ids": ids})["data"]["nodes"]
        assert one in own or found == [None] * len(ids)
        opened += found != [None] * len(ids)

    assert events.project_key(here.db, 1) == MINE
    assert opened == len(own)


@pytest.mark.parametrize("name", [*SDL.subscription_type.fields])
def test_a_subscription_tells_the_token_of_a_project_nothing_of_another(worlds, asker, name):
    here, _ = worlds
    asked, known = SDL.subscription_type.fields[name], pools(here.db)
    chance = random.Random(name)  # noqa: S311
    delivered = 0
    always = {one for one, argument in asked.args.items() if is_required_argument(argument)}
    for draw in range(DRAWS):
        given: dict[str, Any] = {
            one: drawn(one, argument, known, chance)
            for one, argument in asked.args.items()
            if one != "after" and (one in always or (draw and chance.random() < 0.25))
        }
        given |= {} if draw or "root" not in always else {"root": "session-mine-1"}
        document = written("subscription", name, asked, [*given, "after"])
        mine, blank = (list(deliveries(world.db, asker, document, {**given, "after": 0})) for world in worlds)
        assert mine == blank, given
        assert "zzcanary" not in told_of(mine, given), given
        delivered += len(mine)

    assert delivered > DRAWS


def deliveries(db: Connection, asker: Asker, document: str, given: Mapping[str, object]) -> Iterator[object]:
    reader = Reader()
    while reader.position is None or reader.more:
        reader.found = None
        context = Context(db=db, asker=asker, clock=clocks.system)
        response = schema.respond(document, given, None, context, reader=reader)
        if reader.found is None:
            yield response
            return
        if reader.found:
            yield response


def test_an_export_holds_nothing_of_another_project(worlds, asker):
    exported = []
    for world in worlds:
        viewer, _ = scope.resolve(world.db, asker, None)
        exported.append(list(export.export(world.db, viewer, 0, events.position(world.db))))

    assert exported[0] == exported[1]
    assert b"zzcanary" not in b"".join(line for _, line in exported[0])


@pytest.mark.parametrize("project", [THEIRS, "all", "/srv/nowhere"])
@pytest.mark.parametrize("field", ["stats { events }", 'search(query: "x") { __typename }', "sessions { totalCount }"])
def test_another_project_as_argument_is_refused_the_same_whether_or_not_it_is_there(worlds, asker, field, project):
    name, _, rest = field.partition("(") if "(" in field else field.partition(" ")
    rest = f", {rest}" if "(" in field else f") {rest}"
    document = f"{{ {name}(project: {json.dumps(project)}{rest} }}"
    found = stores.reader(worlds[0].db, asker)(document, {})

    assert found.get("data") is None
    assert found["errors"][0]["extensions"]["code"] == "FORBIDDEN"
    assert "zzcanary" not in json.dumps(found)

"""Each insight is what the tables give, and Kuzu is who answers: compared with plain Python over random histories."""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial

import networkx
import pytest
from conftest import NOW, PROJECT, ROOT, Talk
from histories import CAUSES, tell

from graphsvc import resources
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.config import Settings
from graphsvc.graph import mirror as graph_mirror
from graphsvc.graph.mirror import Mirror
from graphsvc.lineage import insights
from graphsvc.lineage.insights import Asked, Insight, InsightName, InsightRow
from graphsvc.memory import rebuild
from graphsvc.memory.apply import VERSION
from graphsvc.recall import targets
from graphsvc.recall.scope import Asker
from graphsvc.store import events
from graphsvc.store.edges import premises
from graphsvc.store.visibility import Viewer

BEHIND = {"evidence", "references"}


OTHER = "/srv/talk/quay"


class Elsewhere(Talk):
    """Talk of another project, in sessions of its own."""

    def session(self, session_id: str) -> Talk:
        return super().session(f"e-{session_id}")


def tell_more(db, seed: int) -> None:
    """Tell random histories of two projects whose sessions know each other."""
    here = Talk(db=db, clock=lambda: NOW)
    there = Elsewhere(db=db, clock=lambda: NOW, project=OTHER, session_id="e-s1")
    here.session("s1").user("hello")
    there.session("s1").event("session_start", "", host="dsh", parent="s1", relation="fork")
    for part in range(5):
        tell_part(here, seed * 100 + part)
        tell_part(there, seed * 100 + 50 + part, steps=6)


def tell_part(talk: Talk, seed: int, steps: int = 14) -> None:
    """Tell a random history in which decisions stand on decisions, and things are done, revoked and left alone."""
    chosen = random.Random(seed)  # noqa: S311 # no secret
    tell(talk, seed, steps=steps + 4)
    for _ in range(steps):
        origins = {
            kind: [
                row[0]
                for row in talk.db.execute(
                    "SELECT origin FROM events e JOIN projects p ON p.id = e.project WHERE e.kind = ? AND p.key = ?",
                    (kind, talk.project),
                )
            ]
            for kind in ("decision", "todo", "goal", "asset", "tool_call")
        }
        some = {kind: chosen.choice(listed) if listed else None for kind, listed in origins.items()}
        step = chosen.random()
        talk.session(f"s{chosen.randint(1, 4)}")
        if step < 0.3 and some["decision"]:
            talk.decided(f"so {talk.told}", evidence=chosen.sample(origins["decision"], 1))
        elif step < 0.42 and some["decision"]:
            basis = chosen.choice([one for one in (some["decision"], some["goal"], some["asset"]) if one])
            talk.event("todo", f"then {talk.told}", action="record", basis=basis)
        elif step < 0.5 and some["todo"]:
            talk.event("todo", "", action="finish", of=some["todo"])
        elif step < 0.56 and some["decision"]:
            talk.event("decision", "", action="revoke", of=some["decision"])
        elif step < 0.62 and some["goal"]:
            talk.event("goal", "", action="complete", of=some["goal"])
        elif step < 0.72:
            talk.event("goal", f"aim {talk.told}", action="record")
        elif step < 0.8 and some["asset"] and some["decision"]:
            ends = {"source": {"type": "asset", "of": some["asset"]}, "target": {"type": "event"}}
            ends["target"]["of"] = some["decision"]
            talk.event("edge", "", action="add", type="references", **ends)
        elif step < 0.86 and some["decision"]:
            talk.superseded(some["decision"], f"rather {talk.told}", evidence=[some["decision"]])
        elif step < 0.93:
            talk.session(f"quiet{chosen.randint(1, 9)}").decided(f"alone {talk.told}")
        else:
            talk.session(f"apart{talk.told}").user("/thread-iso")
            talk.decided(f"secret {talk.told}")


@dataclass(frozen=True)
class Edge:
    type: str
    source: str
    target: str
    rule: str
    begin: int
    begin_at: str
    stands: bool


class Tables:
    """What all may see, from whole tables; of one project if there is one."""

    def __init__(self, settings: Settings, project: str = "") -> None:
        with closing(sqlite3.connect(settings.database)) as db:
            db.row_factory = sqlite3.Row
            read = lambda sql: [dict(row) for row in db.execute(sql)]  # noqa: E731
            hidden = {row["event"] for row in read("SELECT event FROM hidden")}
            self.events = {row["id"]: row for row in read("SELECT id, session, kind, at FROM events")}
            sessions = {row["id"]: row["host_id"] for row in read("SELECT * FROM sessions")}
            chosen = {row["id"] for row in read("SELECT * FROM projects") if project in ("", row["key"])}
            foreign = {
                *(
                    f"session-{row['host_id']}"
                    for row in read("SELECT * FROM sessions")
                    if row["project"] not in chosen
                ),
                *(
                    f"event-{row['id']}"
                    for row in read("SELECT id, project FROM events")
                    if row["project"] not in chosen
                ),
            }
            self.records = {
                f"{row['type']}-{row['id']}": {**row, "session": sessions[row["session"]]}
                for row in read("SELECT * FROM records")
                if row["id"] not in hidden and row["project"] in chosen
            }
            first: dict[int, int] = {}
            for row in read("SELECT event, asset, project FROM asset_versions ORDER BY event DESC"):
                if row["event"] not in hidden and row["project"] in chosen:
                    first[row["asset"]] = row["event"]
            drawn = [(row, row["end_event"] is None) for row in read("SELECT * FROM lineage_edges")]
            drawn += [(row, False) for row in read("SELECT * FROM past_edges")]
            self.changed = {row["id"]: self.events[row["changed_event"]]["at"] for row in self.records.values()}
        self.session_of = {f"event-{one['id']}": sessions[one["session"]] for one in self.events.values()}
        self.assets = {f"asset-{number}" for number in first.values()}

        def name(kind: str, number: int) -> str | None:
            if kind == "session":
                return f"session-{sessions[number]}"
            if kind == "asset":
                return f"asset-{first[number]}" if number in first else None
            known = number not in hidden and (kind == "event" or f"{kind}-{number}" in self.records)
            return f"{kind}-{number}" if known else None

        self.edges = []
        for row, stands in drawn:
            ends = name(row["src_type"], row["src"]), name(row["dst_type"], row["dst"])
            if row["begin_event"] not in hidden and None not in ends and not foreign & {*ends}:
                about = row["rule"], row["begin_event"], row["begin_at"], stands or row["end_event"] in hidden
                self.edges.append(Edge(row["type"], *ends, *about))
        self.standing = [one for one in self.edges if one.stands]

    def of(self, kind: str, *statuses: str) -> dict[str, dict]:
        return {name: row for name, row in self.records.items() if row["type"] == kind and row["status"] in statuses}

    def causal(self) -> networkx.DiGraph:
        graph = networkx.DiGraph()
        graph.add_edges_from((e.source, e.target) if e.type in CAUSES else (e.target, e.source) for e in self.standing)
        return graph

    def wrote_behind(self, session: str, number: int, since: str) -> bool:
        """Say whether a session wrote an asset behind a position."""
        for one in self.edges:
            if one.rule == "written by" and self.session_of[one.target] == session:
                event = int(one.target.removeprefix("event-"))
                if event > number and self.events[event]["at"] >= since:
                    return True
            made = one.type == "produces" and one.source == f"session-{session}"
            if made and one.begin > number and one.begin_at >= since:
                return True
        return False


@dataclass(frozen=True)
class Told:
    """A history, the mirror that follows it, and its tables."""

    db: object
    mirror: Mirror
    tables: Tables
    project: str = ""

    def ask(self, name: str, **asked: object) -> Insight:
        asked = Asked(**{"first": 100, "project": self.project, **asked})
        insights.check(InsightName(name), asked)
        found = insights.ask(self.db, self.mirror, InsightName(name), asked, wait_s=30, answer_s=20)
        assert isinstance(found, Insight), found
        assert found.freshness.engine == "kuzu"
        assert found.freshness.lag == 0
        return found

    def all(self, name: str, **asked: object) -> list[InsightRow]:
        """Read an insight to its end, page by page."""
        rows: list[InsightRow] = []
        after = None
        while True:
            found = self.ask(name, first=20, after=after, **asked)
            rows += found.rows
            after = found.end_cursor
            if after is None:
                return rows


@pytest.fixture(scope="module", params=range(3))
def history(request, tmp_path_factory):
    settings = Settings(home=tmp_path_factory.mktemp("home") / "home")
    with closing(rebuild.connect(settings)) as db:
        tell_more(db, request.param)
        with graph_mirror.kept(settings, VERSION) as mirror:
            yield settings, db, mirror


@pytest.fixture(params=["", PROJECT])
def told(request, history):
    settings, db, mirror = history
    return Told(db, mirror, Tables(settings, request.param), request.param)


def test_stale_premises(told):
    tables, ids = told.tables, {}
    graph = networkx.DiGraph([(e.source, e.target) for e in tables.standing if e.type in BEHIND])
    for premise, row in tables.of("decision", "superseded", "revoked").items():
        heir = f"decision-{row['superseded_by']}"
        ways = {premise: 1}
        if f"event-{row['id']}" in graph:
            lengths = networkx.single_target_shortest_path_length(graph, f"event-{row['id']}", cutoff=6)
            ways |= {
                near: steps + 2
                for near, steps in dict(lengths).items()
                if near.startswith(("decision", "asset")) and near not in {heir, premise}
            }
        for near, long in ways.items():
            if near in tables.of("decision", "active"):
                ids[near, premise] = min(long, ids.get((near, premise), long))
            for one in tables.standing:
                if one.type == "next_step" and one.source == near and one.target in tables.of("todo", "pending"):
                    ids[one.target, premise] = min(long + 1, ids.get((one.target, premise), long + 1))

    rows = told.all("stale_premises")

    assert {(row.id, row.evidence[-1]): row.evidence_total for row in rows} == ids
    assert len(rows) == len(ids)
    drawn = {(e.source, e.target) for e in tables.standing if e.type in BEHIND}
    drawn |= {(e.target, e.source) for e in tables.standing if e.type == "next_step"}
    for row in rows:
        assert row.evidence[0] == row.id
        assert len(row.evidence) == row.evidence_total
        for near, far in zip(row.evidence, row.evidence[1:], strict=False):
            recorded = near.removeprefix("event-") == far.removeprefix("decision-")
            assert (near, far) in drawn or recorded


def test_conflicts(told):
    touching: dict[str, set[str]] = {}
    active = told.tables.of("decision", "active")
    for one in told.tables.standing:
        if one.type == "evidence" and one.source in active and one.target in told.tables.assets:
            touching.setdefault(one.target, set()).add(one.source)
    expected = {
        asset: sorted(ids, key=number_of)
        for asset, ids in touching.items()
        if len({active[one]["session"] for one in ids}) > 1
    }

    rows = told.all("conflicts")

    assert {row.id: list(row.evidence) for row in rows} == {asset: ids[:50] for asset, ids in expected.items()}
    assert [row.evidence_total for row in rows] == sorted(map(len, expected.values()), reverse=True)


def test_sql_says_the_same_of_stale_premises_and_conflicts(told):
    viewer = Viewer(project=events.find_project(told.db, told.project) if told.project else None)
    first = dict(
        told.db.execute("SELECT asset, MIN(event) FROM asset_versions WHERE event NOT IN hidden GROUP BY asset")
    )

    stale = premises.stale(told.db, viewer, 1_000)
    conflicts = premises.conflicts(told.db, viewer, 1_000)

    assert [(f"{one.type}-{one.number}", f"decision-{one.premise}", one.length) for one in stale] == [
        (row.id, row.evidence[-1], row.evidence_total) for row in told.all("stale_premises")
    ]
    assert premises.stale(told.db, viewer, 2, 1) == stale[1:3]
    assert [(f"asset-{first[one.asset]}", [f"decision-{n}" for n in one.decisions]) for one in conflicts] == [
        (row.id, row.evidence) for row in told.all("conflicts")
    ]


def test_a_session_sees_what_stands_on_its_own_isolated_decisions(db, talk):
    talk.user("/thread-iso")
    old = talk.decided("secret rule")
    talk.decided("secret consequence", evidence=[old])
    talk.event("decision", "", action="revoke", of=old)

    assert len(premises.stale(db, Viewer(session=1), 10)) == 1
    assert premises.stale(db, Viewer(), 10) == []
    assert premises.stale(db, Viewer(session=2), 10) == []


@pytest.mark.parametrize("kind", ["", "goal", "decision", "todo", "asset"])
def test_orphans(told, kind):
    tables = told.tables
    named = {one for one in tables.records if not one.startswith(("candidate", "feedback"))} | tables.assets
    connected = {end for one in tables.standing for end in (one.source, one.target)}
    before: dict[str, set[str]] = {}
    for one in tables.edges:
        before.setdefault(one.source, set()).add(one.target)
        before.setdefault(one.target, set()).add(one.source)

    rows = told.all("orphans", type=kind)

    orphans = {one for one in named - connected if one.startswith(kind)}
    assert {row.id: set(row.evidence[1:]) for row in rows} == {one: before.get(one, set()) for one in orphans}
    assert len(rows) == len(orphans)
    assert all(row.evidence[0] == f"event-{number_of(row.id)}" for row in rows)


@pytest.mark.parametrize("side", ["both", "upstream", "downstream"])
@pytest.mark.parametrize("kind", ["", "asset"])
def test_hubs(told, side, kind):
    up, down, ends = Counter(), Counter(), {}
    for one in {(e.type, e.source, e.target) for e in told.tables.standing}:
        cause, result = one[1:] if one[0] in CAUSES else one[:0:-1]
        down[cause] += 1
        up[result] += 1
        if side != "upstream":
            ends.setdefault(cause, set()).add(result)
        if side != "downstream":
            ends.setdefault(result, set()).add(cause)
    counted = {"both": up + down, "upstream": up, "downstream": down}[side]

    rows = told.all("hubs", side=side, type=kind)

    assert {row.id: row.says for row in rows} == {
        one: f"edges towards causes: {up[one]}, towards results: {down[one]}" for one in counted if one.startswith(kind)
    }
    assert [counted[row.id] for row in rows] == sorted((counted[row.id] for row in rows), reverse=True)
    for row in rows:
        assert row.evidence == sorted(ends[row.id])[:20]
        assert row.evidence_total == len(ends[row.id])


def test_islands(told):
    graph = networkx.Graph([(one.source, one.target) for one in told.tables.standing])
    parts = sorted(networkx.connected_components(graph), key=len, reverse=True)

    rows = told.all("islands")

    assert len(parts) > 2
    assert sorted(map(frozenset, (row.evidence for row in rows if row.evidence_total <= 50)), key=sorted) == sorted(
        (frozenset(part) for part in parts[1:] if len(part) <= 50), key=sorted
    )
    assert [row.evidence_total for row in rows] == [len(part) for part in parts[1:]]
    assert all(row.id == row.evidence[0] for row in rows)


def test_closure_impact(told):
    graph = told.tables.causal()
    for root in sorted(graph)[::9]:
        reached = networkx.single_source_shortest_path_length(graph, root)
        del reached[root]

        rows = told.all("closure_impact", node=root)

        assert {row.id: int(row.says.partition(": ")[2].partition(",")[0]) for row in rows} == reached
        assert len(rows) == len(reached)
        assert all(graph.has_edge(row.evidence[0], row.id) for row in rows)
        counts = told.ask("closure_impact", node=root, first=1).by_type
        assert {one.type: one.count for one in counts} == Counter(one.partition("-")[0] for one in reached)


@pytest.mark.parametrize("share", [None, 0.3, 0.8, 1.0])
def test_goals_without_progress(told, share):
    tables = told.tables
    times = sorted(event["at"] for event in tables.events.values())
    since = "" if share is None else times[int(share * (len(times) - 1))]
    expected = {}
    for name, goal in tables.of("goal", "active").items():
        own = {e.target for e in tables.standing if e.type == "next_step" and e.source == name}
        done = any(one in own and tables.changed[row["id"]] >= since for one, row in tables.of("todo", "done").items())
        decided = any(
            row["type"] == "decision"
            and row["session"] == goal["session"]
            and row["id"] > goal["id"]
            and row["at"] >= since
            for row in tables.records.values()
        )
        if not (done or decided or tables.wrote_behind(goal["session"], goal["id"], since)):
            pending = sorted(own & tables.of("todo", "pending").keys(), key=number_of)
            expected[name] = (f"event-{goal['id']}", *pending)

    rows = told.all("goals_without_progress", since=since)

    assert {row.id: tuple(row.evidence) for row in rows} == expected


def test_decisions_never_followed(told):
    tables, expected = told.tables, {}
    for name, decision in tables.of("decision", "active").items():
        own = f"event-{decision['id']}"
        followed = any(
            (e.source == name and e.type in {"next_step", "precedes"})
            or (e.target == own and e.type in BEHIND and e.source != name and not e.source.startswith("event"))
            for e in tables.standing
        )
        if not (followed or tables.wrote_behind(decision["session"], decision["id"], "")):
            premises = {e.target for e in tables.standing if e.source == name and e.type == "evidence"} - {own}
            expected[name] = (own, *sorted(premises))

    rows = told.all("decisions_never_followed")

    assert {row.id: tuple(row.evidence) for row in rows} == expected


def number_of(name: str) -> int:
    return int(name.partition("-")[2])


OWNER = Asker()
QUERY = "query($name: InsightName!, $node: ID) { insight(name: $name, node: $node) { __typename"
QUERY += " ... on Insight { rows { id evidence } notes freshness { engine } } ... on NotAnswered { reason message }"
QUERY += " ... on InvalidInput { field } } }"


def asked(db, clock, *, mirror=None, begin_mirror=None, asker=OWNER, **variables):
    context = Context(db=db, asker=asker, clock=clock, mirror=mirror, begin_mirror=begin_mirror)
    answer = schema.respond(QUERY, variables, None, context)
    assert "errors" not in answer, answer
    return answer["data"]["insight"]


def test_without_a_mirror_there_is_no_answer(db, talk, clock, settings):
    talk.decided("nothing comes of this")
    silent = Mirror(settings, VERSION, delay_s=60)  # never begun

    none = asked(db, clock, name="decisions_never_followed")
    making = asked(db, clock, mirror=silent, name="decisions_never_followed")

    assert (none["__typename"], none["reason"]) == ("NotAnswered", "absent")
    assert (making["__typename"], making["reason"]) == ("NotAnswered", "building")
    assert "graphsvc graph status" in making["message"]


def test_a_stopped_mirror_gives_no_old_answer(db, talk, clock, settings):
    talk.decided("the first one")
    with graph_mirror.kept(settings, VERSION) as mirror:
        kept = asked(db, clock, begin_mirror=lambda: nullcontext(mirror), name="decisions_never_followed")
        os.kill(mirror._child.process.pid, signal.SIGSTOP)
        talk.decided("the second one")
        behind = asked(db, clock, mirror=mirror, name="decisions_never_followed")
        os.kill(mirror._child.process.pid, signal.SIGCONT)
        again = asked(db, clock, begin_mirror=lambda: nullcontext(mirror), name="decisions_never_followed")

    assert [row["id"] for row in kept["rows"]] == ["decision-1"]
    assert kept["freshness"] == {"engine": "kuzu"}
    assert (behind["__typename"], behind["reason"]) == ("NotAnswered", "behind")
    assert [row["id"] for row in again["rows"]] == ["decision-1", "decision-2"]


def test_an_answer_tells_what_was_stored_just_before(db, talk, clock, settings):
    with graph_mirror.kept(settings, VERSION) as mirror:
        for number in range(1, 6):
            talk.decided(f"rule {number}")
            found = asked(db, clock, begin_mirror=lambda: nullcontext(mirror), name="decisions_never_followed")
            assert len(found["rows"]) == number


def test_nothing_isolated_is_told_to_anyone(db, talk, clock, settings):
    talk.user("hello")
    talk.session("s2").user("/thread-iso")
    hidden = talk.decided("secret")
    number = db.execute("SELECT id FROM events WHERE origin = ?", (hidden,)).fetchone()[0]
    with graph_mirror.kept(settings, VERSION) as mirror:
        ask = partial(asked, db, clock, begin_mirror=lambda: nullcontext(mirror))
        for asker in (Asker(), Asker(session_id="s1"), Asker(session_id="s2")):
            found = ask(name="decisions_never_followed", asker=asker)
            assert found["rows"] == []
            assert any("isolated" in note for note in found["notes"])
            assert ask(name="closure_impact", node=f"decision-{number}", asker=asker)["field"] == "node"


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"name": "closure_impact"}, "node"),
        ({"name": "closure_impact", "node": "decision-404"}, "node"),
        ({"name": "hubs", "node": "event-1"}, "node"),
    ],
)
def test_what_cannot_be_asked_is_said_before_a_mirror_is_begun(db, talk, clock, variables, field):
    talk.user("hello")

    def begin():
        raise AssertionError("begun")

    assert asked(db, clock, begin_mirror=begin, **variables)["field"] == field


def test_every_evidence_opens(told):
    names = {row.id for name in ("stale_premises", "orphans", "hubs", "islands") for row in told.ask(name).rows}
    names |= {
        one for name in ("stale_premises", "conflicts", "hubs") for row in told.ask(name).rows for one in row.evidence
    }
    viewer = Viewer(everywhere=True)

    assert len(names) > 20
    assert all(getattr(targets.resolve(told.db, viewer, name, "cat"), "node", None) is not None for name in names)


@pytest.mark.parametrize("question", insights.CATALOGUE.values(), ids=lambda one: one.name)
def test_a_question_is_its_file(question):
    text = (resources.ROOT / "queries" / "insights" / f"{question.name}.cypher").read_text("utf-8")
    statement = re.sub(r"//.*", "", text)
    comment = re.sub(r"\n// ?", " ", text[: text.index("MATCH")])
    told = comment.partition("Parameters: ")[2].partition("Columns: ")[0]

    assert question.titles[0].endswith("?")
    assert question.titles[1].endswith("？")
    assert all(re.search(rf"\b{name}\b", told) for name in re.findall(r"\$(\w+)", statement))
    assert "LIMIT $" in statement
    assert "ORDER BY" in statement
    assert not re.search(r"\*\s*\]|\*\s*SHORTEST\s*\]", statement), "a path has a bound"


def test_cypher_stands_in_files_only():
    speakers = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "graphsvc").rglob("*.py")
        if re.search(r"\bMATCH \(", path.read_text("utf-8"))
    ]

    assert speakers == ["graphsvc/graph/driver.py"]


def test_the_command_lists_questions_and_answers_one(run, talk):
    talk.decided("nothing comes of this")

    listed = run("insights", "--json").json
    found = run("insights", "decisions_never_followed", "--json").json
    unknown = run("insights", "everything")

    assert [one["name"] for one in listed] == [name.value for name in InsightName]
    assert [row["id"] for row in found["rows"]] == ["decision-1"]
    assert found["freshness"]["engine"] == "kuzu"
    assert unknown.code == 2
    assert "stale_premises" in unknown.err


def test_the_service_answers_from_its_mirror(serving, db, talk):
    talk.decided("nothing comes of this")
    service = serving()
    until = time.monotonic() + 30
    while (found := service.query(QUERY, name="decisions_never_followed").json["data"]["insight"]).get("reason"):
        assert found["reason"] == "building"
        assert time.monotonic() < until
        time.sleep(0.1)

    assert [row["id"] for row in found["rows"]] == ["decision-1"]
    assert found["freshness"] == {"engine": "kuzu"}

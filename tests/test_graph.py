"""The mirror of the graph: it holds what all may see, whatever happened to the store or to it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import ledgers
import mirrored
import pytest
from mirrored import assert_mirrors, held

from graphsvc.graph import build, driver, follow, mirror
from graphsvc.graph.driver import Failed, Graph, Refused
from graphsvc.graph.follow import Absent, Follower
from graphsvc.graph.mirror import Mirror, Rows, Unanswered
from graphsvc.graph.place import ASKED, Place, place
from graphsvc.memory.apply import VERSION
from graphsvc.store import database, events

DEADLINE_S = 60
HIDDEN = "velvet"  # said in isolation only


@pytest.fixture
def graph(tmp_path):
    """Where the tests build a graph."""
    return tmp_path / "built.kuzu"


def built(db, path):
    return build.build(db, path, VERSION, lambda *_: None)


def at_end(follower, settings):
    """Bring a follower to the end of the ledger."""
    with closing(database.reader(settings.database)) as db:
        newest = events.position(db)
    while follower.position < newest:
        follower.step()


@pytest.fixture
def following(settings):
    """Follow the store in this process: a function that gives a new follower, and what it told."""
    made = []

    def following():
        told = []
        made.append(Follower(settings.database, place(settings), VERSION, lambda **state: told.append(state)))
        return made[-1], told

    yield following
    for one in made:
        one.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_built_graph_holds_what_the_tables_say(tmp_path, graph, seed):
    chance = random.Random(seed)  # noqa: S311 # a made-up story, no secret
    home = ledgers.Home(tmp_path / "home")
    home.tell(mirrored.Story(projects=2).tell(mirrored.steps(chance, 150)), history=seed % 2 == 0)
    with closing(database.reader(home.settings.database)) as db:
        meta = built(db, graph)
        position = events.position(db)

    assert meta.position == position
    assert_mirrors(graph, home.settings.database)


@pytest.mark.parametrize("seed", range(8))
def test_a_graph_that_follows_is_the_one_that_is_built(tmp_path, graph, seed):
    chance = random.Random(seed)  # noqa: S311 # a made-up story, no secret
    home, story, told = ledgers.Home(tmp_path / "home"), mirrored.Story(), 0
    where, state = place(home.settings), []
    names = mirrored.ALL if seed % 2 else [*mirrored.USUAL, *mirrored.EDGES, *mirrored.EDGES, "on", "off", "copy"]
    home.tell(story.tell(mirrored.steps(chance, 30)))
    for _ in range(3):
        follower = Follower(home.settings.database, where, VERSION, lambda **one: state.append(one))
        for _ in range(4):
            told = len(story.told)
            home.tell(story.tell(mirrored.steps(chance, chance.randint(1, 12), names))[told:], history=False)
            at_end(follower, home.settings)
        follower.close()
        assert_mirrors(where.graph, home.settings.database)
    with closing(database.reader(home.settings.database)) as db:
        built(db, graph)

    assert held(where.graph) == held(graph)
    anew = [one["why"] for one in state if one.get("why")]
    assert anew[0] == "there is none yet"
    assert set(anew[1:]) <= {"much happened", "much happened meanwhile"}, "by what was published"
    assert seed % 2 or len(anew) == 1, "by batches alone"


def test_an_edge_that_is_drawn_again_has_all_its_intervals(talk, settings, following):
    first, second = talk.decided("cents"), talk.decided("euros")
    follower, _ = following()
    follower.step()
    named = {
        "type": "precedes",
        "source": {"type": "decision", "of": first},
        "target": {"type": "decision", "of": second},
    }
    for action in ("add", "retract", "add", "retract", "add"):
        talk.event("edge", "", action=action, **named)
        follower.step()
    follower.close()

    _, edges, _ = held(place(settings).graph)
    drawn = sorted(edge[5:] for edge in edges if edge[0] == "PRECEDES")
    assert len(drawn) == 3
    assert [end for *_, end, _ in drawn].count(None) == 1
    assert_mirrors(place(settings).graph, settings.database)


def test_an_asset_that_others_come_to_know_brings_its_edges(db, talk, settings, following):
    talk.session("private").isolated()
    talk.wrote("docs/report.md")
    [written] = db.execute("SELECT origin FROM events WHERE kind = 'asset'").fetchone()
    talk.session("open").user("hello")
    follower, told = following()
    follower.step()
    talk.decided("as in the report", evidence=[written])
    follower.step()
    known = "SELECT COUNT(*) FROM lineage_edges WHERE dst_type = 'asset' AND type = 'evidence'"
    assert db.execute(known).fetchone()[0] == 1, "of an asset that nobody else knows yet"
    talk.wrote("docs/report.md")
    follower.step()
    follower.close()

    assert sum(one.get("why") is not None for one in told) == 1, "followed, not made anew"
    assert any(edge[0] == "EVIDENCE" and edge[2].startswith("asset-") for edge in held(place(settings).graph)[1])
    assert_mirrors(place(settings).graph, settings.database)


def test_nothing_isolated_is_in_the_files(talk, settings, following):
    follower, _ = following()
    talk.session("private").isolated()
    talk.user(f"{HIDDEN} curtains")
    talk.wrote(f"docs/{HIDDEN}.md", f"# {HIDDEN}\n")
    talk.decided(f"{HIDDEN}, see docs/{HIDDEN}.md", evidence=[talk.user(f"{HIDDEN}!")])
    talk.event("goal", HIDDEN, action="record")
    talk.session("open").decided("plain")
    follower.step()
    talk.session("private").superseded(talk.decided(f"{HIDDEN} again"), HIDDEN)
    talk.session("open").decided(f"not the word, see docs/{HIDDEN.upper()}.md")
    follower.step()

    for path in place(settings).folder.iterdir():  # while it is open, its log too
        assert HIDDEN.encode() not in path.read_bytes(), path
    follower.close()
    for path in place(settings).folder.iterdir():
        assert HIDDEN.encode() not in path.read_bytes(), path
    assert_mirrors(place(settings).graph, settings.database)


def test_what_is_published_is_mirrored(talk, settings, following):
    talk.session("private").isolated()
    said = talk.decided("velvet curtains")
    talk.session("open").user("hello")
    follower, told = following()
    follower.step()
    talk.session("private").event("publish", "", of=[said])
    at_end(follower, settings)
    follower.close()

    assert [one["why"] for one in told if one.get("why")] == ["there is none yet", "much happened"]
    assert "velvet curtains" in held(place(settings).graph)[2].values()
    assert_mirrors(place(settings).graph, settings.database)


def test_many_changes_make_the_file_anew(talk, settings, following, monkeypatch):
    monkeypatch.setattr(follow, "FEW", 3)
    talk.decided("cents")
    follower, told = following()
    follower.step()
    for number in range(10):
        talk.decided(f"euros {number}")
    at_end(follower, settings)
    follower.close()

    assert [one["why"] for one in told if one.get("why")] == ["there is none yet", "much happened"]
    assert_mirrors(place(settings).graph, settings.database)


def test_a_file_that_has_grown_is_made_anew(talk, settings, following, monkeypatch):
    monkeypatch.setattr(follow, "SPARE", 1)
    monkeypatch.setattr(follow, "GROWN", 1)
    monkeypatch.setattr(driver, "LOG", 1)  # each write goes into the file
    talk.decided("cents")
    follower, told = following()
    follower.step()
    for number in range(30):
        talk.decided(f"euros {number}")
        follower.step()
    follower.close()

    assert "its file has grown" in [one.get("why") for one in told]
    assert_mirrors(place(settings).graph, settings.database)


@pytest.fixture
def told(db, talk, graph):
    """A small built graph, open."""
    talk.user("write the report")
    talk.wrote("docs/report.md")
    talk.superseded(talk.decided("cents, see docs/report.md"), "whole euros")
    built(db, graph)
    with closing(Graph(graph)) as one:
        yield one


def asked(graph, text, *, most=10, timeout_ms=1_000, **parameters):
    return graph.ask(text, parameters, most=most, timeout_ms=timeout_ms)


def test_a_question_returns_rows_with_names_and_says_when_there_are_more(told):
    text = "MATCH (n:Node {type: $type}) RETURN n.id AS id, n.status AS status ORDER BY n.number"
    rows, more = asked(told, text, type="decision")

    assert [row["status"] for row in rows] == ["superseded", "active"]
    assert not more
    assert asked(told, text, type="decision", most=1) == (rows[:1], True)


def test_a_question_changes_nothing(told, graph):
    before = told.tallies()

    with pytest.raises(Failed, match="read-only"):
        asked(told, "MATCH (n:Node) DETACH DELETE n")
    told.close()
    with closing(Graph(graph)) as reopened:
        assert reopened.tallies() == before


def test_a_parameter_that_is_missing_or_unknown_is_no_null(told):
    with pytest.raises(ValueError, match="type"):
        asked(told, "MATCH (n:Node {type: $type}) RETURN n.id")
    with pytest.raises(ValueError, match="other"):
        asked(told, "MATCH (n:Node) RETURN n.id", other=1)


def test_a_question_that_takes_too_long_or_is_none_leaves_the_graph_usable(told):
    numbers = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN count(a + b)"
    with pytest.raises(Refused, match="Interrupted"):
        asked(told, numbers, timeout_ms=50)
    with pytest.raises(Refused, match="does not exist"):
        asked(told, "MATCH (n:Nothing) RETURN n")

    assert asked(told, "MATCH (n:Node {type: 'asset'}) RETURN n.path AS path")[0] == [{"path": "docs/report.md"}]


def test_a_path_of_thousands_of_edges_is_walked_to_its_end(db, talk, graph):
    made = [talk.decided(f"choice {number}") for number in range(60)]
    for one, other in pairwise(made):
        ends = {"source": {"type": "decision", "of": one}, "target": {"type": "decision", "of": other}}
        talk.event("edge", "", action="add", type="precedes", **ends)
    built(db, graph)
    with closing(Graph(graph)) as one:
        [first], _ = asked(one, "MATCH (n:Node {type: 'decision'}) RETURN min(n.number) AS number")
        walk = "MATCH (a:Node {id: $id})-[:PRECEDES* SHORTEST 1..5000]->(b:Node) RETURN count(b) AS reached"
        rows, _ = asked(one, walk, id=f"decision-{first['number']}", timeout_ms=20_000)

    assert rows == [{"reached": 59}], "Kuzu itself stops at 30"


@pytest.fixture
def kept(settings, talk):
    """A small store, and a function that keeps its mirror in a process of its own until the test ends."""
    talk.wrote("docs/report.md")
    talk.superseded(talk.decided("cents, see docs/report.md"), "whole euros")
    made = []

    def kept(ready=True):
        made.append(Mirror(settings, VERSION, delay_s=0))
        made[-1].begin()
        if ready:
            until(lambda: made[-1].status().state == "ok")
        return made[-1]

    yield kept
    for one in made:
        one.close()


def until(there):
    end = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


def decisions(answer):
    assert isinstance(answer, Rows), answer
    return {row["type"]: row["nodes"] for row in answer.rows}["decision"]


def test_an_answer_tells_of_what_the_asker_stored_before(kept, talk, db):
    mirror = kept()
    assert decisions(mirror.ask("size", {})) == 2
    for number in range(5):
        talk.decided(f"choice {number}")
        mirror.wake()
        newest = events.position(db)
        answer = mirror.ask("size", {}, after=newest, wait_s=DEADLINE_S)

        assert decisions(answer) == 3 + number
        assert answer.position >= newest


def test_what_is_not_reached_in_time_is_behind(kept, db):
    newest = events.position(db)
    answer = kept().ask("size", {}, after=newest + 1, wait_s=0.01)

    assert answer == Unanswered("behind", f"the graph stands at {newest}")


def test_rows_are_bounded(kept):
    answer = kept().ask("size", {}, most=1)

    assert len(answer.rows) == 1
    assert answer.more


def test_a_question_that_there_is_not_is_the_askers_fault(kept):
    mirror = kept()
    for name in ("nothing", "../explore/node", "size/../size", ""):
        with pytest.raises(ValueError, match="there is no question"):
            mirror.ask(name, {})
    with pytest.raises(ValueError, match="takes"):
        mirror.ask("size", {"id": "event-1"})


def test_the_process_begins_when_it_is_first_asked(settings, kept):
    late = Mirror(settings, VERSION, delay_s=DEADLINE_S * 10)
    late.begin()
    try:
        assert not place(settings).folder.exists()
        assert isinstance(late.ask("size", {}, wait_s=DEADLINE_S), Rows)
    finally:
        late.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_process_that_dies_or_hangs_is_replaced(kept, monkeypatch, how):
    monkeypatch.setattr(mirror, "SILENT_S", 2.0)
    one = kept()
    before = one._child.process.pid
    os.kill(before, how)
    begun = time.monotonic()
    answer = one.ask("size", {}, wait_s=0.1, seconds=0.1)

    assert isinstance(answer, Rows | Unanswered)
    assert time.monotonic() - begun < 1, "nobody waits for it"
    until(lambda: one._child is not None and one._child.process.pid != before)
    until(lambda: one.status().state == "ok")
    assert decisions(one.ask("size", {})) == 2


def test_a_fault_makes_the_next_process_make_the_file_anew(kept, settings):
    one = kept()
    os.kill(one._child.process.pid, signal.SIGSEGV)
    until(lambda: one.status().state != "ok")
    until(lambda: one.status().state == "ok")
    one.close()

    assert place(settings).damaged.exists()
    assert not place(settings).doubt.exists()
    assert_mirrors(place(settings).graph, settings.database)


def assert_heals(settings, kept, how):
    """Assert that a graph is asked as before after its file was spoiled, and holds what the tables say."""
    kept().close()
    how(place(settings).graph)
    one = kept()
    assert decisions(one.ask("size", {})) == 2
    one.close()
    assert_mirrors(place(settings).graph, settings.database)


@pytest.mark.parametrize("seed", range(6))
def test_a_file_that_was_cut_heals(kept, settings, seed):
    chance = random.Random(seed)  # noqa: S311 # no secret

    def cut(path):
        with path.open("r+b") as file:
            file.truncate(chance.randrange(path.stat().st_size))

    assert_heals(settings, kept, cut)


@pytest.mark.parametrize("seed", range(6))
def test_a_file_with_pages_of_noise_harms_nobody_and_is_made_anew_when_that_is_asked(kept, settings, seed):
    """What counts and sums do not show, a changed letter of a title, stays until somebody asks."""
    chance = random.Random(seed)  # noqa: S311 # no secret

    def spoil(path):
        with path.open("r+b") as file:
            file.seek(4096 * chance.randrange(path.stat().st_size // 4096))
            file.write(chance.randbytes(4096 * 4))

    where = place(settings)
    kept().close()
    spoil(where.graph)
    one = kept()
    assert decisions(one.ask("size", {})) == 2
    one.close()
    where.doubt.write_bytes(ASKED)
    one = kept()
    assert decisions(one.ask("size", {})) == 2
    one.close()
    assert_mirrors(where.graph, settings.database)


def test_a_deleted_file_heals(kept, settings):
    assert_heals(settings, kept, lambda path: path.unlink())


def test_a_file_of_another_home_heals(kept, settings, tmp_path):
    other = ledgers.Home(tmp_path / "other")
    other.tell(mirrored.Story().tell(mirrored.steps(random.Random(3), 100)))  # noqa: S311 # no secret
    with closing(database.reader(other.settings.database)) as db:
        built(db, tmp_path / "other.kuzu")

    assert_heals(settings, kept, lambda path: (tmp_path / "other.kuzu").replace(path))


def test_a_file_that_another_version_made_is_made_anew(kept, settings):
    def another(path):
        with closing(Graph(path)) as one:
            one._connection.execute("MATCH (m:Meta) SET m.versions = 'another'")
            one._connection.execute("MATCH (n:Node) SET n.title = 'another'")

    assert_heals(settings, kept, another)
    assert not place(settings).damaged.exists()


def test_rows_that_are_wrong_are_found(kept, settings):
    def wrong(path):
        with closing(Graph(path)) as one:
            one._connection.execute("MATCH (n:Node {type: 'decision'}) DETACH DELETE n")

    assert_heals(settings, kept, wrong)


def test_a_file_that_another_process_has_open_is_waited_for(kept, settings):
    kept().close()
    script = (
        "import sys, kuzu\n"
        "database = kuzu.Database(sys.argv[1], buffer_pool_size=64 << 20, max_db_size=1 << 30)\n"
        "print('open', flush=True)\nsys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, place(settings).graph], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"open\n"
        one = kept(ready=False)
        until(lambda: one.status().state == "absent")
        assert one.status().why == "another process has its file open"
        assert one.ask("size", {}) == Unanswered("absent", "another process has its file open")
    finally:
        holder.communicate()

    until(lambda: one.status().state == "ok")
    assert decisions(one.ask("size", {})) == 2
    assert not place(settings).damaged.exists()


def test_two_keepers_take_turns(kept):
    first = kept()
    second = kept(ready=False)
    until(lambda: second.status().state == "absent")
    assert second.status().why == "another process keeps it"
    first.close()

    until(lambda: second.status().state == "ok")


def test_tables_of_other_rules_are_not_mirrored(settings, talk, following):
    talk.user("hello")
    follower = Follower(settings.database, Place(settings.home / "graph"), "0", lambda **_: None)

    with pytest.raises(Absent, match="other rules"):
        follower.step()
    follower.close()


def test_a_service_answers_while_its_graph_heals(serving, settings, kept, talk):
    kept().close()
    with place(settings).graph.open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) // 2)
    service = serving()
    stats = "{ stats { events position graph { status position lag } } }"
    first = service.query(stats).json["data"]["stats"]
    assert first["graph"] == {"status": "building", "position": 0, "lag": first["position"]}
    assert first["events"] == first["position"]

    until(lambda: service.ask("GET", "/health").json["graph"]["status"] == "ok")
    stated = 'mutation { decision_record(text: "tea", project: "%s") { ... on DecisionChanged { position } } }'
    [outcome] = service.query(stated % talk.project).json["data"].values()
    until(lambda: service.query(stats).json["data"]["stats"]["graph"]["position"] == outcome["position"])
    assert service.end().count("the graph is") <= 1
    assert_mirrors(place(settings).graph, settings.database)


def test_the_process_ends_with_the_service(serving, settings, kept):
    service = serving()
    until(lambda: service.ask("GET", "/health").json["graph"]["status"] == "ok")
    assert len(processes(settings)) == 1
    service.process.kill()
    until(lambda: not processes(settings))


def processes(settings):
    """List the processes that keep the mirror of this home."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(place(settings).folder).encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


def test_the_command_line_makes_exports_and_tells(run, settings, kept, tmp_path):
    assert run("graph", "status", "--json").json["status"] == "no service"
    assert run("graph", "rebuild", "--json").json["position"] > 0
    assert_mirrors(place(settings).graph, settings.database)
    got = run("graph", "export", str(tmp_path / "copy"), "--json").json
    assert_mirrors(tmp_path / "copy" / "graph.kuzu", settings.database)

    assert got["position"] == run("graph", "rebuild", "--json").json["position"]
    again = run("graph", "export", str(tmp_path / "copy"))
    assert (again.code, "is not empty" in again.err) == (2, True)


def test_the_command_line_asks_a_running_service(run, serving, settings, kept, tmp_path):
    serving()
    assert run("graph", "status", "--json").json["status"] in {"building", "ok"}
    made = run("graph", "rebuild", "--json")
    assert made.code == 0, made.err
    status = run("graph", "status", "--json").json
    assert (status["status"], status["position"], status["lag"]) == ("ok", made.json["position"], 0)
    assert run("graph", "export", str(tmp_path / "copy")).code == 0
    assert run("stats", "--json").json["graph"] == {"status": "ok", "position": status["position"]}
    found = {one["check"]: one for one in run("doctor", "--json").json["checks"]}
    assert found["graph"]["found"] == f"mirrors the ledger, at {status['position']}"
    assert_mirrors(tmp_path / "copy" / "graph.kuzu", settings.database)

"""`graphsvc audit isolation`: the proof on the user's own store, which stays as it is, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import stat
import time
from contextlib import closing

import pytest
import stories

from graphsvc.audit import asking, proof, reads, twin
from graphsvc.config import Settings
from graphsvc.model import EventKind
from graphsvc.recall import targets
from graphsvc.recall.scope import Asker
from graphsvc.store import counts, database, events, visibility
from graphsvc.store.visibility import Viewer

ISOLATED = ["vermilion", "Carmine", "crimson"]


@pytest.fixture
def aside(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    folder = tmp_path / "aside"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def told(db, talk):
    """Two isolated sessions of one project, one beside them and one elsewhere; something is published."""
    talk.user("The ferry timetable is public.")
    talk.wrote("docs/plan.md", "# Plan\n\nBoats.\n")
    for name, word in (("s2", "vermilion"), ("s3", "crimson")):
        talk.session(name).user("What is planned here?")
        talk.isolated()
        talk.user(f"We decided: use the {word} ledger for all of it.")
        talk.wrote(f"docs/{word}.md", f"# Carmine\n\nThe {word} plan is for nobody else.\n")
        talk.edited(f"docs/{word}.md", "# Carmine", f"# Carmine {word}")
        talk.decided(f"The {word} island is ours.")
    shown = talk.session("s2").user("This may be known: the boats are blue.")
    talk.event("publish", "", of=[shown])
    talk.session("s1").edited("docs/plan.md", "Boats.", "Blue boats.")
    talk.project = "/srv/talk/island"
    talk.session("s4").user("Another island.")
    return talk


def test_nothing_leaks_and_the_store_stays_as_it_is(told, db, run, settings, aside):
    before = [tuple(row) for row in db.execute("SELECT * FROM events ORDER BY id")]
    ran = run("audit", "isolation", "--sample", "4", "--json")
    said = ran.json

    assert ran.code == 0
    assert said["equal"]
    assert said["leaks"] == []
    assert {one["read"] for one in said["reads"]} >= {name for _, name in reads.fields()} - {"insight"}
    assert all(one["comparisons"] and not one["differences"] for one in said["reads"])
    assert len([one for one in said["viewers"] if one.startswith("an isolated session")]) == 2
    assert {one.rpartition(" (")[0] for one in said["viewers"]} == {
        *("the owner", "the owner, one project", "a viewer of one project"),
        *("a session beside", "a session elsewhere", "an isolated session"),
    }
    assert said["isolated"]["events"] > 10 < said["isolated"]["texts"]
    assert said["asked"]["sampled"]
    assert [tuple(row) for row in db.execute("SELECT * FROM events ORDER BY id")] == before
    assert list(aside.iterdir()) == []


def test_a_leak_is_named_and_its_text_is_not(told, run, aside, monkeypatch):
    monkeypatch.setattr(targets, "visible", lambda *_: True)

    ran = run("audit", "isolation", "--sample", "4")

    assert ran.code == 1
    assert "LEAK: nav to the owner (1), over tool: " in ran.err
    assert "something leaks" in ran.err
    assert next(line for line in ran.out.splitlines() if line.startswith("nav\t")).split("\t")[3] != "0"
    assert not any(word in ran.out + ran.err for word in ISOLATED)
    assert list(aside.iterdir()) == []


def test_a_number_that_counts_what_is_isolated_is_a_leak(told, run, aside, monkeypatch):
    monkeypatch.setattr(counts, "clause", lambda *_: ("1", []))

    ran = run("audit", "isolation", "--sample", "4", "--json")

    assert ran.code == 1
    assert {one["field"] for one in ran.json["leaks"]} == {"stats", "aggregate"}
    assert not any(word in ran.out for word in ISOLATED)


def test_an_isolated_text_is_found_even_where_both_answers_hold_it():
    call = reads.Call(reads.Sort.QUERY, "events", "", {"query": "asked by us"})
    judge = [
        proof.judge(call, "in process", "the owner", here, here, ["the vermilion plan", "asked by us"])[0]
        for here in ({"body": 'he said "the vermilion plan" twice'}, {"body": "asked by us"}, {"body": "nothing"})
    ]

    assert [leak and leak.secret for leak in judge] == [True, None, None]


def test_only_a_mark_that_differs_is_no_leak():
    call = reads.Call(reads.Sort.QUERY, "node", "", {})
    marked = {"items": [{"label": "a"}, {"label": targets.HIDDEN}], "hidden": True}

    assert proof.judge(call, "tool", "x", marked, {"items": [{"label": "a"}], "hidden": False}) == (None, True)
    leak, _ = proof.judge(call, "tool", "x", marked, {"items": [{"label": "b"}], "hidden": False})
    assert leak is not None
    assert leak.where == "items[].label"


def test_a_twin_holds_blanks_at_the_same_places(told, settings, aside):
    with twin.aside(settings) as folder, twin.twins(folder, Viewer(everywhere=True), lambda *_: None) as pair:
        here, there = (list(events.after(place.db, 0)) for place in (pair.told, pair.blank))
        hidden = set(visibility.unseen(pair.told.db, Viewer()))

        assert pair.blanks == len(hidden)
        assert [(one.id, one.seq, one.session, one.origin, one.at) for one in here] == [
            (one.id, one.seq, one.session, one.origin, one.at) for one in there
        ]
        assert {one.id for one, other in zip(here, there, strict=True) if one != other} <= hidden
        blanks = [one for one in there if one.id in hidden]
        assert {(one.kind, one.body) for one in blanks} == {(EventKind.RAW, ""), (EventKind.ISOLATION, "on")} | {
            (EventKind.PUBLISH, "")
        }
        assert visibility.unseen(pair.blank.db, Viewer()) == sorted(hidden)
        assert database.lost_triggers(pair.blank.db) == []
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(one.stat().st_mode) for one in folder.rglob("*.db*")} == {0o600}


def test_what_a_published_row_rests_on_goes_along_with_it(talk, db, run, aside):
    talk.user("hello")
    talk.session("s2").user("hello, too")
    talk.isolated()
    talk.wrote("docs/plan.md", "# Plan\n\nBoats.\n")
    talk.edited("docs/plan.md", "Boats.", "Blue boats.")
    old = talk.decided("Boats are blue.")
    talk.superseded(old, "Boats are green.")
    edited = db.execute("SELECT MAX(event) AS event FROM asset_versions").fetchone()["event"]
    talk.event("publish", "", of=[events.get(db, edited).origin, old])

    said = run("audit", "isolation", "--sample", "20", "--json").json

    assert said["leaks"] == []
    assert said["isolated"]["kept"] > 3
    assert any(one["why"].startswith("went along with") for one in said["skipped"])


def test_sessions_that_hold_what_another_one_isolates_are_no_strangers(db, talk, clock, aside, settings):
    said = talk.session("s1").user("hello")
    talk.isolated()
    secret = talk.user("the vermilion plan")
    talk.session("heir").event("user_message", "the vermilion plan", origin=secret)
    talk.session("s2").user("beside")

    closed, own = twin.askers(db, 5, stories.dice(0))

    assert said
    assert {asker.session_id for name, asker in closed if name == "a session beside"} == {"s2"}
    assert {asker.session_id for _, asker in own} == {"s1", "heir"}


def test_an_empty_store_says_that_there_is_nothing(run, request, aside):
    for there in (False, True):
        if there:
            request.getfixturevalue("db")
        ran = run("audit", "isolation", "--json")

        assert ran.code == 3
        assert "nothing is stored" in ran.json["error"]["message"]


def test_isolated_texts_of_every_script_are_looked_for(db, talk):
    talk.user("hello")
    talk.isolated()
    talk.user("口令是向日葵二零二六，谁也不要告诉。")
    talk.user("the vermilion plan is for nobody")
    talk.user("said in the open as well")
    talk.isolated(on=False)
    talk.user("said in the open as well")

    found = twin.sample(db, 4, stories.dice(0), lambda *_: None)

    assert set(found.secrets) == {"口令是向日葵二零二六，谁也不要告诉。", "the vermilion plan is for nobody"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_copies_are_removed_when_it_is_stopped(told, settings, forks, aside, tmp_path, number):
    process = forks.start(
        *("audit", "isolation", "--sample", "200"),
        env={**os.environ, "GRAPHSVC_HOME": str(settings.home), "TMPDIR": str(aside)},
        cwd=tmp_path,
    )
    with closing(process):
        end = time.monotonic() + 30
        while not (found := list(aside.glob("*/blank-0/graphsvc.db"))):
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < end
            time.sleep(0.01)
        assert stat.S_IMODE(found[0].parent.parent.stat().st_mode) == 0o700
        process.send_signal(number)
        code = process.wait()

    assert code == 128 + number
    assert list(aside.iterdir()) == []


def test_every_story_has_an_equal_twin(aside, tmp_path):
    """The twin of a replay, beside the one that was told with blanks."""
    home = Settings(home=tmp_path / "told" / "home")
    with stories.worlds(stories.tell(11), tmp_path) as (world, _):
        pool = stories.pool(world)
    with twin.aside(home) as folder, twin.twins(folder, Viewer(everywhere=True), lambda *_: None) as pair:
        asker = Asker(session_id="open")
        calls = [
            one for one in reads.calls(pool, stories.dice(0), often=1) if proof.applies(one, asker, mirrored=False)
        ]
        ways = asking.carry(pair.told, asker), asking.carry(pair.blank, asker)
        found = [leak for way in asking.WAYS for _, leak, _ in proof.compare(calls, way, "open", *ways) if leak]

    assert found == []

"""A ledger moves: export then capture gives an equal store, merging gives the same events, and twice adds nothing."""

from __future__ import annotations

import itertools
import json
import shutil
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ledgers import QUIET, START, STEPS, TOKEN, Home, Story, equal, histories

from graphsvc.clock import utc_text
from graphsvc.errors import InvalidInput
from graphsvc.importers import neutral
from graphsvc.memory import export, rebuild
from graphsvc.model import Event, EventKind
from graphsvc.store import database, events, visibility
from graphsvc.store.visibility import Viewer

ROOT = Path(__file__).resolve().parent.parent
CHECK = jsonschema.Draft202012Validator(json.loads((ROOT / "schema" / "event.json").read_text("utf-8")))
# Not shrunk: every step of that is two homes and four commands.
tried = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)


@pytest.fixture(scope="module")
def homes(tmp_path_factory, blank):
    """Return a home that nobody has used yet, at every call."""
    folder, numbers = tmp_path_factory.mktemp("homes"), itertools.count()
    return lambda: Home(shutil.copytree(blank, folder / str(next(numbers))))


def _event(**fields):
    return Event(
        **{
            "session_id": "s1",
            "kind": EventKind.USER_MESSAGE,
            "origin": "o1",
            "body": "Implement login. We decided: tea is free.",
            "ts": utc_text(START),
            "project": "/srv/p",
            **fields,
        }
    )


def _lines(log):
    return [json.loads(line) for line in log.splitlines()]


@tried
@given(steps=histories(QUIET), projects=st.integers(1, 2))
def test_capturing_a_whole_ledger_in_an_empty_home_gives_an_equal_store(homes, steps, projects):
    here, there = homes(), homes()
    here.tell(Story(projects=projects).tell(steps))

    log = here.export()
    got = there.capture(log)

    assert got["accepted"] == len(log.splitlines()) == len(here.ledger())
    equal(here, there)
    assert there.export() == log
    assert there.capture(log)["accepted"] == 0
    assert there.ledger() == here.ledger()


@tried
@given(steps=histories(STEPS))
def test_what_one_session_hides_moves_with_it_and_stays_hidden(homes, steps):
    here, there = homes(), homes()
    alone = [(what, 0 if what in {"on", "off", "publish"} else session, n) for what, session, n in steps]
    here.tell(Story().tell([("user", 0, 0), *alone]))

    there.capture(here.export("--viewer", "s1"))

    equal(here, there)
    if any(what == "on" for what, _, _ in alone):
        assert there.rows("SELECT id FROM events WHERE isolated = 1")
    assert there.export() == here.export()


@tried
@given(steps=histories(STEPS))
def test_who_sees_less_exports_less_and_it_looks_the_same_there(homes, steps):
    here, there = homes(), homes()
    here.tell(Story().tell(steps))
    hidden = {int(row["event"]) for row in here.rows("SELECT event FROM hidden")}
    shown = [row for row in here.ledger() if row["id"] not in hidden]

    ran = here.run("export", "--json")
    there.capture(ran.out)

    told = json.loads(ran.err)
    assert told["notes"] == ([visibility.NOTE] if hidden else [])
    assert told["events"] == len(shown)
    names = ("session", "origin", "kind", "body", "packed", "meta", "packed_meta", "ts", "at", "received_at", "actor")
    assert [[row[name] for name in names] for row in there.ledger()] == [[row[name] for name in names] for row in shown]
    assert there.tables()["hidden"] == []
    assert there.holds() == []


@tried
@given(steps=histories(STEPS), cut=st.integers(0, 60), seed=st.randoms(use_true_random=False))
def test_a_part_before_the_whole_changes_nothing_of_what_is_stored(homes, steps, cut, seed):
    here, there, shuffled = homes(), homes(), homes()
    here.tell(Story().tell(steps))
    log = here.export()
    lines = log.splitlines(keepends=True)

    there.capture(b"".join(lines[cut % (len(lines) + 1) :]))
    there.capture(log)
    mixed = seed.sample(lines, len(lines))
    shuffled.capture(b"".join(mixed))

    whole = homes()
    whole.capture(log)
    assert there.content() == shuffled.content() == whole.content()
    assert there.holds() == shuffled.holds() == []
    assert there.capture(log)["accepted"] == shuffled.capture(log)["accepted"] == 0


@tried
@given(steps=histories(STEPS), cut=st.integers(0, 60))
def test_a_transcript_may_come_after_what_followed_from_it(homes, steps, cut):
    here, there = homes(), homes()
    told = Story().tell(steps)
    here.tell(told)
    lines = here.export().splitlines(keepends=True)

    there.capture(b"".join(lines[cut % (len(lines) + 1) :]))
    there.tell(told)
    once = there.ledger()
    there.tell(told)

    assert there.ledger() == once
    assert there.holds() == []


@tried
@given(one=histories(STEPS, 25), two=histories(STEPS, 25), both=histories(STEPS, 15))
def test_two_machines_logs_give_the_same_events_whichever_comes_first(homes, one, two, both):
    a, b = homes(), homes()
    shared = Story().tell(both)
    a.tell([*Story(machine="a").tell(one), *shared])
    b.tell([*shared[::-1], *Story(machine="b").tell(two), *_altered(shared)])
    logs = a.export(), b.export()

    ab, ba = homes(), homes()
    for home, order in ((ab, logs), (ba, logs[::-1])):
        for log in order:
            home.capture(log)

    assert ab.said() == ba.said()
    assert ab.holds() == ba.holds() == []
    before = ab.ledger(), ba.ledger()
    ab.capture(ba.export())
    ba.capture(ab.export())
    for home, order in ((ab, logs), (ba, logs)):
        for log in order:
            home.capture(log)
    assert ab.said() == ba.said()
    assert (ab.ledger()[: len(before[0])], ba.ledger()[: len(before[1])]) == before


def _altered(told):
    """What the other machine heard under the same ids: here and there another text, or in another session."""
    for number, event in enumerate(told):
        if number % 3 == 0:
            yield replace(event, body=f"{event.body}!")
        elif number % 3 == 1:
            yield replace(event, session_id="only-b")


@tried
@given(one=histories(STEPS, 25), two=histories(STEPS, 25), copied=st.lists(st.integers(0, 40), max_size=10))
def test_logs_that_agree_give_the_very_same_set(homes, one, two, copied):
    a, b = homes(), homes()
    mine = Story(machine="a", folder="/srv/story").tell(one)
    plain = [event for event in mine if event.kind in {EventKind.USER_MESSAGE, EventKind.ASSISTANT_MESSAGE}]
    resumed = [replace(plain[n % len(plain)], session_id="resumed on b") for n in copied if plain]
    a.tell(mine)
    b.tell([*_once(resumed), *Story(machine="b", folder="/srv/story").tell(two)])
    logs = a.export(), b.export()

    ab, ba = homes(), homes()
    for home, order in ((ab, logs), (ba, logs[::-1])):
        for log in order:
            home.capture(log)

    assert ab.content() == ba.content()
    assert ab.holds() == ba.holds() == []


def test_of_an_event_that_two_logs_met_in_two_sessions_neither_holds_a_copy_of_its_own(homes):
    a, b, ab = homes(), homes(), homes()
    a.tell([_event(body="tea")])
    b.tell([_event(body="tea", session_id="s2")])

    for home in (a, b, a):
        ab.capture(home.export())

    assert {row["origin"] for row in ab.ledger()} == {"o1", "member:s1:o1", "member:s2:o1"}
    held = ab.rows("SELECT s.host_id FROM membership m JOIN sessions s ON s.id = m.session")
    assert held == [{"host_id": "s2"}]


def _once(told):
    return {(event.origin, event.body): event for event in told if event.origin}.values()


def test_the_demo_moves_by_command_and_by_import(run, tmp_path):
    assert run("import", str(ROOT / "examples" / "demo"), "--json").code == 0
    ran = run("export", "--json")
    (tmp_path / "log.jsonl").write_text(ran.out)
    there, imported = ({"GRAPHSVC_HOME": str(tmp_path / name)} for name in ("there", "imported"))

    got = run("capture", "--json", stdin=ran.out.encode(), env=there)
    report = run("import", "log.jsonl", "--json", env=imported).json

    assert (ran.code, json.loads(ran.err)) == (0, {"events": 60, "position": 60, "notes": []})
    assert (got.json["accepted"], got.json["rejected"]) == (60, [])
    assert (report["events_added"], report["gaps"]) == (60, [])
    assert run("export", env=there).out == run("export", env=imported).out == ran.out
    for env in (there, imported):
        assert run("rebuild", "--check", env=env).code == 0
        assert run("search", "rounding error", "--project", "all", env=env).code == 0


def test_export_goes_on_where_the_last_one_ended_and_stays_in_its_project(homes):
    here, there = homes(), homes()
    here.tell([_event(), _event(origin="o2", session_id="s2", project="/srv/q")])
    first = here.run("export", "--json")
    there.capture(first.out)
    here.tell([_event(origin="o3", body="later")])

    rest = here.export("--since", str(json.loads(first.err)["position"]))

    assert [line["body"] for line in _lines(rest)] == ["later"]
    there.capture(rest)
    equal(here, there)
    assert {line["project"] for line in _lines(here.export("--project", "/srv/q"))} == {"/srv/q"}
    assert "unknown" in here.run("export", "--project", "/srv/none", code=2).err


def test_what_is_said_to_a_person_stands_beside_the_lines(homes):
    here = homes()
    here.tell([_event(), _event(origin="o2", body="/thread-iso")])

    ran = here.run("export")

    assert visibility.NOTE in ran.err
    assert "graphsvc export --since 4" in ran.err
    assert len(_lines(ran.out)) == 2


def test_a_published_event_looks_shared_where_its_publishing_is_not_seen(homes):
    here, there, whole = homes(), homes(), homes()
    here.tell([_event(origin="on", body="/thread-iso"), _event(body="mine")])
    here.tell([_event(origin="p", kind=EventKind.PUBLISH, body="", meta={"of": ["o1"]})])

    there.capture(here.export())
    whole.capture(here.export("--viewer", "s1"))

    assert [(row["body"], row["isolated"]) for row in there.ledger()] == [(b"mine", 0)]
    equal(here, whole)


def test_times_of_the_first_ledger_are_kept(homes):
    here, there = homes(), homes()
    said = {"body": "tea", "ts": None}
    here.tell([_event(), _event(origin="o2", **said), _event(origin="o3", session_id="s2", **said)])

    there.capture(b"".join(here.export().splitlines(keepends=True)[-2:]))

    kept = [(row["at"], row["received_at"], row["ts"]) for row in there.ledger()]
    assert kept == [(row["at"], row["received_at"], row["ts"]) for row in here.ledger()[-2:]]


def test_what_a_rule_made_may_come_before_its_cause(homes):
    here, there = homes(), homes()
    told = [_event(), _event(origin="o2", body="/thread-iso"), _event(origin="o3", body="/thread-uniso")]
    here.tell(told)
    lines = here.export("--viewer", "s1").splitlines(keepends=True)
    made = [line for line in lines if json.loads(line)["origin"].startswith("rule:")]
    there.capture(b"".join(made))

    there.tell(told)

    assert len(made) == 3
    assert there.content() == here.content()
    assert there.holds() == []


def test_of_two_contents_under_one_origin_both_stay_and_the_first_keeps_the_name(homes):
    a, b = homes(), homes()
    a.tell([_event(body="tea")])
    b.tell([_event(body="milk"), _event(body="tea")])
    logs = a.export(), b.export()

    for home in (a, b):
        for log in (*logs, a.export(), b.export()):
            home.capture(log)

    for home, bodies in ((a, [b"tea", b"milk"]), (b, [b"milk", b"tea"])):
        rows = home.ledger()
        assert [(row["origin"].partition("#")[0], row["body"]) for row in rows] == [("o1", body) for body in bodies]
        assert json.loads(rows[1]["meta"])["conflicts_with"] == "o1"


def test_what_fits_elsewhere_and_not_here_is_taken_as_it_was_there(homes):
    done = _event(origin="d", kind=EventKind.GOAL, body="ship", meta={"action": "complete", "of": "g"})
    goal = _event(origin="g", kind=EventKind.GOAL, body="ship", meta={"action": "record"})
    a, b, ab, ba = homes(), homes(), homes(), homes()
    a.tell([goal, done])
    b.tell([done])  # a history without its beginning: raw

    for home, logs in ((ab, (a, b)), (ba, (b, a))):
        for one in logs:
            home.capture(one.export())

    assert ab.said() == ba.said()
    for home in (ab, ba):
        assert home.rows("SELECT status FROM records") == [{"status": "completed"}]


def test_a_session_of_another_project_is_refused_with_both_names(homes):
    a, b = homes(), homes()
    a.tell([_event()])
    b.tell([_event(origin="o2", project="/srv/q", body="tea")])

    ran = b.run("capture", "--json", stdin=a.export(), code=2)

    assert {bad["code"] for bad in json.loads(ran.out)["rejected"]} == {"project-conflict"}
    assert "/srv/q" in json.loads(ran.out)["rejected"][0]["message"]
    assert len(b.ledger()) == 1


def test_a_log_can_be_filed_under_the_name_its_project_has_here(homes, tmp_path):
    a, b = homes(), homes()
    told = Story(folder="/srv/q").tell([("wrote", 0, 1), ("user", 0, 1), ("decided", 1, 2)])
    b.tell(told)
    a.tell([replace(event, project="/srv/p") for event in told])
    (tmp_path / "log.jsonl").write_bytes(a.export())
    before = b.content()

    report = json.loads(b.run("import", str(tmp_path / "log.jsonl"), "--project", "/srv/q", "--json").out)

    assert (report["gaps"], report["duplicates"]) == ([], len(a.ledger()) - report["events_added"])
    assert {row["project"] for row in b.ledger()} == {"/srv/q"}
    assert before <= b.content()
    assert b.holds() == []


def test_others_go_on_writing_while_the_ledger_is_exported(homes):
    here = homes()
    here.tell([_event(origin=f"o{number}", body="first") for number in range(5)])
    with closing(rebuild.connect(here.settings)) as db:
        lines = export.export(db, Viewer(everywhere=True), 0, events.position(db))
        next(lines)
        here.tell([_event(origin="late", body="late")])
        rest = [json.loads(line)["body"] for _, line in lines]

    assert rest == ["first"] * 4


def test_a_large_ledger_is_exported_one_event_at_a_time(homes):
    here = homes()
    here.tell([_event(origin=f"o{number}", body=f"{number}" * 300_000, kind=EventKind.RAW) for number in range(40)])
    with closing(database.connect(here.settings)) as db:
        tracemalloc.start()
        try:
            size = sum(len(line) for _, line in export.export(db, Viewer(everywhere=True), 0, 10**6))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert size > 20_000_000
    assert peak < 12_000_000


ENTRY = {"received_at": "2026-11-30T09:00:00.000000Z", "isolated": False}
LINE = {"session_id": "s1", "kind": "user_message", "origin": "o1", "body": "text"}
SAMPLES = {
    "plain": (LINE, True),
    "entry": ({**LINE, "ledger": ENTRY}, True),
    "no entry": ({**LINE, "ledger": None}, True),
    "entry of a rule": ({**LINE, "origin": "rule:o1:0", "kind": "asset", "ledger": ENTRY}, True),
    "odd meta of an entry": ({**LINE, "meta": {"tool_name": 5}, "ledger": ENTRY}, True),
    "odd meta": ({**LINE, "meta": {"tool_name": 5}}, False),
    "origin of a rule": ({**LINE, "origin": "rule:o1:0"}, False),
    "origin of a member": ({**LINE, "origin": "member:s:o1", "ledger": None}, False),
    "kind of a rule": ({**LINE, "kind": "asset"}, False),
    "long origin": ({**LINE, "origin": "x" * 1025}, False),
    "long origin of an entry": ({**LINE, "origin": "x" * 4096, "ledger": ENTRY}, True),
    "longer origin of an entry": ({**LINE, "origin": "x" * 4097, "ledger": ENTRY}, False),
    "entry without its time": ({**LINE, "ledger": {"isolated": False}}, False),
    "entry without isolation": ({**LINE, "ledger": {"received_at": ENTRY["received_at"]}}, False),
    "entry of words": ({**LINE, "ledger": {**ENTRY, "isolated": "no"}}, False),
    "entry with more": ({**LINE, "ledger": {**ENTRY, "id": 1}}, False),
    "entry that is a list": ({**LINE, "ledger": []}, False),
    "entry at no time": ({**LINE, "ledger": {**ENTRY, "at": 5}}, False),
}


@pytest.mark.parametrize(("line", "good"), SAMPLES.values(), ids=SAMPLES)
def test_the_schema_of_a_line_says_what_is_taken(homes, line, good):
    home = homes()

    ran = home.run("capture", "--json", stdin=json.dumps(line).encode(), code=None)

    assert CHECK.is_valid(line) is good
    assert (ran.code, len(home.ledger())) == ((0, 1) if good else (2, 0))


def test_exported_lines_are_what_the_schema_says(homes):
    here = homes()
    here.tell(Story().tell([(step, number % 3, number) for number, step in enumerate([*STEPS, *STEPS])]))

    lines = _lines(here.export())

    assert len({line["kind"] for line in lines}) >= 15
    for line in lines:
        CHECK.validate(line)


def test_a_time_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match=r"ledger\.received_at"):
        neutral.parse_event({**LINE, "ledger": {**ENTRY, "received_at": "yesterday"}})


def test_no_secret_gets_in_with_a_log(homes):
    home = homes()
    line = {**LINE, "origin": f"rule:{TOKEN}:0", "body": f"{TOKEN} <private>x</private>", "meta": {"a": TOKEN}}

    home.capture(json.dumps({**line, "ledger": ENTRY}).encode())
    home.capture(json.dumps({**line, "ledger": ENTRY}).encode())

    assert TOKEN not in repr(home.ledger())
    assert len(home.ledger()) == 1


@tried
@given(lines=st.lists(st.tuples(st.sampled_from(list(EventKind)), st.integers(0, 8), st.integers(0, 8)), max_size=30))
def test_no_entry_however_odd_breaks_a_batch(homes, lines):
    home = homes()
    log = [
        {
            "session_id": f"s{n % 3}",
            "kind": kind,
            "origin": f"{('', 'rule:', 'member:s1:')[n % 3]}o{m}",
            "body": ("docs/a.md", "on", "{}", "tea", "")[m % 5],
            "meta": {
                "action": ("record", "supersede", "member", "write", "commit", "complete", "on", "promote", 5)[m],
                **dict.fromkeys(("of", "call", "cause", "basis", "ref", "path", "key", "parent"), f"o{n}"),
                **{name: [f"o{n}", n] for name in ("evidence", "replaces", "paths", "todos")},
                **{
                    name: (f"o{n}", "references", [n], {})[m % 4]
                    for name in ("kind", "type", "source", "target", "title")
                },
                "tool_use_id": f"o{n}",
                "tool_name": ("Write", "Bash", 7)[n % 3],
            },
            "ledger": {**ENTRY, "isolated": n == 0},
        }
        for kind, n, m in lines
    ]

    home.capture(b"".join(json.dumps(line).encode() + b"\n" for line in log))

    assert home.holds() == []

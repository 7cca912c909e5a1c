"""What is said while a project is paused stays out, whichever way and however late it comes."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graphsvc.memory import rebuild
from graphsvc.store import database, events

SHOP, FARM = "/srv/shop", "/srv/farm"
NOW = datetime.now(UTC)
BEFORE, AFTER = NOW - timedelta(days=1), NOW + timedelta(days=1)
CAPTURE = "mutation($e: [EventInput!]!) { capture(events: $e) { accepted rejected { code message } } }"


def event(body: str = "hello", **fields: object) -> dict[str, object]:
    made = {"session_id": "s1", "kind": "user_message", "origin": body, "body": body, "project": SHOP, **fields}
    return {name: value for name, value in made.items() if value is not None}


def lines(*told: dict[str, object]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in told)


@pytest.fixture
def told(settings):
    """Return the bodies in the store."""

    def told() -> list[str]:
        with closing(database.connect(settings)) as db:
            return [one.body for one in events.after(db, 0)]

    return told


@pytest.fixture
def graphql(settings):
    """Capture through GraphQL."""
    from graphsvc.client import executor
    from graphsvc.recall.scope import Asker

    def graphql(*given: dict[str, object]) -> dict:
        answer = executor.in_process(settings, Asker())(CAPTURE, {"e": list(given)})
        assert "errors" not in answer
        return answer["data"]["capture"]

    return graphql


def test_nothing_said_is_captured_while_paused_and_what_to_do_is_said(run, told):
    paused = run("pause", "--project", SHOP, "--json").json
    ran = run("capture", "--json", stdin=lines(event(), event("hay", project=FARM, session_id="s2")))

    assert (paused["project"], paused["until"]) == (SHOP, None)
    assert ran.code == 2
    [bad] = ran.json["rejected"]
    assert (bad["line"], bad["code"]) == (1, "paused")
    assert f"graphsvc resume --project {SHOP}" in bad["message"]
    assert paused["since"] in bad["message"]
    assert told() == ["hay"]


def test_graphql_capture_stops_too(run, told, graphql):
    run("pause", "--project", SHOP)

    got = graphql(event(), event("tea", kind="decision"))

    assert got["accepted"] == 1
    assert [bad["code"] for bad in got["rejected"]] == ["paused"]
    assert told() == ["tea"]


def test_an_import_counts_what_was_said_meanwhile_as_noise(run, told, tmp_path):
    log = tmp_path / "talk.jsonl"
    log.write_bytes(lines(event("before", ts=BEFORE.isoformat()), event("timeless"), event("plan", kind="todo")))
    run("pause", "--project", SHOP)

    report = run("import", "talk.jsonl", "--json").json

    assert report["noise"] == {"paused": 2}
    assert report["gaps"] == []
    assert told() == ["before"]


def test_what_was_said_between_pause_and_resume_stays_out_when_it_is_imported_later(run, told, tmp_path):
    since = run("pause", "--project", SHOP, "--json").json["since"]
    [ended] = run("resume", "--project", SHOP, "--json").json["ended"]
    during = datetime.fromisoformat(since).isoformat(timespec="microseconds")
    log = lines(
        event("before", ts=BEFORE.isoformat()),
        event("during", ts=during),
        event("at the end", ts=ended["until"]),
        event("after", ts=AFTER.isoformat()),
        event("timeless"),
    )
    (tmp_path / "talk.jsonl").write_bytes(log)

    ran = run("capture", "--json", stdin=log)
    report = run("import", "talk.jsonl", "--json").json

    assert told() == ["before", "at the end", "after", "timeless"]
    assert [bad["message"] for bad in ran.json["rejected"]] == [
        f"{SHOP} was paused from {since} until {ended['until']}: what was said then stays out"
    ]
    assert report["noise"] == {"paused": 1}


def test_a_log_of_another_machine_does_not_bring_it_in(run, told, tmp_path):
    there = {"GRAPHSVC_HOME": str(tmp_path / "there")}
    run("capture", stdin=lines(event("Implement tea. We decided: tea.", ts=AFTER.isoformat())), env=there)
    run("capture", stdin=lines(event("early", ts=BEFORE.isoformat())), env=there)
    log = run("export", env=there).out
    run("pause", "--project", "all")

    ran = run("capture", "--json", stdin=log.encode())

    assert {bad["code"] for bad in ran.json["rejected"]} == {"paused"}
    assert len(ran.json["rejected"]) >= 2, "what followed from it stays out too"
    assert told() == ["early"]


def test_what_a_person_records_on_purpose_is_stored(run, told):
    run("pause", "--project", "all")

    ran = run("capture", "--json", stdin=lines(event("tea", kind="decision"), event("ship", kind="goal")))

    assert ran.json["accepted"] == 2
    assert told() == ["tea", "ship"]


def test_the_switch_of_isolation_is_heeded_while_paused(run, settings):
    run("pause", "--project", SHOP)
    run("capture", stdin=lines(event("/thread-iso")))
    run("resume", "--project", SHOP)
    run("capture", stdin=lines(event("mine", ts=AFTER.isoformat())))
    run("capture", stdin=lines(event("/thread-iso")))

    with closing(database.connect(settings)) as db:
        stored = list(events.after(db, 0))
    assert [(one.kind.value, one.body, one.isolated) for one in stored][:2] == [
        ("isolation", "on", True),
        ("user_message", "mine", True),
    ]
    assert [one.kind.value for one in stored].count("isolation") == 1
    assert rebuild.check(settings, lambda *_: None) == []


def test_what_is_stored_already_is_known_while_paused(run):
    run("capture", stdin=lines(event()))
    run("pause", "--project", SHOP)

    assert run("capture", "--json", stdin=lines(event())).json["duplicates"] == 1


def test_the_folder_chooses_the_project_and_pausing_twice_is_one_pause(run, tmp_path, told):
    shop = tmp_path / "shop"
    (shop / ".git").mkdir(parents=True)
    (shop / "src").mkdir()

    first = run("pause", "--json", cwd=shop / "src").json
    again = run("pause", cwd=shop)
    ran = run("capture", "--json", stdin=lines(event(project=None, cwd=str(shop / "src"))))
    stats = run("stats", "--json").json
    resumed = run("resume", cwd=shop)

    assert first["project"] == str(shop)
    assert first["since"] in again.out
    assert f"graphsvc resume --project {shop}" in again.out
    assert ran.json["rejected"][0]["code"] == "paused"
    assert stats["paused"] == {str(shop): first["since"]}
    assert first["since"] in resumed.out
    assert run("stats", "--json").json["paused"] == {}
    assert "is not paused" in run("resume", cwd=shop).out
    assert told() == []


def test_all_projects_pause_and_resume_together(run):
    run("pause", "--project", SHOP)
    run("pause", "--project", "all")

    one = run("resume", "--project", SHOP)
    ran = run("capture", "--json", stdin=lines(event(), event("hay", project=FARM, session_id="s2")))
    run("pause", "--project", FARM)
    rest = run("resume", "--project", "all", "--json").json

    assert "all is still paused" in one.out
    assert [bad["code"] for bad in ran.json["rejected"]] == ["paused", "paused"]
    assert "--project all" in ran.json["rejected"][0]["message"]
    assert {one["project"] for one in rest["ended"]} == {None, FARM}
    assert run("capture", "--json", stdin=lines(event())).code == 0


def test_people_see_in_stats_what_is_paused(run):
    run("pause", "--project", SHOP)

    assert f"paused since: {SHOP}" in run("stats").out


@pytest.mark.parametrize("name", ["pause", "resume"])
def test_an_empty_project_is_refused(run, name):
    ran = run(name, "--project", " ", "--json")

    assert ran.code == 2
    assert ran.json["error"]["field"] == "project"


def test_a_pause_is_known_by_the_name_that_events_get(run, tmp_path):
    folder = Path(tmp_path) / "plain"
    folder.mkdir()
    run("pause", "--project", "plain", cwd=tmp_path)

    ran = run("capture", "--json", stdin=lines(event(project=None, cwd=str(folder))))

    assert ran.json["rejected"][0]["code"] == "paused"

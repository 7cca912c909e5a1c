"""Secrets that were stored before a rule knew them: found without being told, and taken out for good."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from test_redact import CASES, LOOK_ALIKES
from traces import holders

from graphsvc.memory import rebuild
from graphsvc.memory.erase import scan
from graphsvc.model import EventKind
from graphsvc.recall import index
from graphsvc.store import database, events
from graphsvc.store.erase import ledger, traces

TOKEN = "ghp_" + "a1B2c3D4e5" * 4
KEY = "sk-ant-api03-" + "x9Y8z7W6v5" * 4


def silent(done, of):
    del done, of


@pytest.fixture
def old(talk, db):
    """Put texts into the store as they were stored when there was no rule: `old("…", kind=…, meta={…})`."""

    def old(body, kind="user_message", meta=None, **names):
        origin = talk.event(kind, "to be written", **(meta or {}))
        [number] = events.ids_of_origins(db, 1, [origin])
        with database.transaction(db):
            with ledger.unlocked(db):
                kept = events.get(db, number).meta
                events.rewrite(db, number, body, {**kept, **names})
            rebuild.rebuild(db, silent)
        while index.catch_up(db, 60_000):
            pass
        return number

    return old


def test_every_kind_of_secret_is_found_and_none_is_told(run, old, db, home):
    for _, text, secret in CASES:
        old(text.replace("{}", secret))
    secrets = {part for _, _, secret in CASES for part in secret.splitlines() if len(part) > 4}

    found = run("redact", "--scan", "--json")

    assert found.code == 1
    assert found.json["changed"] == len({one["id"] for one in found.json["findings"]}) == len(CASES)
    shown = run("redact", "--scan")
    for text in (found.out, found.err, shown.out, shown.err):
        assert not [secret for secret in secrets if secret in text]
    assert "--apply" in shown.err

    done = run("redact", "--scan", "--apply", "--json")

    assert (done.code, done.json["remains"]) == (0, [])
    assert done.json["findings"] == found.json["findings"]
    assert holders(home, secrets) == set()
    assert run("redact", "--scan", "--json").json["findings"] == []
    assert run("rebuild", "--check").code == 0


def test_a_secret_leaves_every_place_and_everything_else_stays(run, old, talk, db, home, settings):
    plain = talk.user("an open word")
    talk.wrote("docs/plan.md", "# Plan\n")
    large = old(f"{TOKEN} " + "".join(f"line {number}\n" for number in range(2_000)), kind="assistant_message")
    told = old("title", title=f"About {TOKEN}")
    recorded = old(f"use {KEY} here", kind="decision", meta={"action": "record"})
    nested = old("see meta", meta={"deep": [{"password": "x"}]}, deep=[{"note": f"a {TOKEN} and {TOKEN}"}])
    db.execute("INSERT INTO imports VALUES ('/x/a.jsonl', 1, 1, 'neutral', 1, 1, ?, 'now', 0)", (f'["{TOKEN}"]',))
    before = {one.id: one for one in events.after(db, 0)}
    assert holders(home, [TOKEN, KEY])

    done = run("redact", "--scan", "--apply", "--json").json

    assert [(one["id"], one["rule"], one["count"]) for one in done["findings"]] == [
        ("imported file", "github-token", 1),
        (f"event-{large}", "github-token", 1),
        (f"event-{told}", "github-token", 1),
        (f"event-{recorded}", "anthropic-key", 1),
        (f"event-{nested}", "github-token", 2),
    ]
    assert holders(home, [TOKEN, KEY]) == set()
    after = {one.id: one for one in events.after(db, 0)}
    said = after.pop(done["position"])
    assert (said.kind, said.body, said.meta["count"]) == (EventKind.FORGET, "redacted 4 events", 4)
    assert after.keys() == before.keys()
    assert {number for number in before if before[number] != after[number]} == {large, told, recorded, nested}
    assert after[recorded].body == "use [redacted:anthropic-key] here"
    assert events.by_origin(db, 1, plain).body == "an open word"
    assert rebuild.check(settings, silent, index.proof()) == []
    assert database.lost_triggers(db) == []


def test_names_are_cleaned_and_what_names_them_still_does(run, talk, old, db, home):
    talk.user("first")
    number = old("On it.", kind="decision", meta={"action": "record"}, evidence=[f"{TOKEN}:1"])
    with database.transaction(db):
        with ledger.unlocked(db):
            db.execute("UPDATE sessions SET host_id = ?", (f"s-{TOKEN}",))
            db.execute("UPDATE events SET origin = ? WHERE id = 1", (f"{TOKEN}:1",))
            db.execute("UPDATE projects SET key = ?", (f"/srv/{TOKEN}",))
        rebuild.rebuild(db, silent)

    done = run("redact", "--scan", "--apply", "--json")

    assert done.code == 0
    assert holders(home, [TOKEN]) == set()
    every = {one.id: one for one in events.after(db, 0)}
    assert every[1].origin.startswith("[redacted:github-token]:1~")
    assert every[number].meta["evidence"] == [every[1].origin]
    assert every[1].session_id.startswith("s-[redacted:github-token]~")
    assert run("rebuild", "--check").code == 0


def test_what_only_looks_like_a_secret_is_left_alone(run, old, talk, db):
    for text in LOOK_ALIKES:
        talk.user(text)
    position = events.position(db)

    done = run("redact", "--scan", "--apply", "--json")

    assert (done.code, done.json["findings"], done.json["position"]) == (0, [], None)
    assert events.position(db) == position
    assert traces.remains(db) == ()


def test_what_came_in_while_it_looked_is_cleaned_too(talk, old, db, settings):
    old(f"one {TOKEN}")
    late = []

    def progress(done, of):
        del done, of
        if not late:
            late.append(old(f"two {TOKEN}"))

    done = scan.apply(db, progress)

    assert [one.id for one in done.findings] == ["event-1", f"event-{late[0]}"]
    with closing(database.reader(settings.database)) as look:
        assert not [one for one in events.after(look, 0) if TOKEN in one.body]


def test_the_command_says_what_to_do(run, talk):
    talk.user("hello")

    assert run("redact").code == 2
    assert "--scan" in run("redact").err
    assert json.loads(run("redact", "--scan", "--json").out) == {
        "events": 1,
        "changed": 0,
        "findings": [],
        "position": None,
        "remains": [],
    }

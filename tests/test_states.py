"""The status machines, exhaustively."""

from __future__ import annotations

import itertools

import pytest

from graphsvc import states
from graphsvc.errors import InvalidTransition

ALLOWED = {
    ("goal", "active", "complete"): "completed",
    ("goal", "active", "drop"): "dropped",
    ("decision", "proposed", "activate"): "active",
    ("decision", "proposed", "supersede"): "superseded",
    ("decision", "proposed", "revoke"): "revoked",
    ("decision", "active", "supersede"): "superseded",
    ("decision", "active", "revoke"): "revoked",
    ("candidate", "pending", "promote"): "promoted",
    ("candidate", "pending", "reject"): "rejected",
    ("candidate", "pending", "expire"): "expired",
    ("todo", "pending", "finish"): "done",
    ("todo", "pending", "drop"): "dropped",
    ("feedback", "active", "revoke"): "revoked",
}
STATUSES = sorted({status for _, status, _ in ALLOWED} | set(ALLOWED.values()))
ACTIONS = sorted({action for _, _, action in ALLOWED})


@pytest.mark.parametrize("machine", states.MACHINES)
def test_only_the_table_moves_a_record(machine):
    for status, action in itertools.product(STATUSES, ACTIONS):
        if (machine, status, action) in ALLOWED:
            assert states.move(machine, status, action) == ALLOWED[machine, status, action]
            continue
        with pytest.raises(InvalidTransition) as caught:
            states.move(machine, status, action)
        assert set(caught.value.allowed) == {a for m, s, a in ALLOWED if (m, s) == (machine, status)}


@pytest.mark.parametrize(
    ("kind", "action", "status"),
    [
        (machine, action, end)
        for (machine, start, action), end in ALLOWED.items()
        if start in states.INITIAL[machine][:1]
    ],
)
def test_a_state_event_moves_its_record(db, talk, kind, action, status):
    origin = talk.event(kind, "the text", action="record")
    talk.event(kind, "another text", action=action, of=origin)

    first = db.execute("SELECT status FROM records WHERE type = ? ORDER BY id", (kind,)).fetchone()["status"]
    assert first == status


@pytest.mark.parametrize("kind", states.MACHINES)
def test_a_final_status_stays_and_the_refusal_says_so(db, talk, kind):
    origin = talk.event(kind, "the text", action="record")
    action = next(iter(states.MACHINES[kind][states.INITIAL[kind][0]]))
    talk.event(kind, "again", action=action, of=origin)
    before = [tuple(row) for row in db.execute("SELECT * FROM records")]
    talk.event(kind, "once more", action=action, of=origin)

    rejected = talk.captured[-1].rejected[0]
    assert rejected.code == "invalid-transition"
    assert "the status is final" in rejected.message
    assert [tuple(row) for row in db.execute("SELECT * FROM records")] == before


def test_an_older_change_that_arrives_late_undoes_nothing(db, talk):
    goal = talk.event("goal", "ship it", action="record")
    talk.at("2026-11-30T12:00:00+00:00").event("goal", "", action="complete", of=goal)
    talk.at("2026-11-30T11:00:00+00:00").event("goal", "", action="drop", of=goal)

    assert not talk.captured[-1].rejected
    assert db.execute("SELECT status FROM records WHERE type = 'goal'").fetchone()["status"] == "completed"


def test_superseding_works_across_sessions_and_keeps_the_chain(db, talk):
    first = talk.decided("sessions use JWT")
    second = talk.session("s2").superseded(first, "sessions live on the server")
    talk.session("s3").superseded(second, "sessions live in Redis")

    rows = db.execute(
        "SELECT id, status, superseded_by, text FROM records WHERE type = 'decision' ORDER BY id"
    ).fetchall()
    assert [row["status"] for row in rows] == ["superseded", "superseded", "active"]
    assert [row["superseded_by"] for row in rows] == [rows[1]["id"], rows[2]["id"], None]


@pytest.mark.parametrize("action", ["explode", "complete", ""])
def test_an_unknown_action_names_what_is_allowed(talk, action):
    talk.event("decision", "text", action=action)

    assert talk.captured[-1].rejected[0].code == "invalid-input"
    assert "supersede" in talk.captured[-1].rejected[0].message


def test_a_change_of_nothing_is_not_found(talk):
    talk.event("todo", "", action="finish", of="nowhere")

    assert talk.captured[-1].rejected[0].code == "not-found"


def test_a_record_of_another_project_cannot_be_changed(db, talk):
    origin = talk.decided("sessions use JWT")
    number = db.execute("SELECT id FROM records").fetchone()["id"]
    talk.project = "/srv/talk/elsewhere"
    talk.session("s9").event("decision", "mine now", action="supersede", of=origin)
    talk.event("decision", "mine now", action="supersede", id=f"decision-{number}")

    assert [one.rejected[0].code for one in talk.captured[-2:]] == ["not-found", "not-found"]

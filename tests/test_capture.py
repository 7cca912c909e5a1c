"""Events in: once per origin, whole, in their project, and nothing that must not be stored."""

from __future__ import annotations

import json

import pytest
import stores

from graphsvc.memory import capture
from graphsvc.model import Event, EventKind
from graphsvc.store import events


def _event(**fields):
    return Event(**{"session_id": "s1", "kind": EventKind.USER_MESSAGE, "origin": "o1", "body": "text", **fields})


def _bodies(db):
    return [event.body for event in events.after(db, 0)]


def test_a_replayed_event_is_stored_once(db, clock):
    event = _event()
    first = capture.capture(db, [event, event], now=clock)
    again = capture.capture(db, [event], now=clock)

    assert (first.accepted, first.duplicates, first.position) == (1, 1, 1)
    assert (again.accepted, again.duplicates, again.position) == (0, 1, 1)


@pytest.mark.parametrize(("body", "meta"), [("", {"action": "on"}), (" ON ", {}), ("go", {"action": "off"})])
def test_a_switch_of_isolation_is_stored_once(db, clock, body, meta):
    event = _event(kind=EventKind.ISOLATION, body=body, meta=meta)
    done = [capture.capture(db, [event], now=clock) for _ in range(3)]

    assert [one.accepted for one in done] == [1, 0, 0]
    assert events.get(db, 1).body == events.get(db, 1).meta["action"]


def test_an_origin_that_comes_back_with_other_content_is_a_new_event_that_says_so(db, clock):
    batch = [_event(), _event(body="other"), _event(body="other"), _event()]
    done = capture.capture(db, batch, now=clock)
    stored = list(events.after(db, 0))

    assert (done.accepted, done.duplicates) == (2, 2)
    assert stored[1].origin.startswith("o1#")
    assert stored[1].meta["conflicts_with"] == "o1"


def test_the_same_event_in_another_session_is_membership_not_a_copy(db, clock):
    copy = _event(session_id="s2")
    capture.capture(db, [_event(), copy, copy], now=clock)
    number = events.find_session(db, "s2")[0]

    assert _bodies(db) == ["text", ""]
    assert events.of_session(db, number) == [1, 2]
    assert db.execute("SELECT rule, confidence FROM lineage_edges").fetchone()[:] == ("shared records", "inferred")


def test_a_session_stays_in_the_project_of_its_first_event(db, clock):
    first = _event(cwd="/srv/none/a")
    moved = _event(origin="o2", cwd="/srv/none/b")
    elsewhere = _event(origin="o3", project="/srv/none/c")
    done = capture.capture(db, [first, moved, elsewhere], now=clock)

    assert [events.project_key(db, event.project) for event in events.after(db, 0)] == ["/srv/none/a"] * 2
    assert [event.meta["cwd"] for event in events.after(db, 0)] == ["/srv/none/a", "/srv/none/b"]
    assert done.rejected[0].code == "project-conflict"
    assert "/srv/none/a" in done.rejected[0].message


def test_worktrees_share_the_project_of_their_repository(db, clock, tmp_path):
    main, tree = tmp_path / "main", tmp_path / "tree"
    (main / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (main / "src").mkdir()
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")
    (tmp_path / "link").symlink_to(main)
    folders = [main, main / "src", tree, tmp_path / "link"]
    batch = [_event(session_id=f"s{n}", origin=f"o{n}", cwd=str(folder)) for n, folder in enumerate(folders)]
    capture.capture(db, batch, now=clock)

    assert events.project_keys(db) == [str(main)]


BODIES = {
    "nul": "a\0b",
    "lone surrogate": "a\ud800b",
    "line separator": "a\u2028b\u0085c",
    "crlf": "a\r\nb\rc\n",
    "bom": "\ufeffa",
    "emoji": "👩‍👩‍👧‍👦 fine",
    "chinese": "决定改用服务端会话",
    "blank": "",
    "ten megabytes": "x" * 10_000_000,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_bodies_are_kept_byte_for_byte(db, clock, body):
    capture.capture(db, [_event(body=body, meta={"note": body[:100]})], now=clock)

    stored = events.get(db, 1)
    assert stored.body == body
    assert stored.meta["note"] == body[:100]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("session_id", ""),
        ("origin", ""),
        ("session_id", "a\0"),
        ("origin", "\ud800"),
        ("origin", "x" * 2000),
        ("cwd", "\0"),
    ],
)
def test_a_bad_name_is_refused_and_the_rest_of_the_batch_is_stored(db, clock, field, value):
    done = capture.capture(db, [_event(origin="good"), _event(**{field: value}), _event(origin="good too")], now=clock)

    assert (done.accepted, [one.index for one in done.rejected]) == (2, [1])
    assert field in done.rejected[0].message
    assert events.position(db) == 2


def test_secrets_and_private_spans_are_gone_before_anything_is_written(db, clock, settings):
    secret = "ghp_" + "a1B2" * 9
    talk = f"the key is {secret}, and <private>my doctor said</private> ok"
    meta = {"file_path": f"/tmp/{secret}.txt", "nested": [{"token": secret}]}  # noqa: S108 # a name, not a file
    capture.capture(db, [_event(body=talk, meta=meta), _event(origin="o2", body=f"{secret} " * 2000)], now=clock)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    assert "[redacted:" in events.get(db, 1).body
    for path in settings.home.iterdir():
        assert secret.encode() not in path.read_bytes()
        assert b"my doctor" not in path.read_bytes()
    assert all(secret not in event.body and secret not in str(event.meta) for event in events.after(db, 0))


def test_time_order_survives_events_without_a_time(db, clock):
    batch = [
        _event(origin="a", ts="2026-11-30T09:00:00.000000Z"),
        _event(origin="b"),
        _event(origin="c", ts="2026-11-30T10:00:00.000000Z"),
    ]
    capture.capture(db, batch, now=clock)

    assert [row["at"][:16] for row in db.execute("SELECT at FROM events ORDER BY id")] == [
        "2026-11-30T09:00",
        "2026-11-30T09:00",
        "2026-11-30T10:00",
    ]
    assert events.get(db, 2).ts is None


def test_what_a_host_recorded_is_kept_even_when_it_does_not_fit(db, clock):
    goal = _event(origin="g", kind=EventKind.GOAL, body="ship", meta={"action": "complete", "key": "unknown"})
    refused = capture.capture(db, [goal], now=clock)
    kept = [capture.capture(db, [goal], now=clock, history=True) for _ in range(3)]

    assert refused.rejected[0].code == "not-found"
    assert [one.accepted for one in kept] == [1, 0, 0]
    stored = events.get(db, 1)
    assert (stored.kind, stored.body) == (EventKind.RAW, "ship")
    assert "unknown" in stored.meta["refused"]


def test_a_fork_may_complete_the_goal_it_was_copied_with(db, clock):
    record = {"kind": EventKind.GOAL, "origin": "g", "body": "ship", "meta": {"action": "record", "key": "g1"}}
    batch = [
        _event(**record),
        _event(**record, session_id="s2"),
        _event(session_id="s2", origin="h", kind=EventKind.GOAL, body="", meta={"action": "complete", "key": "g1"}),
    ]
    done = capture.capture(db, batch, now=clock)

    assert not done.rejected
    assert db.execute("SELECT status FROM records").fetchone()["status"] == "completed"


HOSTILE = ("\ud800", "\0", "a\ud800\0b", "\udfff.md")


@pytest.mark.parametrize("bad", HOSTILE, ids=repr)
def test_no_text_of_a_host_breaks_capture_or_reading(db, settings, clock, bad):
    from graphsvc.client import tool
    from graphsvc.memory import rebuild
    from graphsvc.recall.scope import Asker

    given = json.dumps({"file_path": f"/srv/x/{bad}", "content": bad, "todos": [{"content": bad}], "input": bad})
    names = [
        "tool_name",
        "tool_use_id",
        "file_path",
        "parent",
        "relation",
        "title",
        "host",
        "message_id",
        "record",
        "key",
        "of",
        "basis",
        "scope",
        "status",
        "pull_request",
        "original_file",
        "new_file",
        "cause",
    ]
    kinds = [kind for kind in EventKind if kind not in {EventKind.EDGE, EventKind.FORGET, EventKind.INJECTION}]
    batch = []
    for kind in kinds:
        for name in [*names, bad]:
            meta = {"tool_name": "Write", "tool_use_id": "t", "cwd": "/srv/x", "action": "record", name: bad}
            body = given if kind is EventKind.TOOL_CALL else bad
            batch.append(_event(origin=f"{kind}:{name!a}", kind=kind, body=body, meta=meta))
        lists = {"evidence": [bad], "replaces": [bad], "ids": [bad], "todos": [{"text": bad}]}
        batch.append(_event(origin=f"{kind}:lists", kind=kind, body=given, meta=lists))
    done = capture.capture(db, batch, now=clock, history=True)

    assert done.accepted == len(batch)
    assert rebuild.check(settings, lambda *_: None) == []
    execute = stores.reader(db, Asker())
    for number in range(1, done.position + 1):
        for verb in ("ls", "cd", "cat"):
            line, code = tool.call({"nav": verb, "target": f"event-{number}"}, execute)
            assert code == 0
            json.loads(line.encode("utf-8"))


def test_secrets_in_names_are_gone_too(db, clock, settings):
    secret = "ghp_" + "a1B2" * 9
    batch = [
        _event(origin=f"o-{secret}", actor=secret, session_id=f"s-{secret}", cwd=f"/srv/{secret}"),
        _event(origin=f"o-{secret}x", project=f"/srv/{secret}/p", session_id="s2"),
    ]
    done = capture.capture(db, batch * 2, now=clock)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    assert (done.accepted, done.duplicates) == (2, 2)
    for path in settings.home.iterdir():
        assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize("ids", [["event-999"], ["nonsense"], [], None, ["event-1"]], ids=repr)
def test_publishing_what_the_session_has_not_is_refused(db, clock, ids):
    other = _event(session_id="s2", origin="p", kind=EventKind.PUBLISH, body="", meta={"ids": ids})
    done = capture.capture(db, [_event(), other], now=clock)

    assert [one.code for one in done.rejected] == ["invalid-input"]
    assert "meta.ids" in done.rejected[0].message


def blocks(
    *bodies: str, kind: EventKind = EventKind.USER_MESSAGE, ts: str | None = "2026-11-30T09:00:00Z"
) -> list[Event]:
    return [
        Event(session_id="s1", kind=kind, origin=f"m:{number}", body=body, ts=ts) for number, body in enumerate(bodies)
    ]


@pytest.mark.parametrize(
    ("bodies", "kept"),
    [
        (
            ("my <private>birth", "day is in", "May</private> you know"),
            ["my [private]", "[private]", "[private] you know"],
        ),
        (("我的<私密>生日", "五月</私密>知道"), ["我的[private]", "[private]知道"]),
        (("<private>a<private>b", "c</private>d", "e</private>f"), ["[private]", "[private]", "[private]f"]),
        (("open", "shut</private>"), ["open", "shut</private>"]),
    ],
)
def test_a_private_span_goes_on_in_the_next_block_of_the_message(db, clock, bodies, kept):
    batch = blocks(*bodies)

    first = capture.capture(db, batch, now=clock)
    again = capture.capture(db, batch, now=clock)

    assert [one.body for one in events.after(db, 0) if one.kind is EventKind.USER_MESSAGE] == kept
    assert (first.accepted, again.duplicates) == (len(bodies), len(bodies))


def test_a_private_span_ends_with_its_message(db, clock):
    later = _event(origin="n", body="b", ts="2026-11-30T09:00:01Z")
    capture.capture(db, [*blocks("<private>a"), later, _event(session_id="s2", origin="o")], now=clock)

    assert _bodies(db) == ["[private]", "b", "text"]


def test_nothing_private_is_kept_in_what_the_host_says_beside_the_text(db, clock):
    meta = {"title": "my <private>birthday</private>", "extra": {"<private>k</private>": ["<私密>五月"]}}
    capture.capture(
        db, [Event(session_id="s1", kind=EventKind.USER_MESSAGE, origin="n", body="x", meta=meta)], now=clock
    )

    [event] = events.after(db, 0)
    assert event.meta == {"title": "my [private]", "extra": {"[private]": ["[private]"]}}


def test_a_tool_input_with_an_open_private_span_still_names_its_file(db, clock):
    given = json.dumps({"file_path": "/srv/talk/a.md", "content": "# A\n<private>birthday"})
    about = {"tool_name": "Write", "tool_use_id": "c1"}
    call, result = (
        Event(session_id="s1", kind=kind, origin=kind, body=body, project="/srv/talk", meta=about)
        for kind, body in ((EventKind.TOOL_CALL, given), (EventKind.TOOL_RESULT, "File created"))
    )

    capture.capture(db, [call, result], now=clock)

    row = db.execute(
        "SELECT a.path, v.title FROM knowledge_assets a JOIN asset_versions v ON v.asset = a.id"
    ).fetchone()
    assert tuple(row) == ("a.md", "A")
    assert "birthday" not in "".join(one.body for one in events.after(db, 0))

from __future__ import annotations

import io
import itertools
import json
import os
from pathlib import Path

import pytest
import zstandard
from collecting import Collector

from graphsvc.config import Settings
from graphsvc.importers import source
from graphsvc.importers.discover import discover, newest_first
from graphsvc.store import imports
from graphsvc.store.database import connect
from graphsvc.store.imports import Done

FIXTURES = Path(__file__).parent / "fixtures" / "importers"
REAL = Path(__file__).parents[2] / "shared" / "transcripts"
real = pytest.mark.skipif(not REAL.is_dir(), reason="the shared transcripts are not here")


@pytest.fixture
def log():
    return Collector()


@pytest.fixture
def written(tmp_path):
    """Write records as a file and return its path."""

    def write(*records, name="session"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        return path

    return write


def claude(kind, number, **more):
    return {"type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "sessionId": "c1", "cwd": "/p", **more}


def dsh(kind, seq, **data):
    return {"type": kind, "seq": seq, "time": 1796028067386 + seq, "data": data}


def codex(kind, **payload):
    return {"timestamp": "2026-11-30T09:00:00.000Z", "type": kind, "payload": payload}


# Claude Code


def test_claude_blocks_become_events_with_the_ids_of_the_host(log):
    report = log.load(FIXTURES / "claude.jsonl")

    assert report.gaps == []
    assert [(str(event.kind), event.origin) for event in log.events if event.kind != "raw"] == [
        ("user_message", "claude:prompt:pr-1"),
        ("assistant_message", "claude:u3:0"),
        ("tool_call", "claude:tool:toolu_1:call"),
        ("tool_result", "claude:tool:toolu_1:result"),
        ("compact_checkpoint", "claude:compact:u7"),
        ("user_message", "claude:u9:0"),
    ]
    assert log.bodies("user_message") == ["写一份设计：docs/设计.md", "what about this picture?"]
    assert log.bodies("compact_checkpoint") == ["This session is being continued. 决定用 SQLite。"]
    assert {event.cwd for event in log.events} == {"/srv/pond"}


def test_claude_calls_and_results_say_what_they_touched(log):
    log.load(FIXTURES / "claude.jsonl")

    (call,), (result,) = log.of("tool_call"), log.of("tool_result")
    touched = {"tool_name": "Edit", "tool_use_id": "toolu_1", "file_path": "/srv/pond/docs/设计.md"}
    assert call.meta == {"host": "claude-code", "message_id": "m1", **touched}
    assert json.loads(call.body)["new_string"] == "二"
    assert result.body == "edited\n完成"
    assert result.meta == {"host": "claude-code", **touched, "is_error": True, "original_file": "一\n"}
    assert result.ts == "2026-11-30T09:00:03.000000Z"


def test_claude_strings_nobody_typed_and_thoughts_are_kept_raw(log):
    log.load(FIXTURES / "claude.jsonl")

    raw = {event.meta["record"]: event.body for event in log.of("raw")}
    assert raw["thinking"] == "hm, 想一想"
    assert raw["user"] == "<command-name>/compact</command-name>"
    assert raw["queue-operation"] == "typed while busy"
    assert raw["summary"] == "Pond design"
    assert raw["attachment/hook_additional_context"] == "context one\ncontext two"
    assert raw["system/compact_boundary"] == "Conversation compacted"
    assert json.loads(raw["user/image"])["type"] == "image"
    assert json.loads(raw["brand-new"])["words"] == "不丢"


def test_claude_noise_and_unknown_types_are_counted(log):
    report = log.load(FIXTURES / "claude.jsonl")

    assert report.unknown == {"brand-new": 1}
    assert report.noise == {
        "progress": 1,
        "file-history-snapshot": 1,
        "queue-operation": 1,
        "system/turn_duration": 1,
        "attachment/hook_success": 1,
    }


def test_a_sub_agent_speaks_in_the_session_of_its_parent(log, written):
    spoken = {"message": {"role": "user", "content": "look around"}, "isSidechain": True, "promptId": "pr-9"}
    log.load(written(claude("user", 1, agentId="a77", **spoken), claude("user", 2, **spoken)))

    assert [(event.session_id, event.actor, event.origin) for event in log.events] == [
        ("c1", "a77", "claude:u1:0"),
        ("c1", "sidechain", "claude:u2:0"),
    ]


def test_a_second_text_of_one_prompt_keeps_its_own_id(log, written):
    log.load(written(*(claude("user", n, promptId="pr", message={"content": f"text {n}"}) for n in (1, 2))))

    assert [event.origin for event in log.events] == ["claude:prompt:pr", "claude:u2:0"]


def test_a_boundary_without_summary_is_a_checkpoint_and_one_at_the_end_waits(log, written):
    boundary = claude("system", 1, subtype="compact_boundary", content="compacted", compactMetadata={"trigger": "auto"})
    hook = claude("attachment", 2, attachment={"type": "hook_success"})
    log.load(written(boundary, hook))
    waiting = log.bodies("compact_checkpoint")

    log.load(written(boundary, hook, claude("assistant", 3, message={"content": [{"type": "text", "text": "on"}]})))

    (checkpoint,) = log.of("compact_checkpoint")
    assert waiting == []
    assert (checkpoint.origin, checkpoint.body, checkpoint.meta["trigger"]) == (
        "claude:compact:u1",
        "compacted",
        "auto",
    )


def test_a_checkpoint_that_comes_late_takes_no_record_back_to_its_cwd(log, written):
    boundary = claude("system", 1, subtype="compact_boundary", content="compacted")
    moved = claude("attachment", 2, attachment={"type": "hook_additional_context", "content": "c"}, cwd="/q")
    words = claude("user", 3, message={"content": "on"})
    del words["cwd"]
    log.load(written(boundary, moved, words))

    assert [(str(event.kind), event.cwd) for event in log.events] == [
        ("raw", "/p"),
        ("raw", "/q"),
        ("compact_checkpoint", "/p"),
        ("user_message", "/q"),
    ]


def test_an_edit_the_user_changed_carries_what_was_written(log, written):
    outcome = {"originalFile": "a b", "oldString": "b", "newString": "mine", "userModified": True}
    block = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    log.load(written(claude("user", 1, message={"content": [block]}, toolUseResult=outcome)))

    assert log.events[0].meta["new_file"] == "a mine"


def test_records_before_the_first_cwd_get_the_cwd_of_the_head(log, written):
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "early", "sessionId": "c1"}
    log.load(written(queued, queued, claude("user", 1, message={"content": "hi"})))

    assert [event.cwd for event in log.events] == ["/p"] * 3
    assert len({event.origin for event in log.events}) == 3
    assert log.events[0].meta["inferred"] is True


@pytest.mark.parametrize("cwd", ["\0", "/a\ud800b", "/" + "x" * 4096, 7])
def test_a_claude_cwd_that_is_none_is_not_remembered(log, written, cwd):
    words = [claude("user", n, message={"content": f"m{n}"}) for n in (1, 2, 3)]
    del words[2]["cwd"]
    words[1]["cwd"] = cwd
    report = log.load(written(*words))

    assert report.gaps == []
    assert [event.cwd for event in log.events] == ["/p"] * 3
    assert ["cwd_unusable" in event.meta for event in log.events] == [False, True, False]


@pytest.mark.parametrize("session", ["\0", "c\ud800", "x" * 1025, 7])
def test_a_claude_record_without_a_session_that_can_be_one_is_a_gap_alone(log, written, session):
    words = [claude("user", n, message={"content": f"m{n}"}) for n in (1, 2, 3)]
    words[1]["sessionId"] = session
    del words[2]["sessionId"]
    report = log.load(written(*words))

    assert [gap["line"] for gap in report.gaps] == [2]
    assert report.gaps[0]["reason"].startswith("session id: ")
    assert [(event.session_id, event.body) for event in log.events] == [("c1", "m1"), ("c1", "m3")]


def test_ids_that_no_key_can_hold_are_escaped_and_stay_two(log, written):
    calls = [{"type": "tool_use", "id": f"t\ud800{n}", "name": "Read", "input": {"path": f"f{n}"}} for n in (1, 2)]
    results = [{"type": "tool_result", "tool_use_id": f"t\ud800{n}", "content": "ok"} for n in (1, 2)]
    records = [claude("assistant", 1, message={"content": calls}), claude("user", 2, message={"content": results})]
    log.load(written(*records))

    first, second = log.of("tool_call")
    assert first.meta["tool_use_id"].startswith("t\\ud8001~")
    assert first.meta["tool_use_id"] != second.meta["tool_use_id"]
    assert [event.meta for event in log.of("tool_result")] == [
        {"host": "claude-code", "tool_use_id": call.meta["tool_use_id"], "tool_name": "Read", "file_path": path}
        for call, path in ((first, "f1"), (second, "f2"))
    ]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "at noon", 1796028067386])
def test_a_time_of_the_host_that_cannot_be_read_is_kept_as_text(log, written, time):
    log.load(written(claude("user", 1, message={"content": "hi"}, timestamp=time)))

    assert (log.events[0].ts, log.events[0].meta["ts_raw"]) == (None, str(time))


# dsh


def test_dsh_records_become_events_numbered_by_seq(log):
    report = log.load(FIXTURES / "dsh.jsonl")

    assert report.gaps == []
    assert report.unknown == {"moon/phase": 1}
    assert [(str(event.kind), event.origin, event.body) for event in log.events if event.kind != "raw"][1:] == [
        ("goal", "dsh:d1:1", "养一池锦鲤"),
        ("user_message", "dsh:d1:2", "feed the koi"),
        ("assistant_message", "dsh:d1:4", "Feeding."),
        ("tool_call", "dsh:d1:call:call_1", '{"path": "pond.txt",  "n": 1}'),
        ("tool_result", "dsh:d1:result:call_1", "old shape"),
        ("tool_call", "dsh:d1:call:call_2", '{"q": "fish"}'),
        ("tool_result", "dsh:d1:result:call_2", "new shape"),
        ("todo", "dsh:d1:10", '[{"content": "买鱼食", "status": "in_progress"}]'),
        ("compact_checkpoint", "dsh:d1:12", "Koi are fed."),
        ("goal", "dsh:d1:17", "养一池锦鲤"),
    ]


def test_dsh_meta_says_what_derivation_needs(log):
    log.load(FIXTURES / "dsh.jsonl")

    first, last = log.of("goal")
    old, new = log.of("tool_result")
    (todo,), (checkpoint,) = log.of("todo"), log.of("compact_checkpoint")
    assert (first.meta["action"], last.meta["action"], last.meta["key"]) == ("record", "complete", "goal-1")
    assert (old.meta["tool_name"], old.meta["file_path"]) == ("read", "pond.txt")
    assert (new.meta["tool_name"], new.meta["is_error"]) == ("search", True)
    assert todo.meta["todos"] == [{"text": "买鱼食", "status": "in_progress"}]
    assert checkpoint.meta["trigger"] == "manual"
    assert checkpoint.meta["replaces"] == [
        "dsh:d1:2",
        "dsh:d1:4",
        "dsh:d1:4:1",
        "dsh:d1:call:call_1",
        "dsh:d1:result:call_1",
    ]
    assert log.events[0].ts == "2026-11-30T08:41:07.386000Z"
    assert log.events[0].meta["host"] == "dsh"


def test_dsh_speech_of_plugins_commands_and_queues_is_raw(log):
    log.load(FIXTURES / "dsh.jsonl")

    raw = {event.meta["record"]: event.body for event in log.of("raw")}
    assert raw["user/message/plugin"] == "runtime context"
    assert raw["command/run"] == "/goal 养一池锦鲤"
    assert raw["agent/inbox/spliced"] == "feed the koi"
    assert raw["thinking"] == "which koi?"
    assert raw["session/title"] == "Koi"
    assert json.loads(raw["moon/phase"])["data"] == {"phase": "full"}


@pytest.mark.parametrize(
    ("header", "relation"),
    [
        ({"seedLength": 2}, "fork"),
        ({"delegationDepth": 1}, "delegation"),
        ({"origin": "subagent"}, "delegation"),
        ({"delegationDepth": 0}, "resume"),
    ],
)
def test_a_dsh_header_tells_where_the_session_came_from(log, written, header, relation):
    log.load(written({"type": "session", "id": "d2", "createdAt": 1, "parentSession": "d1", "cwd": "/p", **header}))

    assert log.events[0].kind == "session_start"
    assert (log.events[0].meta["parent"], log.events[0].meta["relation"]) == ("d1", relation)


def test_the_prefix_of_a_fork_keeps_the_origins_of_its_parent(log, written):
    header = {"type": "session", "id": "d2", "createdAt": 1, "parentSession": "d1", "seedLength": 2}
    words = [
        dsh("user/message", n, content=[{"type": "text", "text": f"m{n}"}], source={"kind": "user"}) for n in (0, 2)
    ]
    log.load(written(header, words[0], dsh("tool/call", 1, callId="c", name="x", arguments="{}"), words[1]))

    assert [event.origin for event in log.events[1:]] == ["dsh:d1:0", "dsh:d1:call:c", "dsh:d2:2"]
    assert {event.session_id for event in log.events} == {"d2"}


@pytest.mark.parametrize(
    ("end", "origin"), [([dsh("compaction/end", 2, compactionId="k", error="too long")], "failed"), ([], "pending")]
)
def test_a_summary_whose_compaction_did_not_end_well_is_no_checkpoint(log, written, end, origin):
    header = {"type": "session", "id": "d1", "createdAt": 1}
    summary = dsh("compaction/summary", 1, compactionId="k", summary=[{"type": "text", "text": "kept"}])
    log.load(written(header, summary, *end))

    assert log.of("compact_checkpoint") == []
    assert log.events[-1].origin == f"dsh:d1:1:{origin}"
    assert log.events[-1].body == "kept"


def test_a_dsh_log_without_its_header_gets_a_session_of_its_own(log, written):
    path = written(dsh("user/message", 0, content=[{"type": "text", "text": "hi"}], source={"kind": "user"}))
    log.load(path)

    assert log.events[0].session_id.startswith("dsh-")
    assert log.events[0].meta["inferred"] is True


@pytest.mark.parametrize("cwd", ["/a\ud800b", "\0", "/" + "x" * 4096, ["/p"]])
def test_a_dsh_header_with_a_cwd_that_is_none_loses_nothing(log, written, cwd):
    records = [{"type": "session", "id": "d1", "createdAt": 1, "cwd": cwd}, dsh("user/message", 0, content="hi")]
    report = log.load(written(*records))

    assert report.gaps == []
    assert [(event.session_id, event.cwd) for event in log.events] == [("d1", None)] * 2
    assert log.events[0].meta["cwd_unusable"]


def test_a_dsh_header_whose_id_is_none_is_a_gap_and_tells_the_rest(log, written):
    header = {"type": "session", "id": "d\0", "createdAt": 1, "cwd": "/p", "parentSession": "d0", "seedLength": 1}
    report = log.load(written(header, dsh("user/message", 0, content="hi")))

    assert [(gap["line"], gap["reason"]) for gap in report.gaps] == [(1, "session id: holds a NUL or a lone surrogate")]
    assert [(event.origin, event.cwd) for event in log.events] == [("dsh:d0:0", "/p")]
    assert log.events[0].session_id.startswith("dsh-")


def test_a_dsh_time_that_is_none_is_kept_as_text(log, written):
    log.load(written({"type": "session", "id": "d1", "createdAt": 10**30}, {**dsh("x", 0), "time": "noon"}))

    assert [event.meta["ts_raw"] for event in log.events] == [str(10**30), "noon"]


# Codex


def test_codex_tells_each_text_once(log):
    report = log.load(FIXTURES / "codex.jsonl")

    assert report.gaps == []
    assert log.bodies("user_message") == ["list the koi", "继续", "继续"]
    assert log.bodies("assistant_message") == ["Two koi.", "only as an event"]
    assert log.bodies("tool_call") == ['{"command":["ls"]}', "*** Begin Patch"]
    assert log.bodies("tool_result") == ["Exit code: 2\nOutput:\nkoi.txt\n", "Success."]
    assert log.bodies("compact_checkpoint") == ["handed over\n要点"]
    assert {event.session_id for event in log.events} == {"x1"}
    assert {event.cwd for event in log.events} == {"/srv/pond"}


def test_codex_results_know_their_call_and_their_failure(log):
    log.load(FIXTURES / "codex.jsonl")

    failed, done = log.of("tool_result")
    assert (failed.origin, failed.meta["tool_name"], failed.meta["is_error"]) == ("codex:x1:result:c1", "shell", True)
    assert (done.meta["tool_name"], "is_error" in done.meta) == ("apply_patch", False)


def test_codex_keeps_raw_what_is_told_nowhere_else(log):
    report = log.load(FIXTURES / "codex.jsonl")

    raw = {event.meta["record"]: event.body for event in log.of("raw")}
    assert raw["message/developer"] == "be brief"
    assert raw["message/user"] == "<environment_context>\n</environment_context>"
    assert raw["thinking"] == "two, I think"
    assert raw["event_msg/thread_name_updated"] == "Koi count"
    assert "told by the terminal only" in raw["event_msg/exec_command_end"]
    assert len([event for event in log.events if event.meta.get("record") == "event_msg/exec_command_end"]) == 1
    assert report.unknown == {"event_msg/brand_new": 1}


def test_a_codex_fork_names_its_parent(log, written):
    log.load(
        written(
            codex("session_meta", id="x2", forked_from_id="x1", cwd="/p"),
            codex("session_meta", id="x1", cwd="/q"),
            codex("event_msg", type="user_message", message="on"),
        )
    )

    assert log.events[0].meta == {"host": "codex", "message_id": "x2", "parent": "x1", "relation": "fork"}
    assert {(event.session_id, event.cwd) for event in log.events} == {("x2", "/p")}


def test_a_codex_turn_with_a_cwd_that_is_none_is_kept_and_not_remembered(log, written):
    words = codex("event_msg", type="user_message", message="on")
    records = [codex("session_meta", id="x1", cwd="/p"), codex("turn_context", cwd="/q\0"), words]
    report = log.load(written(*records))

    assert report.gaps == []
    assert {event.cwd for event in log.events} == {"/p"}
    assert log.of("raw")[0].meta["cwd_unusable"].startswith("/q\\x00~")


def test_a_codex_session_whose_id_is_none_is_a_gap_and_the_rest_is_captured(log, written):
    records = [codex("session_meta", id="x\ud800"), codex("event_msg", type="user_message", message="on")]
    report = log.load(written(*records))

    assert [gap["line"] for gap in report.gaps] == [1]
    assert log.bodies("user_message") == ["on"]
    assert log.events[0].session_id.startswith("codex-")


# SWE-agent


def test_swe_agent_turns_and_untold_steps_are_kept(log):
    report = log.load(FIXTURES / "run.traj")

    assert report.gaps == []
    assert [(str(event.kind), event.body) for event in log.events] == [
        ("raw", "You fix ponds."),
        ("raw", "demo question"),
        ("user_message", "fix the leak"),
        ("assistant_message", "I look."),
        ("raw", "ls pond"),
        ("tool_call", '{"dir":"pond"}'),
        ("tool_result", "leak.py\r\n"),
        ("raw", "a step that no turn tells"),
    ]
    assert all(event.ts is None for event in log.events)


def test_a_swe_agent_run_is_the_same_under_another_name_and_layout(log, tmp_path):
    log.load(FIXTURES / "run.traj")
    copy = tmp_path / "elsewhere"
    copy.write_text(json.dumps(json.loads((FIXTURES / "run.traj").read_text("utf-8"))), "utf-8")

    report = log.load(copy)

    assert (report.events_added, report.duplicates) == (0, 8)


def test_a_broken_trajectory_is_one_gap_at_the_line_of_the_fault(log, tmp_path):
    text = (FIXTURES / "run.traj").read_text("utf-8")
    path = tmp_path / "broken.traj"
    path.write_text(text[: text.index("leak.py")], "utf-8")

    report = log.load(path)

    assert [gap["line"] for gap in report.gaps] == [text[: text.index("leak.py")].count("\n") + 1]
    assert log.events == []


def test_a_trajectory_without_history_tells_its_steps(log, tmp_path):
    path = tmp_path / "run"
    step = {"response": "I look.", "thought": "I look.", "action": "ls", "observation": "leak.py"}
    path.write_text(json.dumps({"trajectory": [step], "info": {}}), "utf-8")

    log.load(path)

    assert log.bodies("assistant_message") == ["I look."]
    assert log.bodies("tool_call") == ["ls"]
    assert log.bodies("tool_result") == ["leak.py"]


# Detection, discovery, memory of files


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("claude.jsonl", "claude-code"),
        ("dsh.jsonl", "dsh"),
        ("codex.jsonl", "codex"),
        ("run.traj", "swe-agent"),
        ("neutral.jsonl", "neutral"),
    ],
)
def test_the_content_names_the_format(name, format):  # noqa: A002  # the option's name
    data = (FIXTURES / name).read_bytes()

    assert source.sniff(io.BytesIO(data)).format == format
    assert source.sniff(io.BytesIO(zstandard.ZstdCompressor().compress(data))).format == format


@pytest.mark.parametrize("name", ["claude.jsonl", "dsh.jsonl", "codex.jsonl", "neutral.jsonl"])
def test_bad_lines_at_the_start_hide_no_format(name):
    data = (FIXTURES / name).read_bytes()

    assert source.sniff(io.BytesIO(b"// a comment\n{broken\n\n" + data)) == source.sniff(io.BytesIO(data))


def test_histories_are_found_newest_first(tmp_path):
    places = {
        "claude/projects/-srv-pond/a.jsonl": 5,
        "claude/projects/-srv-pond/a/subagents/agent-1.jsonl": 9,
        ".dsh/sessions/pond/s1/session.jsonl.zstd": 7,
        ".codex/sessions/2026/11/30/rollout-1.jsonl": 8,
        ".gemini/tmp/abc/chats/session-1.json": 6,
        "data/opencode/storage/message/ses_1/msg_1.json": 1,
        ".qoder/projects/pond/q.jsonl": 4,
        ".claude/projects/not-this-one/b.jsonl": 3,
    }
    for name, age in places.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        os.utime(path, (age, age))

    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "XDG_DATA_HOME": str(tmp_path / "data")}
    found = discover(env, tmp_path)

    assert [(history.host, len(history.files), history.importable) for history in found] == [
        ("claude-code", 2, True),
        ("codex", 1, True),
        ("dsh", 1, True),
        ("gemini-cli", 1, False),
        ("qoder", 1, True),
        ("opencode", 1, False),
    ]
    assert found[0].bytes == 4
    assert [path.name for path in newest_first(found)] == [
        "agent-1.jsonl",
        "rollout-1.jsonl",
        "session.jsonl.zstd",
        "a.jsonl",
        "q.jsonl",
    ]


def test_the_store_remembers_a_file_as_it_was_last(tmp_path):
    db = connect(Settings(home=tmp_path))
    old = Done(size=1, mtime_ns=2, format="dsh", records=3, events=4, sessions=("s",), gaps=((7, "a"), (9, "b")))
    new = Done(size=2, mtime_ns=3, format="dsh", records=4, events=5, sessions=("s", "t"), gaps=((9, "c"),))

    assert imports.known(db, "/p") is None
    imports.record(db, "/p", old, "2026-11-30T09:00:00.000000Z")
    assert imports.known(db, "/p") == old
    imports.record(db, "/p", new, "2026-11-30T10:00:00.000000Z")
    assert imports.known(db, "/p") == new
    db.close()


# Real transcripts, and an oracle that shares no code with the package


def plain_lines(path):
    data = path.read_bytes()
    if data[:4] == b"\x28\xb5\x2f\xfd":
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    texts = [data] if path.suffix == ".traj" else data.split(b"\n")
    return [json.loads(text) for text in texts if text.strip()]


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(strings, value.values()))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(strings, value))


def escaped(value):
    for text in strings(value):
        yield json.dumps(text, ensure_ascii=False)[1:-1]


def content_strings(content, *, deep):
    """List the strings of a content value: plain for texts, as in JSON for what lies deeper."""
    if isinstance(content, str):
        yield content
        return
    for block in content or []:
        kind = block.get("type")
        if isinstance(block.get("text"), str):
            yield block["text"]
        elif kind in {"tool_result", "tool-result"}:
            yield from content_strings(block.get("content"), deep=deep)
        elif kind == "tool_use":
            yield from escaped(block["input"])
        elif kind == "tool-call":
            yield block["arguments"]
        elif kind == "thinking":
            yield block["thinking"]
        elif deep:
            yield from () if block.get("image_url", "") is None else escaped(block)  # an image without a picture


def claude_strings(records):
    for record in records:
        if record["type"] in {"user", "assistant"}:
            yield from content_strings(record["message"]["content"], deep=True)
        elif record["type"] == "attachment" and record["attachment"]["type"] == "hook_additional_context":
            yield from record["attachment"]["content"]
        elif record["type"] in {"summary", "queue-operation"}:
            yield record.get("summary") or record.get("content") or ""


def dsh_strings(records):
    for record in records:
        data = record.get("data", {})
        if record["type"] == "user/message":
            yield from content_strings(data["content"], deep=True)
        elif record["type"] in {"assistant/message", "tool/result"}:
            yield from content_strings(data["message"]["content"], deep=True)
        elif record["type"] == "tool/call":
            yield data["arguments"]
        elif record["type"] == "compaction/summary":
            yield from content_strings(data["summary"], deep=True)
        elif record["type"] == "goal/change":
            yield data["goal"]["objective"]
        elif record["type"] in {"command/run", "command/done", "session/title"}:
            yield data.get("args") or data.get("text") or data.get("title") or ""


CODEX_PARTS = {
    "message": ("content",),
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "function_call_output": ("output",),
    "custom_tool_call_output": ("output",),
    "user_message": ("message",),
    "agent_message": ("message", "content"),
    "agent_reasoning": ("text",),
    "reasoning": ("summary",),
    "exec_command_end": ("aggregated_output", "stdout", "stderr"),
    "mcp_tool_call_end": ("result",),
    "dynamic_tool_call_response": ("content_items",),
    "task_complete": ("last_agent_message",),
    "exited_review_mode": ("review_output",),
    "collab_agent_spawn_end": ("prompt",),
}


def codex_strings(records):
    for record in records:
        payload = record["payload"]
        for part in CODEX_PARTS.get(payload.get("type"), ()):
            value = payload.get(part)
            if isinstance(value, dict) and isinstance(value.get("text"), str):
                yield value["text"]
            elif isinstance(value, list) and all(isinstance(block, dict) for block in value):
                yield from content_strings(value, deep=True)
            elif isinstance(value, str) and payload["type"] not in {"exec_command_end", "collab_agent_spawn_end"}:
                yield value
            else:
                yield from escaped(value)
        if payload.get("type") == "item_completed":
            yield from escaped({key: value for key, value in payload["item"].items() if key not in {"type", "content"}})
            yield from content_strings(payload["item"].get("content"), deep=True)
        if record["type"] == "compacted":
            yield payload["message"]
            yield from (text for item in payload["replacement_history"] for text in strings(item.get("content")))


def swe_strings(records):
    for turn in records[0]["history"]:
        yield from content_strings(turn["content"], deep=True)
        yield turn.get("thought") or ""
        yield turn.get("action") or ""
        for call in turn.get("tool_calls") or []:
            yield call["function"]["arguments"]


ORACLES = {"claude": claude_strings, "dsh": dsh_strings, "codex": codex_strings, "swe": swe_strings}
FILES = sorted(path for path in REAL.glob("*") if path.suffix != ".md") if REAL.is_dir() else []


@real
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_string_of_a_real_transcript_stands_in_some_body(log, path):
    expected = list(ORACLES[path.name.split("-")[0]](plain_lines(path)))

    report = log.load(path)

    bodies = [event.body for event in log.events]
    missing = [text for text in expected if not any(text in body for body in bodies)]
    assert len(expected) > 3
    assert missing == []
    assert report.gaps == []
    assert report.unknown == {}


@real
def test_real_transcripts_give_the_same_events_in_any_order():
    forwards, backwards, single = Collector(), Collector(), Collector()

    forwards.load(REAL)
    backwards.load(*reversed(FILES))
    for path in FILES[1::2] + FILES[::2]:
        single.load(path)

    assert forwards.origins() == backwards.origins() == single.origins()


@real
def test_importing_real_transcripts_again_adds_nothing(log):
    first = log.load(REAL)
    log.done.clear()

    again = log.load(REAL)

    assert (again.events_added, again.duplicates) == (0, first.events_added + first.duplicates)
    assert (first.files, [skip["reason"] for skip in first.skipped]) == (28, ["no known format"])


@real
def test_the_harbor_sessions_tell_their_story(log):
    log.load(*sorted(REAL.glob("claude-harbor-*")))

    (checkpoint,) = log.of("compact_checkpoint")
    errors = [event.meta["file_path"] for event in log.of("tool_result") if "is_error" in event.meta]
    writes = [event.meta["file_path"] for event in log.of("tool_call") if event.meta["tool_name"] in {"Write", "Edit"}]
    assert checkpoint.meta["trigger"] == "manual"
    assert checkpoint.body.startswith("This session is being continued")
    assert errors == ["/srv/demo/harbor/docs/missing.md"]
    assert {Path(path).name for path in writes} >= {"login-design.md", "迁移报告.md", "open-questions.md", "login.py"}
    assert sum("我们" in body or "决定" in body for body in log.bodies("user_message")) >= 1

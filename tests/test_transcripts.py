"""Real transcripts in, true answers out. Needs ../shared; without it these tests are skipped."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from graphsvc.client import executor, tool
from graphsvc.config import Settings
from graphsvc.importers import run
from graphsvc.memory import capture, rebuild
from graphsvc.recall.scope import Asker
from graphsvc.store import database, events

TRANSCRIPTS = Path(__file__).resolve().parents[2] / "shared" / "transcripts"
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no ../shared/transcripts beside this checkout")
FILES = sorted(path for path in TRANSCRIPTS.glob("*") if path.suffix != ".md")


def bring(db, paths):
    done = {}
    return run.import_files(
        paths, capture=lambda batch: capture.capture(db, batch), known=done.get, record=done.__setitem__
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    settings = Settings(home=tmp_path_factory.mktemp("real") / "home")
    with closing(database.connect(settings)) as db:
        report = bring(db, [TRANSCRIPTS])
    return settings, report


@pytest.fixture(scope="module")
def ask(store):
    execute = executor.in_process(store[0], Asker())

    def ask(**arguments):
        line, code = tool.call(arguments, execute)
        return json.loads(line), code

    return ask


@pytest.fixture(scope="module")
def stream(store, ask):
    """Everything that cat says of every session."""
    parts = []
    for session in store[1].sessions:
        cursor = {}
        while cursor is not None:
            answer, _ = ask(nav="cat", target=f"session-{session}", token_budget=1_000_000, **cursor)
            parts.append(answer["items"][0]["label"])
            cursor = {"cursor": answer["cursor"]} if "cursor" in answer else None
    return "".join(parts)


def contents(db):
    """What the store holds, whatever order it came in."""
    pairs = sorted(
        (event.origin, hashlib.sha256(events.encode(event.body)).hexdigest()) for event in events.after(db, 0)
    )
    return hashlib.sha256(repr(pairs).encode()).hexdigest()


def test_every_transcript_is_captured_and_what_is_none_is_said(store):
    report = store[1]

    assert report.files == len(FILES)
    assert [Path(one["file"]).name for one in report.skipped] == ["README.md"]
    assert not report.gaps
    assert report.events_added == sum(report.kinds.values())


@pytest.mark.parametrize("order", ["forwards", "backwards", "shuffled"])
def test_any_order_of_files_gives_the_same_store(store, tmp_path, order):
    files = {"forwards": FILES, "backwards": FILES[::-1], "shuffled": sorted(FILES, key=lambda path: path.name[::-1])}[
        order
    ]
    with closing(database.connect(Settings(home=tmp_path / "home"))) as db:
        bring(db, files)
        again = bring(db, files[::-1])
        here = contents(db)
    with closing(database.connect(store[0])) as db:
        there = contents(db)

    assert again.events_added == 0
    assert here == there


def test_a_replay_of_real_history_gives_the_same_tables(store):
    assert rebuild.check(store[0], lambda *_: None) == []


def _leaves(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part)


def _claude(record):
    if record.get("type") not in {"user", "assistant"}:
        return
    blocks = record["message"]["content"]
    for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
        if block["type"] in {"text", "thinking"}:
            yield block[block["type"]]
        elif block["type"] == "tool_use":
            yield from _leaves(block["input"])
        elif block["type"] == "tool_result":
            yield from _leaves(block["content"])


def _dsh(record):
    data = record.get("data", {})
    if record["type"] == "user/message":
        yield from (block["text"] for block in data["content"] if block["type"] == "text")
    elif record["type"] == "assistant/message":
        for block in data["message"]["content"]:
            yield block["arguments"] if block["type"] == "tool-call" else block["text"]
    elif record["type"] == "tool/call":
        yield data["arguments"]
    elif record["type"] == "tool/result":
        for block in data["message"]["content"]:
            yield from (part["text"] for part in block.get("content", [block]) if part.get("type") == "text")
    elif record["type"] == "compaction/summary":
        yield from (block["text"] for block in data["summary"])


def _codex(record):
    payload = record.get("payload", {})
    if payload.get("type") in {
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call_output",
        "custom_tool_call",
    }:
        for name in ("content", "arguments", "input", "output"):
            part = payload.get(name)
            if name == "arguments" or name == "input":
                yield from [part] if isinstance(part, str) else []
            else:
                yield from _texts(part)
    elif payload.get("type") in {"user_message", "agent_message"} and isinstance(payload.get("message"), str):
        yield payload["message"]


def _texts(part):
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        yield from [part["text"]] if isinstance(part.get("text"), str) else []
    elif isinstance(part, list):
        for one in part:
            yield from _texts(one)


def _strings(path):
    """Every user, assistant and tool string of a source, read with nothing but json."""
    if path.suffix == ".traj":
        for turn in json.loads(path.read_text())["history"]:
            yield turn["content"]
            for call in turn.get("tool_calls") or []:
                yield call["function"]["arguments"]
        return
    data = path.read_bytes()
    if path.suffix == ".zstd":
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            data = reader.read()
    of = {"claude": _claude, "dsh": _dsh, "codex": _codex}[path.name.partition("-")[0]]
    for line in data.split(b"\n"):
        if line.strip():
            yield from of(json.loads(line))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_string_of_a_source_stands_in_the_cat_stream(stream, path):
    strings = [text for text in _strings(path) if isinstance(text, str) and text]
    # A tool's input stands as JSON where it is nested, and redacted spans are not the source's any more.
    missing = [
        text for text in strings if text not in stream and json.dumps(text, ensure_ascii=False)[1:-1] not in stream
    ]
    redacted = [text for text in missing if all(part in stream for part in _around(text, stream))]

    assert len(strings) > 1
    assert [text for text in missing if text not in redacted] == []
    assert len(redacted) <= 0.02 * len(strings), redacted


def _around(text, stream):
    """The parts of a text beside what was redacted: lines that the stream does not hold hold a secret."""
    lines = [line for line in text.splitlines() if line.strip()]
    lost = [line for line in lines if line not in stream and json.dumps(line, ensure_ascii=False)[1:-1] not in stream]
    return [line for line in lines if line not in lost] if lost and len(lost) < len(lines) / 4 else [text]


HARBOR = (
    "7ae916af-81af-5c91-8996-60b8a67d63eb",
    "c4ee7b20-e57b-5574-bbab-a1896ea15152",
    "2cf0a1af-c749-5293-8fae-883febfae0f2",
)


def test_ls_of_the_harbor_sessions_shows_documents_and_code_with_versions(ask):
    labels = {item["label"] for session in HARBOR for item in ask(nav="ls", target=session)[0]["items"]}

    assert labels == {
        "docs/login-design.md · Sign-in design · document, 3 versions",
        "docs/open-questions.md · Open questions · document, 1 version",
        "docs/迁移报告.md · 迁移报告：从 JWT 到服务端会话 · document, 1 version",
        "src/login.py · login.py · code, 1 version",
        "src/session_store.py · session_store.py · code, 1 version",
    }


def test_cd_of_the_design_note_leads_to_writes_sessions_commit_and_code(ask):
    answer, _ = ask(nav="cd", target="docs/login-design.md", project="/srv/demo/harbor")
    ids = {item["id"] for item in answer["items"]}
    labels = " ".join(item["label"] for item in answer["items"])

    assert {f"session-{session}" for session in HARBOR} <= ids
    assert {item["ref"] for item in answer["items"] if item["label"].startswith("commit ")} == {"4caf2a5", "7f36e62"}
    assert "src/login.py" in labels
    writes = [ask(nav="cd", target=item["id"])[0]["title"] for item in answer["items"] if "written by" in item["label"]]
    assert [re.search(r"tool_call (\w+)", title)[1] for title in writes] == ["Write", "Edit", "Edit"]


@pytest.mark.parametrize(
    ("query", "text"),
    [("we decided: sessions use JWT", "sessions use JWT"), ("决定改用服务端会话", "决定改用服务端会话")],
)
def test_stated_decisions_stand_as_candidates_with_their_evidence(ask, query, text):
    found = [hit for hit in ask(query=query, project="/srv/demo/harbor")[0]["results"] if hit["kind"] == "candidate"]

    assert text in found[0]["body"]
    evidence = ask(nav="cd", target=found[0]["id"])[0]["items"]
    assert any(item["label"].startswith("evidence: user_message:") and text in item["label"] for item in evidence)
    assert ask(kind="decision", project="/srv/demo/harbor")[0]["status"] == "not-found"


def test_the_failed_read_is_an_error_result_and_no_asset(ask):
    hits = ask(query="File does not exist", kind="tool_result", project="/srv/demo/harbor")[0]["results"]

    assert "error" in ask(nav="cd", target=hits[0]["id"])[0]["title"]
    assert ask(nav="cd", target="docs/missing.md")[0]["status"] == "not-found"


def test_the_compaction_is_a_checkpoint_with_its_summary(ask):
    hits = ask(kind="compact_checkpoint", session_id=HARBOR[1])[0]["results"]

    assert len(hits) == 1
    assert (
        "The sign-in module moved to server sessions." in ask(nav="cat", target=hits[0]["id"])[0]["items"][0]["label"]
    )


def test_a_session_that_came_later_is_linked_to_none_it_did_not_resume(ask):
    for session in HARBOR:
        items = ask(nav="cd", target=session)[0]["items"]
        assert not [item for item in items if item["type"] == "session"]


def test_every_id_of_real_answers_works_as_a_target(ask, store):
    seen, queue = set(), [f"session-{session}" for session in store[1].sessions]
    while queue and len(seen) < 400:
        target = queue.pop(0)
        if target in seen:
            continue
        seen.add(target)
        for verb in ("cd", "cat"):
            answer, code = ask(nav=verb, target=target)
            assert (code, "status" in answer) == (0, False), (verb, target, answer)
            queue += [item["id"] for item in answer["items"]]
            queue += answer.get("context", {}).get("evidence", [])
            queue += [item["ref"] for item in answer["items"] if re.fullmatch(r"[a-z]+-\d+", item.get("ref", ""))]
    assert len(seen) >= 300


@pytest.mark.parametrize(
    "query",
    [
        "session_store",
        "SessionStore",
        "sessionStore",
        "docs/login-design.md",
        "bcrypt",
        "会话",
        "令牌",
        "TOKEN_MINUTES",
    ],
)
def test_words_paths_identifiers_and_two_characters_are_found(ask, query):
    answer, code = ask(query=query, project="/srv/demo/harbor")

    assert (code, answer["status"]) == (0, "found")

"""Secrets in an import: none of their bytes reaches the home, and what only looks like one stays as it was."""

from __future__ import annotations

import json
import re
import zlib
from contextlib import closing

import pytest
from test_redact import CASES, LOOK_ALIKES

from graphsvc.store import database, events

PROJECT = "/srv/talk/harbor"
STAMP = "2026-11-30T09:00:00.000Z"


def claude(texts):
    about = {"sessionId": "c1", "cwd": PROJECT, "timestamp": STAMP}
    for number, text in enumerate(texts):
        write = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Write",
            "input": {"file_path": f"{PROJECT}/{number}.md", "content": text},
        }
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": [{"type": "text", "text": text}]}
        yield {**about, "type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": text}}
        yield {
            **about,
            "type": "assistant",
            "uuid": f"a{number}",
            "message": {"id": f"m{number}", "role": "assistant", "content": [write]},
        }
        yield {
            **about,
            "type": "user",
            "uuid": f"r{number}",
            "message": {"role": "user", "content": [answer]},
            "toolUseResult": {"originalFile": text},
        }
        yield {**about, "type": "novelty", "uuid": f"n{number}", "payload": {"text": text}}


def dsh(texts):
    yield {"type": "session", "version": 0, "id": "d1", "createdAt": 1796028067386, "cwd": PROJECT}
    for number, text in enumerate(texts):
        message = {
            "id": f"m{number}",
            "role": "user",
            "content": [{"type": "text", "text": text}],
            "source": {"kind": "user"},
        }
        yield {"type": "user/message", "seq": 2 * number, "time": 1796028067386, "data": message}
        call = {"callId": f"c{number}", "name": "bash", "arguments": json.dumps({"command": text})}
        yield {"type": "tool/call", "seq": 2 * number + 1, "time": 1796028067386, "data": call}


def neutral(texts):
    for number, text in enumerate(texts):
        yield {
            "session_id": "n1",
            "kind": "decision",
            "origin": f"o{number}",
            "body": text,
            "project": PROJECT,
            "meta": {"note": text},
        }


@pytest.mark.parametrize("lines", [claude, dsh, neutral], ids=lambda lines: lines.__name__)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_no_byte_of_a_planted_secret_reaches_the_home(run, home, tmp_path, lines, ascii_only):
    source = tmp_path / "history.jsonl"
    texts = [text.replace("{}", secret) for _, text, secret in CASES]
    source.write_text("".join(json.dumps(line, ensure_ascii=ascii_only) + "\n" for line in lines(texts)))
    report = run("import", str(source), "--json").json
    run("search", "token", "--json")

    assert report["gaps"] == []
    assert report["events_added"] >= len(texts)
    written = b"".join(path.read_bytes() for path in home.iterdir())
    packed = b"".join(unpacked(written))
    for _, _, secret in CASES:
        parts = [part for part in secret.splitlines() if len(part) > 4]
        assert parts
        assert all(json.dumps(part)[1:-1] in source.read_text() for part in parts)
        for part in parts:
            assert part.encode() not in written
            assert part.encode() not in packed


def unpacked(data):
    """Every zlib stream that begins anywhere in these bytes."""
    for match in re.finditer(rb"x\x9c", data):
        stream = zlib.decompressobj()
        try:
            yield stream.decompress(data[match.start() :])
        except zlib.error:
            continue


def test_two_hundred_look_alikes_come_through_unchanged(run, settings, tmp_path):
    source = tmp_path / "history.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in neutral(LOOK_ALIKES)))
    run("import", str(source))

    with closing(database.connect(settings)) as db:
        bodies = {event.body for event in events.after(db, 0)}
    assert len(LOOK_ALIKES) >= 200
    assert set(LOOK_ALIKES) <= bodies

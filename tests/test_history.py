"""Random histories: whatever comes in, in whatever order, nothing breaks and a replay gives the same tables."""

from __future__ import annotations

import json
import random
from contextlib import closing

import pytest

from graphsvc.config import Settings
from graphsvc.memory import capture, rebuild
from graphsvc.model import Event, EventKind
from graphsvc.store import database, events

KINDS = [kind for kind in EventKind if kind not in {EventKind.EDGE, EventKind.FORGET, EventKind.INJECTION}]
ACTIONS = ("record", "propose", "supersede", "activate", "revoke", "complete", "drop", "finish", "promote", "reject",
           "expire", "snapshot", "explode")  # fmt: skip
TOOLS = ("Write", "Edit", "Read", "Bash", "TodoWrite", "record_decision", "apply_patch", "AskUserQuestion")
PATHS = ("docs/a.md", "src/b.py", "/srv/x/docs/a.md", "c.md", "docs/\ud800.md")
TEXTS = (
    "Implement docs/a.md",
    "we decided: use src/b.py",
    "决定改用 docs/a.md",
    "/thread-iso",
    "/thread-uniso",
    "see c.md",
    "",
)


def told(chance: random.Random, number: int) -> Event:
    """Make up one event, possible or not."""
    kind = chance.choice([*KINDS, *[EventKind.USER_MESSAGE, EventKind.TOOL_CALL, EventKind.TOOL_RESULT] * 3])
    named = f"o{chance.randint(0, 59)}"  # perhaps one that comes later
    meta: dict[str, object] = {"tool_name": chance.choice(TOOLS), "tool_use_id": f"t{chance.randint(0, number // 2)}"}
    if kind.value in {"goal", "decision", "feedback", "candidate", "todo"}:
        meta = {
            "action": chance.choice(ACTIONS),
            chance.choice(["of", "basis", "key"]): named,
            "evidence": [named],
            "todos": [{"text": chance.choice("xyz"), "status": chance.choice(["pending", "completed"])}],
        }
    elif kind is EventKind.ISOLATION:
        meta = {"action": chance.choice(["on", "off"])}
    elif kind is EventKind.PUBLISH:
        meta = {"ids": [f"event-{chance.randint(1, number + 1)}"]}
    elif kind is EventKind.COMPACT_CHECKPOINT:
        meta = {"replaces": [named, "nowhere"]}
    elif kind is EventKind.SESSION_START:
        meta = {"parent": chance.choice(["s1", "s2", "s3"]), "relation": "fork"}
    given = {
        "file_path": chance.choice(PATHS), "content": chance.choice(TEXTS), "old_string": "a", "new_string": "b",
        "command": chance.choice(["git add -A && git commit -m x", "ls"]), "text": "use it",
        "supersedes_id": chance.randint(1, number + 1),
        "todos": [{"content": chance.choice("xyz"), "status": chance.choice(["pending", "completed"])}],
        "input": "*** Add File: docs/a.md\n+see c.md\n",
    }  # fmt: skip
    body = json.dumps(given) if kind is EventKind.TOOL_CALL else chance.choice([*TEXTS, "[main 1a2b3c4] x"])
    moment = chance.choice([None, f"2026-11-{chance.randint(1, 30):02}T{chance.randint(0, 23):02}:00:00.000000Z"])
    if chance.random() < 0.1:
        meta["is_error"] = True
    return Event(
        session_id=chance.choice(["s1", "s2", "s3"]),
        kind=kind,
        origin=f"o{number}" if chance.random() < 0.9 else named,
        body=body,
        ts=moment,
        cwd="/srv/x",
        actor=chance.choice([None, None, None, "helper"]),
        meta=meta,
    )


@pytest.mark.parametrize("seed", range(40))
def test_any_history_is_taken_and_replays_to_the_same_tables(tmp_path, clock, seed):
    chance = random.Random(seed)  # noqa: S311  # a made-up story, no secret
    settings = Settings(home=tmp_path)
    history = [told(chance, number) for number in range(60)]
    with closing(database.connect(settings)) as db:
        rest = list(history)
        while rest:
            size = chance.randint(1, 9)
            capture.capture(db, rest[:size], now=clock, history=seed % 2 == 0)
            rest = rest[size:]
        position = events.position(db)
        again = capture.capture(db, history, now=clock, history=seed % 2 == 0)

    assert rebuild.check(settings, lambda *_: None) == []
    assert again.position == position or again.kinds
    assert position >= 30

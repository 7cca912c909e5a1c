"""Every combination of the filters against an oracle that reads the raw events and shares no code with the package."""

from __future__ import annotations

import itertools
import json
import random
from contextlib import closing
from pathlib import Path

import pytest
import stores

from graphsvc.client import tool
from graphsvc.config import Settings
from graphsvc.memory import capture
from graphsvc.model import Event, EventKind
from graphsvc.recall.scope import Asker
from graphsvc.store import database

# No word is part of another, none is a stop word, and stemming leaves them apart.
WORDS = ("lantern", "pewter", "gravel", "mosaic", "velvet", "灯塔", "港口", "open_harbor")
FILTERS = ("kind", "session_id", "since", "until", "project", "viewer", "query")
TALK = ("user_message", "assistant_message", "tool_call", "tool_result", "compact_checkpoint")
RECORDS = ("goal", "decision", "feedback", "candidate", "todo")
SESSIONS = {"a1": "/srv/a", "a2": "/srv/a", "a3": "/srv/a", "b1": "/srv/b"}


def tell(rng: random.Random) -> list[dict]:
    """Make up what happened: talk, records, writes, isolation, copies of a resumed session, events without a time."""
    told: list[dict] = []
    isolated = dict.fromkeys(SESSIONS, False)
    switches: dict[str, list[tuple[str, bool]]] = {name: [("", False)] for name in SESSIONS}
    for number in range(90):
        session = rng.choice(list(SESSIONS))
        ts = None if rng.random() < 0.1 else f"2026-03-{rng.randint(1, 9):02}T{rng.randint(0, 23):02}:00:00.000000Z"
        text = " ".join(rng.sample(WORDS, rng.randint(1, 2)))
        row = {
            "session": session,
            "origin": f"o{number}",
            "ts": ts,
            "body": text,
            "meta": {},
            # Isolated now, or at the time it was said, as far as is known by now.
            "isolated": isolated[session]
            or (ts is not None and max((one for one in switches[session] if one[0] <= ts), key=lambda one: one[0])[1]),
        }
        what = rng.choices(("talk", "record", "write", "switch", "copy"), (9, 6, 3, 1, 2))[0]
        if what == "talk":
            told.append({**row, "kind": rng.choice(TALK), "meta": {"tool_use_id": f"t{number}"}})
        elif what == "record":
            told.append({**row, "kind": rng.choice(RECORDS), "meta": {"action": "record"}})
        elif what == "write":
            path = f"{SESSIONS[session]}/{rng.choice(WORDS)}.md"
            about = {"tool_name": "Write", "tool_use_id": f"t{number}", "file_path": path}
            given = json.dumps({"file_path": path, "content": text}, ensure_ascii=False)
            told.append({**row, "kind": "tool_call", "body": given, "meta": about})
            writes = (path.removeprefix(SESSIONS[session] + "/"), text)
            result = {"kind": "tool_result", "body": "fine", "meta": {**about, "is_error": False}, "writes": writes}
            told.append({**row, **result, "origin": f"r{number}"})
        elif what == "switch" and session != "b1":
            isolated[session] = not isolated[session]
            action = "on" if isolated[session] else "off"
            moment = f"2026-03-{rng.randint(1, 9):02}T12:{number // 60:02}:{number % 60:02}.000000Z"
            switches[session].append((moment, isolated[session]))
            told.append({**row, "kind": "isolation", "body": action, "meta": {"action": action}, "ts": moment})
        elif what == "copy" and told:
            source = rng.choice(told)
            other = rng.choice([one for one in SESSIONS if SESSIONS[one] == SESSIONS[source["session"]]])
            if source["kind"] in TALK and other != source["session"]:
                told.append({**source, "session": other, "copy": True})
    return told


def record(db: database.Connection, told: list[dict]) -> None:
    for row in told:
        event = Event(
            session_id=row["session"],
            kind=EventKind(row["kind"]),
            origin=row["origin"],
            body=row["body"],
            ts=row["ts"],
            project=SESSIONS[row["session"]],
            meta=row["meta"],
        )
        capture.capture(db, [event])


def units(db: database.Connection, told: list[dict]) -> list[dict]:
    """Return what a search may find, by the rules of the contract; only the numbers of events come from the store."""
    numbers = {row["origin"]: (row["id"], row["at"]) for row in db.execute("SELECT id, at, origin FROM events")}
    found: list[dict] = []
    members: dict[str, set[str]] = {}
    assets: dict[tuple[str, str], str] = {}
    for row in told:
        members.setdefault(row["origin"], set()).add(row["session"])
        if row.get("copy") or row["kind"] == "isolation":
            continue
        number, at = numbers[row["origin"]]
        kind = row["kind"]
        base = {
            **row,
            "project": SESSIONS[row["session"]],
            "members": members[row["origin"]],
            "number": number,
            "at": at,
        }
        found.append({**base, "id": f"{kind if kind in RECORDS else 'event'}-{number}"})
        if "writes" in row:
            path, content = row["writes"]
            number, at = next(numbers[name] for name in numbers if name.startswith(f"rule:{row['origin']}:"))
            key = (base["project"], path)
            name = assets.setdefault(key, f"asset-{number}")
            version = {"kind": "asset", "id": name, "number": number, "at": at, "asset": key}
            found.append({**base, **version, "body": f"{path}\n{content}"})
    return found


def expected(rows: list[dict], chosen: dict[str, str]) -> list[dict]:
    viewer = chosen.get("viewer")
    seen = [row for row in rows if not row["isolated"] or viewer in row["members"]]
    newest: dict[tuple[str, str], dict] = {}
    for row in seen:
        if "asset" in row:
            old = newest.get(row["asset"])
            newest[row["asset"]] = (
                row if old is None or (row["at"], row["number"]) > (old["at"], old["number"]) else old
            )
    hits = []
    for row in seen:
        if "asset" in row and newest[row["asset"]] is not row:
            continue
        if "project" in chosen and row["project"] != chosen["project"]:
            continue
        if viewer and row["project"] != SESSIONS[viewer]:
            continue
        if "kind" in chosen and row["kind"] != chosen["kind"]:
            continue
        if "session_id" in chosen and chosen["session_id"] not in row["members"]:
            continue
        if "since" in chosen and row["at"] < chosen["since"]:
            continue
        if "until" in chosen and row["at"] > chosen["until"]:
            continue
        if "query" in chosen and not any(word in row["body"] for word in chosen["query"].split()):
            continue
        hits.append(row)
    return hits


def choose(rng: random.Random, rows: list[dict], names: tuple[str, ...]) -> dict[str, str]:
    """Choose values around a unit that exists, so that most combinations find something."""
    pivot = rng.choice([row for row in rows if row["kind"] in (*TALK, "goal", "decision", "feedback")])
    time = pivot["ts"] or "2026-03-05T12:00:00.000000Z"
    values = {
        "kind": pivot["kind"],
        "session_id": rng.choice(sorted(pivot["members"])),
        "since": rng.choice([time, "2026-03-02T00:00:00.000000Z"]),
        "until": rng.choice([time, "2026-03-08T00:00:00.000000Z"]),
        "project": pivot["project"],
        "viewer": rng.choice(sorted(pivot["members"])),
        "query": " ".join(
            [
                rng.choice([word for word in WORDS if word in pivot["body"]] or WORDS),
                *rng.sample(WORDS, rng.randint(0, 1)),
            ]
        ),
    }
    return {name: values[name] for name in names}


def ask(db: database.Connection, chosen: dict[str, str], **more: object) -> list[str]:
    """Read all pages of an answer of the tool: the ids, or the count."""
    asker = Asker(session_id=chosen.get("viewer"), project=chosen.get("project"))
    given = {name: value for name, value in chosen.items() if name not in {"viewer", "project"}}
    execute = stores.reader(db, asker)
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        line, code = tool.call({**given, "limit": 7, "token_budget": 20_000, **cursor, **more}, execute)
        answer = json.loads(line)
        found += [hit["id"] for hit in answer["results"]]
        assert code == (0 if answer["status"] == "found" else 1)
        if more.get("count_only"):
            return [str(answer["count"])]
        if "cursor" not in answer:
            return found
        cursor = {"cursor": answer["cursor"]}


@pytest.mark.parametrize("seed", range(4))
def test_every_combination_of_filters_agrees_with_the_oracle(seed: int, tmp_path: Path):
    rng = random.Random(seed)  # noqa: S311  # a made-up story, no secret
    told = tell(rng)
    settings = Settings(home=tmp_path)
    with closing(database.connect(settings)) as db:
        record(db, told)
        rows = units(db, told)
        kinds = {row[0] for row in db.execute("SELECT DISTINCT kind FROM events")}
        assert kinds <= {*TALK, *RECORDS, "asset", "isolation", "edge"}, "a rule made a unit the oracle does not know"
        asked = full = 0

        for size in range(len(FILTERS) + 1):
            for names in itertools.combinations(FILTERS, size):
                chosen = choose(rng, rows, names)
                right = expected(rows, chosen)
                by_time = [row["id"] for row in sorted(right, key=lambda row: (row["at"], row["number"]))]
                asked, full = asked + 1, full + bool(right)

                assert sorted(ask(db, chosen)) == sorted(by_time), chosen
                assert ask(db, chosen, order="asc") == by_time, chosen
                assert ask(db, chosen, order="desc") == by_time[::-1], chosen
                assert ask(db, chosen, count_only=True) == [str(len(right))], chosen

        assert full >= asked / 2

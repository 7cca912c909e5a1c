"""`aggregate` is what GROUP BY gives: on random stores, for every measure, dimension and time zone, for each viewer."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
import zlib
from collections import Counter
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.clock import utc_text
from graphsvc.config import Settings
from graphsvc.memory import capture, rebuild
from graphsvc.model import Event, EventKind
from graphsvc.recall.scope import Asker
from graphsvc.store import counts
from graphsvc.store.visibility import Viewer

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")
KINDS = ("user_message", "assistant_message", "tool_call", "tool_result", "decision", "session_end", "raw", "injection")
TOOLS = (None, "Bash", "Read", "写文件")
STARTS = (datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2011, 12, 29, 8, tzinfo=UTC), NOW)


@st.composite
def histories(draw):
    """A few sessions whose events lie around clock changes, some without a time, some large, some in isolation."""
    made = []
    for number in range(draw(st.integers(1, 25))):
        kind, body = (
            draw(st.sampled_from(KINDS)),
            draw(st.sampled_from(["", "hello", "取餐码", "x" * 5000, "长" * 3000])),
        )
        if draw(st.integers(0, 9)) == 0:
            kind, body = "user_message", draw(st.sampled_from(["/thread-iso", "/thread-uniso"]))
        moment = draw(st.sampled_from(STARTS)) + timedelta(minutes=draw(st.integers(-3000, 3000)))
        meta: dict[str, object] = {"host": draw(st.sampled_from(["dsh", "claude-code"]))}
        tool = draw(st.sampled_from(TOOLS))
        if tool and kind.startswith("tool"):
            meta["tool_name"] = tool
        if kind == "tool_result":
            meta["is_error"] = draw(st.booleans())
        made.append(
            Event(
                session_id=draw(st.sampled_from(["s1", "s2", "会话"])),
                kind=EventKind(kind),
                origin=f"m{number}",
                body=body,
                ts=utc_text(moment) if draw(st.integers(0, 5)) else None,
                cwd="/srv/p",
                meta=meta,
            )
        )
    return made


def ledger(db):
    """Yield what the ledger holds, read without the code under test: row, body, meta."""
    found = db.execute(
        "SELECT e.id, e.kind, e.at, e.body, e.meta, s.host_id AS session, t.host, b.body AS packed,"
        " b.meta AS packed_meta, EXISTS (SELECT 1 FROM hidden h WHERE h.event = e.id) AS hidden, r.type AS record"
        " FROM events e JOIN sessions s ON s.id = e.session JOIN session_state t ON t.session = s.id"
        " LEFT JOIN bodies b ON b.event = e.id LEFT JOIN records r ON r.id = e.id"
    )
    for row in found:
        body = row["body"] if row["body"] is not None else zlib.decompress(row["packed"])
        meta = row["meta"] if row["meta"] is not None else zlib.decompress(row["packed_meta"])
        yield row, body, json.loads(meta)


def worth(measure, row, body, meta):
    """What a row adds to a measure; None when it is not counted."""
    return {
        "events": 1,
        "bytes": len(body),
        "tool_errors": 1 if row["kind"] == "tool_result" and meta.get("is_error") is True else None,
        "decisions": 1 if row["record"] == "decision" else None,
        "injected_chars": len(body.decode()) if row["kind"] == "injection" else None,
    }[measure]


def key(dimension, row, meta, zone):
    day = datetime.fromisoformat(row["at"]).astimezone(ZoneInfo(zone)).date()
    return {
        "day": str(day),
        "week": str(day - timedelta(days=day.weekday())),
        "kind": row["kind"],
        "host": row["host"] or "",
        "session": row["session"],
        "tool": meta.get("tool_name") or "",
    }[dimension]


DOCUMENT = (
    "query ($measure: Measure!, $by: [Dimension!], $zone: TimeZone!, $since: DateTime) {"
    " aggregate(measure: $measure, by: $by, zone: $zone, since: $since) { groups { keys value } total capped } }"
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    history=histories(),
    measure=st.sampled_from(counts.MEASURES),
    by=st.lists(st.sampled_from(counts.DIMENSIONS), unique=True, max_size=3),
    zone=st.sampled_from(ZONES),
    viewer=st.sampled_from([None, "s1"]),
    days=st.none() | st.integers(0, 3),
)
def test_aggregate_agrees_with_grouping(blank, history, measure, by, zone, viewer, days):
    with ExitStack() as stack:
        home = shutil.copytree(blank, Path(stack.enter_context(tempfile.TemporaryDirectory())) / "home")
        db = stack.enter_context(closing(rebuild.connect(Settings(home=home))))
        capture.capture(db, history, now=lambda: NOW)
        since = utc_text(NOW - timedelta(days=days)) if days is not None else None
        known = {row["host_id"] for row in db.execute("SELECT host_id FROM sessions")}
        asker = Asker(session_id=viewer) if viewer in known else Asker(project="all")
        variables = {"measure": measure, "by": by, "zone": zone, "since": since}
        answer = schema.respond(DOCUMENT, variables, None, Context(db=db, asker=asker, clock=lambda: NOW))
        found = answer["data"]["aggregate"]

        expected: Counter[tuple[str, ...]] = Counter()
        for row, body, meta in ledger(db):
            adds = worth(measure, row, body, meta)
            seen = not row["hidden"] or row["session"] == asker.session_id
            if seen and adds is not None and (since is None or row["at"] >= since):
                expected[tuple(key(name, row, meta, zone) for name in by)] += adds

    assert {tuple(group["keys"]): group["value"] for group in found["groups"]} == dict(expected)
    assert found["total"] == sum(expected.values())
    assert [group["keys"] for group in found["groups"]] == sorted(group["keys"] for group in found["groups"])
    assert not found["capped"]


YEAR = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=2 * step, minutes=29) for step in range(12 * 366)]


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    """A store of an event every other hour, to be read only."""
    batch = [
        Event(session_id="s1", kind=EventKind.RAW, origin=f"m{number}", body="", ts=utc_text(moment), cwd="/srv/p")
        for number, moment in enumerate(YEAR)
    ]
    with closing(rebuild.connect(Settings(home=tmp_path_factory.mktemp("year") / "home"))) as db:
        capture.capture(db, batch)
        yield db


@pytest.mark.parametrize("zone", ZONES)
def test_a_day_is_the_zones_day_on_both_sides_of_every_clock_change(year, zone):
    found = counts.aggregate(year, Viewer(), "events", ["day"], zone=zone)

    expected = Counter(str(moment.astimezone(ZoneInfo(zone)).date()) for moment in YEAR)
    assert {day: count for (day,), count in found.groups} == dict(expected)


def test_more_groups_than_are_listed_are_said_to_be_more(db, monkeypatch, talk):
    for number in range(8):
        talk.session(f"s{number}").user("hello")
    monkeypatch.setattr(counts, "MOST_GROUPS", 5)

    found = counts.aggregate(db, Viewer(), "events", ["session"])

    assert len(found.groups) == 5
    assert found.capped
    assert found.total == 8


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "", "utc\0"])
def test_a_zone_that_is_none_is_refused_before_anything_runs(db, zone):
    context = Context(db=db, asker=Asker(project="all"), clock=lambda: NOW)

    answer = schema.respond(DOCUMENT, {"measure": "events", "zone": zone}, None, context)

    assert "data" not in answer
    assert "Asia/Shanghai" in answer["errors"][0]["message"]


def test_the_groups_of_every_pair_of_dimensions_add_up_to_the_total(db, talk):
    talk.user("hello")
    talk.ran("ls", "a\nb")
    talk.session("s2").user("你好")
    talk.decided("定了")

    for measure, pair in itertools.product(counts.MEASURES, itertools.combinations(counts.DIMENSIONS, 2)):
        found = counts.aggregate(db, Viewer(), measure, pair)
        assert sum(count for _, count in found.groups) == found.total
    assert counts.aggregate(db, Viewer(), "decisions", []).total == 1


def test_a_day_that_a_group_names_can_be_asked_for(db):
    moments = ["2026-11-30T15:59:59Z", "2026-11-30T16:00:00Z", "2026-12-01T15:59:59Z", "2026-12-01T16:00:00Z"]
    capture.capture(
        db,
        [
            Event(
                session_id="s1",
                kind=EventKind.RAW,
                origin=one,
                body="",
                cwd="/srv/p",
                ts=utc_text(datetime.fromisoformat(one)),
            )
            for one in moments
        ],
    )
    document = (
        '{ aggregate(measure: events, by: [day], zone: "Asia/Shanghai", since: "2026-12-01", until: "2026-12-01")'
        " { groups { keys value } total } }"
    )

    context = Context(db=db, asker=Asker(project="all"), clock=lambda: NOW)
    found = schema.respond(document, {}, None, context)["data"]["aggregate"]

    assert found == {"groups": [{"keys": ["2026-12-01"], "value": 2}], "total": 2}


@pytest.mark.parametrize("ts", ["0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.000000Z"])
@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Apia", "UTC"])
def test_the_ends_of_the_calendar_are_days_too(db, ts, zone):
    capture.capture(db, [Event(session_id="s1", kind=EventKind.RAW, origin="m1", body="", ts=ts, cwd="/srv/p")])

    found = counts.aggregate(db, Viewer(), "events", ["day", "week"], zone=zone)

    [((day, week), count)] = found.groups
    assert count == 1
    assert {len(day), len(week)} == {10}
    assert day[:4] in {"0000", "0001", "9999"}

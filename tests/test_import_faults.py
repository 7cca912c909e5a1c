from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import zstandard
from collecting import Collector
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsvc.errors import InvalidInput
from graphsvc.importers.neutral import parse_event
from graphsvc.importers.run import import_files
from graphsvc.memory import capture
from graphsvc.model import TALK_KINDS
from graphsvc.store import events

FIXTURES = Path(__file__).parent / "fixtures" / "importers"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)


def event(number, **more):
    return {"session_id": "s1", "kind": "user_message", "origin": f"o{number}", "body": f"message {number}", **more}


def line(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


FAULTS = {
    "invalid UTF-8 at byte 9": b'{"body":"\xff\xfe"}',
    "invalid UTF-8 at byte 12": b'{"body": "ab\xed\xa0\x80"}',  # a surrogate as raw bytes
    "invalid JSON: Unterminated string": b'{"session_id": "s1", "body": "cut he',
    "invalid JSON: Expecting value": b"// a comment",
    "invalid JSON: Extra data": line(event(90)) + line(event(91)),
    "invalid JSON: Invalid control character": b'{"session_id": "s1", "body": "a\x00b"}',
    "not a JSON object": b'["a", "list"]',
    "invalid JSON: NaN is no JSON": b'{"session_id": "s1", "meta": {"n": NaN}}',
    "invalid JSON: number out of range": b'{"session_id": "s1", "meta": {"n": 1e999}}',
    "invalid JSON: Exceeds the limit": b'{"session_id": "s1", "meta": {"n": ' + b"9" * 5000 + b"}}",
    "nested too deep": b'{"session_id": "s1", "meta": ' + b'{"a":' * 400 + b"1" + b"}" * 401,
    "kind: 'gossip' is unknown": line(event(92, kind="gossip")),
}
DEEPER = b'{"session_id": "s1", "meta": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def nested(depth):
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture
def log():
    return Collector()


def test_twelve_faults_give_exactly_their_gaps_and_everything_else_is_captured(log, tmp_path):
    lines, planted = [], []
    for number, (reason, fault) in enumerate(FAULTS.items()):
        lines += [line(event(2 * number)), fault, line(event(2 * number + 1)), b"", b"\r"]
        planted.append((len(lines) - 3, reason))
    path = tmp_path / "planted"
    path.write_bytes(b"\n".join(lines) + b"\n")

    report = log.load(path)

    assert [gap["line"] for gap in report.gaps] == [number for number, _ in planted]
    for gap, (_, reason) in zip(report.gaps, planted, strict=True):
        assert gap["reason"].startswith(reason)
        assert gap["file"] == str(path)
    assert log.bodies("user_message") == [f"message {number}" for number in range(24)]


@pytest.mark.parametrize("name", ["claude.jsonl", "dsh.jsonl", "codex.jsonl"])
def test_faults_between_the_records_of_a_host_lose_none_of_them(log, tmp_path, name):
    clean = (FIXTURES / name).read_bytes().splitlines(keepends=True)
    faults = [fault for reason, fault in FAULTS.items() if not reason.startswith("kind")]
    lines = [part for fault, record in zip(faults, clean, strict=False) for part in (fault + b"\n", record)]
    path = tmp_path / "planted"
    path.write_bytes(b"".join(lines + clean[len(faults) :]))

    report = log.load(path)

    whole = Collector()
    whole.load(FIXTURES / name)
    assert [gap["line"] for gap in report.gaps] == list(range(1, 2 * len(faults), 2))
    assert log.events == whole.events


def test_nesting_beyond_the_recursion_limit_is_a_gap(log, tmp_path):
    path = tmp_path / "deep"
    path.write_bytes(line(event(1)) + b"\n" + DEEPER + b"\n" + line(event(2)) + b"\n")

    report = log.load(path)

    assert [(gap["line"], gap["reason"]) for gap in report.gaps] == [(2, "nested too deep")]
    assert len(log.events) == 2


def test_a_refused_event_is_a_gap_at_its_line(log, tmp_path):
    path = tmp_path / "refused"
    path.write_bytes(b"\n".join([line(event(1)), line(event(2, body="refuse me")), line(event(3))]))

    report = log.load(path)

    assert report.gaps == [{"file": str(path), "line": 2, "reason": "invalid-input: refused"}]
    assert (report.events_added, report.records) == (2, 3)


def test_an_unfinished_last_line_is_captured_when_it_is_finished(log, tmp_path):
    path = tmp_path / "growing"
    last = line(event(2))
    path.write_bytes(line(event(1)) + b"\n" + last[:20])
    first = log.load(path)
    path.write_bytes(line(event(1)) + b"\n" + last + b"\n")

    second = log.load(path)

    assert [gap["line"] for gap in first.gaps] == [2]
    assert first.gaps[0]["reason"].startswith("unfinished")
    assert second.gaps == []
    assert (second.events_added, second.duplicates) == (1, 1)


def test_a_whole_last_line_needs_no_line_feed(log, tmp_path):
    path = tmp_path / "no-lf"
    path.write_bytes(line(event(1)) + b"\n" + line(event(2)))

    report = log.load(path)

    assert report.gaps == []
    assert len(log.events) == 2


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r", "\r\n"])
def test_only_lf_ends_a_line(log, tmp_path, separator):
    path = tmp_path / "separators"
    path.write_bytes(line(event(1, body=f"a{separator}b")) + b"\r\n" + f'{{"x":1}}{separator}'.encode())

    log.load(path)

    assert log.bodies("user_message") == [f"a{separator}b"]


def test_a_byte_order_mark_and_crlf_are_tolerated(log, tmp_path):
    path = tmp_path / "windows"
    path.write_bytes(b"\xef\xbb\xbf" + line(event(1)) + b"\r\n" + line(event(2)) + b"\r\n")

    report = log.load(path)

    assert report.gaps == []
    assert len(log.events) == 2


def test_surrogates_nul_and_large_numbers_survive_as_escapes(log, tmp_path):
    value = event(1, body="a\x00b\ud800c😀", meta={"id": 2**63, "text": "\udfff"})
    path = tmp_path / "escapes"
    path.write_bytes(json.dumps(value).encode() + b"\n")

    log.load(path)

    assert log.events[0].body == "a\x00b\ud800c😀"
    assert log.events[0].meta == {"id": 2**63, "text": "\udfff"}


def test_a_line_of_ten_megabytes_is_one_event(log, tmp_path):
    path = tmp_path / "long"
    path.write_bytes(line(event(1)) + b"\n" + line(event(2, body="汉" * 3_500_000)) + b"\n" + line(event(3)) + b"\n")

    report = log.load(path)

    assert report.gaps == []
    assert [len(body) for body in log.bodies("user_message")] == [9, 3_500_000, 9]


def packed(*parts):
    return b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)


def test_frames_of_zstd_are_read_as_one_stream(log, tmp_path):
    first = line(event(1)) + b"\n" + line(event(2))[:10]
    path = tmp_path / "frames"
    path.write_bytes(packed(first, line(event(2))[10:] + b"\n", b"", line(event(3)) + b"\n"))

    report = log.load(path)

    assert report.gaps == []
    assert len(log.events) == 3


def test_a_cut_frame_is_a_gap_behind_what_came_before(log, tmp_path):
    noise = os.urandom(200_000).hex()
    path = tmp_path / "cut"
    path.write_bytes(packed(line(event(1)) + b"\n") + packed(line(event(2, body=noise)) + b"\n")[:50_000])

    report = log.load(path)

    assert [gap["line"] for gap in report.gaps] == [2]
    assert report.gaps[0]["reason"].startswith("unfinished zstd frame")
    assert len(log.events) == 1


def test_a_damaged_tail_is_a_gap_behind_what_came_before(log, tmp_path):
    path = tmp_path / "damaged"
    path.write_bytes(packed(line(event(1)) + b"\n" + line(event(2))) + b"no frame at all")

    report = log.load(path)

    assert [gap["line"] for gap in report.gaps] == [3]
    assert report.gaps[0]["reason"].startswith("damaged zstd data")
    assert len(log.events) == 2


@pytest.mark.parametrize("keep", [4, 2000, 0.5, 0.9, -30])
def test_a_cut_log_is_captured_as_far_as_it_can_be_unpacked(log, tmp_path, keep):
    data = packed(b"".join(line(event(n, body=os.urandom(500).hex())) + b"\n" for n in range(1000)))
    path = tmp_path / "cut"
    path.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])

    report = log.load(path)

    assert [gap["reason"] for gap in report.gaps] == ["unfinished zstd frame"]
    assert (report.files, report.skipped) == (1, [])
    assert [event.origin for event in log.events] == [f"o{n}" for n in range(len(log.events))]
    assert len(log.events) >= (path.stat().st_size / len(data) - 0.15) * 1000


@pytest.mark.parametrize("size", [500, 0])
def test_a_log_damaged_at_two_thirds_is_captured_up_to_the_damage(log, tmp_path, size):
    rows = 1000 if size else 40_000  # without noise whole blocks are smaller than what is unpacked at once
    text = b"".join(line(event(n, body=os.urandom(size).hex())) + b"\n" for n in range(rows))
    data = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(text))
    middle = len(data) * 2 // 3
    data[middle : middle + 64] = bytes(byte ^ 0xFF for byte in data[middle : middle + 64])
    path = tmp_path / "flipped"
    path.write_bytes(data)

    report = log.load(path)

    assert report.gaps[-1]["reason"].startswith("damaged zstd data")
    assert [event.origin for event in log.events[: rows // 2]] == [f"o{n}" for n in range(rows // 2)]


def test_blocks_before_the_damage_survive_in_the_chunk_that_holds_it(log, tmp_path):
    packer = zstandard.ZstdCompressor().compressobj()
    blocks = [
        packer.compress(line(event(n)) + b"\n") + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for n in range(5)
    ]
    path = tmp_path / "small"
    path.write_bytes(b"".join(blocks) + b"\xff" * 20)

    report = log.load(path)

    assert [gap["line"] for gap in report.gaps] == [6]
    assert len(log.events) == 5


def test_a_packed_file_that_yields_nothing_is_a_gap(log, tmp_path):
    path = tmp_path / "broken.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\xff" * 40)

    report = log.load(path)

    assert (report.files, report.skipped) == (1, [])
    assert [gap["line"] for gap in report.gaps] == [1]
    assert report.gaps[0]["reason"].startswith("damaged zstd data")


def test_what_is_no_transcript_is_skipped_with_a_reason(log, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "blank").write_bytes(b"\n \r\n")
    (tmp_path / "notes.jsonl").write_bytes(b"# Notes\n\nnot JSON\n")
    (tmp_path / "other.jsonl").write_bytes(b'{"level": "info", "message": "started"}\n')
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 8000)
    (tmp_path / "nothing.zst").write_bytes(packed(b""))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "empty")

    report = log.load(tmp_path, tmp_path / "missing")

    reasons = {Path(skip["file"]).name: skip["reason"] for skip in report.skipped}
    assert reasons == {
        "empty": "empty file",
        "nothing.zst": "empty file",
        "blank": "empty file",
        "notes.jsonl": "no known format",
        "other.jsonl": "no known format",
        "binary": "no known format",
        "pipe": "not a regular file",
        "link": "symbolic link",
        "missing": "no such file",
    }
    assert report.files == 0


def test_a_name_that_is_no_unicode_is_printed_as_escapes(log, tmp_path):
    (tmp_path / os.fsdecode(b"bad\xff.jsonl")).write_bytes(line(event(1)) + b"\n{\n")

    report = log.load(tmp_path)

    json.dumps(report.to_json(), ensure_ascii=False).encode()
    assert report.gaps[0]["file"].endswith("bad\\udcff.jsonl")


def test_an_unchanged_file_is_not_read_again_and_its_gaps_are_told_again(log, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(line(event(1)) + b"\n{\n" + line(event(2)) + b"\n")
    first = log.load(path)
    batches = len(log.batches)

    second = log.load(path)

    assert len(log.batches) == batches
    assert second.gaps == first.gaps
    assert (second.events_added, second.duplicates, second.records) == (0, 2, 2)
    assert second.to_json()["sessions"] == ["s1"]


def test_a_file_named_twice_is_read_once(log, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(line(event(1)) + b"\n")
    (tmp_path / "same").symlink_to(path)

    report = log.load(path, tmp_path / "same", path)

    assert (report.files, report.events_added, report.duplicates) == (1, 1, 0)


def test_batches_are_bounded_in_events_and_size(log, tmp_path):
    small = tmp_path / "small"
    small.write_bytes(b"\n".join(line(event(number)) for number in range(600)))
    large = tmp_path / "large"
    large.write_bytes(b"\n".join(line(event(1000 + number, body="x" * 1_500_000)) for number in range(5)))

    log.load(small, large)

    assert log.batches == [256, 256, 88, 2, 2, 1]


def test_progress_counts_bytes_to_the_end(log, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"\n".join(line(event(number)) for number in range(600)))
    steps = []

    log.load(path, tmp_path / "missing", progress=lambda *step: steps.append(step))

    done = [step[1] for step in steps]
    assert done == sorted(done)
    assert steps[-1][1:] == (path.stat().st_size, path.stat().st_size)


def test_format_can_be_forced_and_must_be_known(log, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(line(event(1)) + b"\n")

    report = log.load(path, format="codex")

    assert report.unknown == {"(no type)": 1}
    with pytest.raises(InvalidInput, match="format: 'csv' is unknown; allowed: claude-code, dsh"):
        log.load(path, format="csv")


def test_a_stated_project_stands_on_every_event(log, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(line(event(1)) + b"\n")

    log.load(path, project="/p")

    assert log.events[0].project == "/p"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": "a\x00"}, "session_id"),
        ({"origin": "a\ud800"}, "origin"),
        ({"origin": "x" * 1025}, "origin"),
        ({"kind": "asset"}, "kind"),
        ({"kind": 3}, "kind"),
        ({"body": None}, "body"),
        ({"ts": "yesterday"}, "ts"),
        ({"ts": 5}, "ts"),
        ({"project": 1}, "project"),
        ({"cwd": "\x00"}, "cwd"),
        ({"actor": []}, "actor"),
        ({"meta": []}, "meta"),
        ({"meta": {"is_error": 1}}, "meta.is_error"),
        ({"meta": {"tool_name": None}}, "meta.tool_name"),
        ({"meta": {"n": float("inf")}}, "meta"),
        ({"meta": {"a": [{"b": [0, float("nan")]}]}}, "meta"),
        ({"meta": {"a": nested(400)}}, "meta"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_neutral_event_outside_the_contract_names_the_field(change, field):
    with pytest.raises(InvalidInput) as caught:
        parse_event({**event(1), **change})

    assert caught.value.field == field


@pytest.mark.parametrize("name", ["session_id", "kind", "origin", "body"])
def test_a_neutral_event_needs_its_four_fields(name):
    value = event(1)
    del value[name]

    with pytest.raises(InvalidInput, match=f"{name}: missing"):
        parse_event(value)


def test_a_time_without_a_zone_counts_as_utc_and_is_marked():
    naive = parse_event(event(1, ts="2026-11-30T09:26:36"))
    zoned = parse_event(event(1, ts="2026-11-30T09:26:36+01:00"))

    assert (naive.ts, naive.meta) == ("2026-11-30T09:26:36.000000Z", {"ts_naive": True})
    assert (zoned.ts, zoned.meta) == ("2026-11-30T08:26:36.000000Z", {})


@pytest.mark.parametrize("ts", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_that_utc_has_no_year_for_is_kept_as_text(ts):
    stated = parse_event(event(1, ts=ts, meta={"host": "h"}))

    assert (stated.ts, stated.meta) == (None, {"host": "h", "ts_raw": ts})


def places(value, path=()):
    """List every place in a JSON value."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", ["claude.jsonl", "dsh.jsonl", "codex.jsonl", "neutral.jsonl", "run.traj"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_value_of_any_other_shape_crashes_no_importer(tmp_path_factory, name, data):
    text = (FIXTURES / name).read_text("utf-8")
    records = [json.loads(part) for part in ([text] if name == "run.traj" else text.split("\n")) if part.strip()]
    number = data.draw(st.integers(0, len(records) - 1))
    path = data.draw(st.sampled_from(list(places(records[number]))))
    records[number] = changed(records[number], path, data.draw(ANYTHING))
    file = tmp_path_factory.mktemp("shapes") / "log"
    file.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")

    report = Collector().load(file)

    assert len(report.gaps) + len(report.skipped) <= 1
    json.dumps(report.to_json(), ensure_ascii=False).encode()


UNUSABLE = "a\0b\ud800" + "x" * 5000


def stored(db, file, *lines):
    """Import lines into a store and take them out again; return the report and what was said."""
    file.write_text("".join(part + "\n" for part in lines), "utf-8")
    db.execute("BEGIN")
    report = import_files(
        [file], capture=lambda batch: capture.capture(db, batch), known=lambda _: None, record=lambda *_: None
    )
    said = {(one.kind, one.body) for one in events.after(db, 0) if one.kind in TALK_KINDS[:4]}
    db.execute("ROLLBACK")
    return report, said


@pytest.mark.parametrize("name", ["claude.jsonl", "dsh.jsonl", "codex.jsonl", "neutral.jsonl", "run.traj"])
def test_a_text_no_key_can_hold_costs_no_more_than_its_own_line(db, tmp_path, name):
    text = (FIXTURES / name).read_text("utf-8")
    records = [json.loads(part) for part in ([text] if name == "run.traj" else text.split("\n")) if part.strip()]
    lines = [json.dumps(record) for record in records]
    for number, record in enumerate(records):
        before, after = lines[:number], lines[number + 1 :]
        _, others = stored(db, tmp_path / "log", *before, "// unreadable", *after)
        for path in [path for path in places(record) if isinstance(at(record, path), str)]:
            bad = json.dumps(changed(record, path, UNUSABLE))

            report, said = stored(db, tmp_path / "log", *before, bad, *after)

            assert (len(report.gaps) <= 1, report.skipped, others - said) == (True, [], set()), (number, path)

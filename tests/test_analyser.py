"""What the word index makes of texts and of queries."""

from __future__ import annotations

import time
import unicodedata

import pytest

from graphsvc.recall import analyser


@pytest.mark.parametrize(
    ("text", "plain", "joined"),
    [
        ("Hello world", ["hello", "world"], []),
        ("open_store()", ["open", "store"], ["openstore"]),
        ("openStore", ["open", "store"], ["openstore"]),
        ("HTTPServer2", ["http", "server2"], ["httpserver2"]),
        ("src/a/store.py", ["src", "a", "store", "py"], ["srcastorepy"]),
        ("a.getURLFor", ["a", "get", "url", "for"], ["geturlfor", "ageturlfor"]),
        (r"C:\new\table", ["c", "new", "table"], ["cnewtable"]),
        ("std::vector", ["std", "vector"], ["stdvector"]),
        ("KeyError: 'x'", ["key", "error", "x"], ["keyerror"]),
        ("数据库", ["数据", "据库", "库"], []),
        ("库", ["库"], []),
        ("用docker部署", ["用", "docker", "部署", "署"], []),
        ("カーソル", ["カー", "ーソ", "ソル", "ル"], []),
        ("한국어", ["한국", "국어", "어"], []),
        ("ＡＢＣ１２", ["abc12"], []),
        ("ze\u200bro wi\u00addth", ["zero", "width"], []),
        ("数\ufeff据", ["数据", "据"], []),
        ("\ufb01le", ["file"], []),
        ("one\0two", ["one", "two"], []),
        ("one\ud800two", ["one", "two"], []),
        ("one\u2028two\r\nthree", ["one", "two", "three"], []),
        ("😀 ?!… →", [], []),
        ("", [], []),
    ],
)
def test_a_text_becomes_words_and_joined_forms(text: str, plain: list[str], joined: list[str]):
    assert analyser.words(text) == (plain, joined)


@pytest.mark.parametrize(
    "text", ["8 may 2023", "May 8, 2023", "8th of fun, 2023-05-08", "2023年5月8日", "2023 年 5 月 8 号", "8 May 2023."]
)
def test_a_date_is_the_same_however_it_is_written(text: str):
    _, joined = analyser.columns(text)

    assert {"20230508", "5月8日"} <= set(joined.split())
    assert {"20230508", "5月8日"} <= {*analyser.terms(text).dates}


def test_an_event_is_found_by_the_day_and_the_month_of_its_time():
    _, joined = analyser.columns("nothing", "2023-05-08T23:59:59.999999Z")

    for query in ("2023-05-08", "8 may", "5月8号", "may 2023", "2023年5月", "2023-05"):
        assert set(analyser.terms(query).dates) & set(joined.split()), query
    for query in ("2023-05-09", "8 june", "may 2024"):
        assert not set(analyser.terms(query).dates) & set(joined.split()), query


@pytest.mark.parametrize("text", ["2023-13-01", "1.2023-05-081", "0508", "99年", "mayor 8"])
def test_what_is_no_date_is_none(text: str):
    assert analyser.terms(text).dates == ()


@pytest.mark.parametrize(
    ("query", "words", "joined", "prefixes"),
    [
        ("what is the store", ("store",), ("store",), ()),
        ("the", ("the",), ("the",), ()),
        ("open store", ("open", "store"), ("openstore", "open", "store"), ()),
        ("open_store", ("open", "store"), ("openstore", "open", "store"), ()),
        ("会话保存在哪里", ("会话", "话保", "保存", "存在", "在哪"), (), ()),
        ("库", (), (), ("库",)),
        ("的", (), (), ("的",)),
        ("AND", ("and",), ("and",), ()),
        ('say "hello', ("say", "hello"), ("sayhello", "say", "hello"), ()),
        ("store*", ("store",), ("store",), ()),
    ],
)
def test_a_query_keeps_the_words_that_mean_something(query: str, words: tuple, joined: tuple, prefixes: tuple):
    asked = analyser.terms(query)

    assert (asked.words, asked.joined, asked.prefixes) == (words, joined, prefixes)


@pytest.mark.parametrize("query", ["?!...", "😀", "(" * 5000, "->", "…", "\u200b"])
def test_a_query_without_words_keeps_its_literal(query: str):
    asked = analyser.terms(query)

    assert asked.empty
    assert asked.literal == query[:2000].strip()


def test_a_query_is_bounded():
    asked = analyser.terms(" ".join(f"word{number}" for number in range(10_000)))

    assert len(asked.words) + len(asked.joined) + len(asked.prefixes) + len(asked.dates) <= analyser.MAX_TERMS
    assert len(analyser.terms("a" * 100_000).words[0]) <= 256


def test_what_asks_is_what_is_stored():
    for text in (
        "openStore",
        "src/a/store.py",
        "HTTPServer2",
        "数据库",
        "x" * 5000,
        "a" * 300 + "/b",
        "İstanbul",
        "ﬁle_name",
    ):
        plain, joined = (column.split() for column in analyser.columns(text))
        asked = analyser.terms(text)

        assert set(asked.words) <= set(plain), text
        assert set(asked.joined) & {*plain, *joined} or not asked.joined, text


def test_no_format_character_is_left():
    marks = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"]

    assert analyser.words("a" + "".join(marks) + "b")[0] == ["ab"]


def test_a_tool_call_is_searched_by_its_strings_and_its_name():
    spoken = analyser.spoken("tool_call", '{"text": "first\\nnext", "n": [1, {"说明": "第一行\\t第二行"}]}', "WebFetch")

    assert analyser.words(spoken)[0][:5] == ["web", "fetch", "text", "first", "next"]
    assert "说明" in spoken
    assert analyser.spoken("tool_call", "{broken \\n", None) == "{broken \\n"
    assert analyser.spoken("tool_result", "[" * 100_000) == "[" * 100_000
    assert analyser.spoken("user_message", '{"a": "b"}', "x") == '{"a": "b"}'


def test_reminders_of_the_host_are_not_searched():
    reminder = "<system-reminder>hidden\n</system-reminder>"
    body = f"one {reminder}two{reminder} three <system-reminder>open"

    assert analyser.spoken("tool_result", body) == "one two three <system-reminder>open"
    assert analyser.spoken("user_message", body) == body


@pytest.mark.parametrize(
    "text",
    [
        "the quick brown open_store lazyDog 5 times\n" * 23_000,
        "今天我们决定使用数据库来保存会话" * 62_500,
        "aB3/" * 250_000,
        "a-" * 500_000,
        "a" * 1_000_000,
        " " * 1_000_000,
        "2023-" * 200_000,
        "5 月 " * 250_000,
        "<system-reminder>" * 58_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_megabyte_of_anything_is_analysed_in_linear_time(text: str):
    begun = time.perf_counter()
    analyser.columns(analyser.spoken("tool_result", text), "2023-05-08T00:00:00.000000Z")

    assert time.perf_counter() - begun < 8

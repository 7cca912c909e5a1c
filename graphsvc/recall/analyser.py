"""How texts become the terms of the word index, the same way for what is stored and for what is asked.

Chinese, Japanese and Korean runs become overlapping pairs of characters; other words are split where identifiers and
paths are joined, and the joined form is kept beside the parts. A change here needs another VERSION: the index is then
built anew.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

VERSION: Final = "1"
FILLER: Final = " ".join(["x"] * 32)  # column p: softens the length normalisation of short texts
MAX_QUERY: Final = 2_000
MAX_TERMS: Final = 64
# A term says no more the fifth time (BM25 saturates), but a log that repeats it makes every query for it slow.
_REPEATS: Final = 4
_LONGEST: Final = 256  # longer pieces are data: kept whole up to here, not split

_CJK: Final = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff\U00020000-\U0003ffff"
)
# Format characters and variation selectors: invisible, so a word with them is the word without them.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001-\U000e01ef]"
)
_WORD: Final = rf"[^\W{_CJK}]"
_RUN: Final = re.compile(rf"{_WORD}+(?:[./\\\-:@+#]{{1,3}}{_WORD}+)*|[{_CJK}]+")
_IS_CJK: Final = re.compile(f"[{_CJK}]")
_SEPARATOR: Final = re.compile(r"[./\\\-:@+#_]+")
# An acronym ends before the capital that begins the next word: `HTTPServer` is http, server; digits stay with theirs.
_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<{}>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<{}>(?:19|20)[0-9]{{2}})"
_DATE: Final = re.compile(
    "|".join(
        (
            rf"{_YEAR.format('iso_y')}-(?P<iso_m>0[1-9]|1[0-2])(?:-(?P<iso_d>0[1-9]|[12][0-9]|3[01]))?(?![0-9-])",
            rf"(?:{_YEAR.format('zh_y')} ?年 ?)?(?P<zh_m>0?[1-9]|1[0-2]) ?月"
            r"(?: ?(?P<zh_d>0?[1-9]|[12][0-9]|3[01]) ?[日号號])?",
            rf"{_DAY.format('dmy_d')} {_MONTH.format('dmy_m')}(?:,? {_YEAR.format('dmy_y')})?(?!\w)",
            rf"{_MONTH.format('mdy_m')} {_DAY.format('mdy_d')}(?:,? {_YEAR.format('mdy_y')})?(?!\w)",
            rf"{_MONTH.format('my_m')} {_YEAR.format('my_y')}(?!\w)",
        )
    ).join((r"(?<!\w)(?<![0-9]-)(?:", ")")),
    re.IGNORECASE | re.ASCII,
)

_STOP_WORDS: Final = """
a an the and or but if of to in on at by for with from as is are was were be been being am do does did doing
done have has had having i you he she it we they me him her us them my your his its our their this that these
those what which who whom whose when where why how not no nor so than too very can could will would shall should
may might must about into over after before then there here just also any all some such own same more most other
up down out off again once only s t don ll ve re d m
的 了 是 在 和 与 及 或 吗 呢 吧 啊 我 你 他 她 它 们 这 那 也 还 就 都 被 把 对 从 到 有 哪 些 什么 怎么
如何 哪些 哪个 哪里 为什 么 我们 你们 他们 一个 这个 那个 曾经 名字 多少 是谁 是什 是哪 请问
"""
STOP: Final = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks the index for: a hit holds any of it. `literal` is the query itself, when it has no words."""

    words: tuple[str, ...]  # whole terms of column w
    joined: tuple[str, ...]  # whole terms of column i
    prefixes: tuple[str, ...]  # a lone CJK character: the beginning of a pair in column w
    dates: tuple[str, ...]  # dates, whole terms of column i
    literal: str

    @property
    def empty(self) -> bool:
        return not (self.words or self.joined or self.prefixes or self.dates)


def normalise(text: str) -> str:
    """Return the text in NFKC without invisible characters."""
    if text.isascii():
        return text
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def words(text: str) -> tuple[list[str], list[str]]:
    """Return the terms of a text for the columns w and i, in reading order, with repetitions."""
    plain: list[str] = []
    joined: list[str] = []
    for run in _RUN.finditer(normalise(text)):
        plain.extend(_parts(run[0], joined))
    return plain, joined


def columns(text: str, ts: str | None = None) -> tuple[str, str]:
    """Return what the columns w and i of a text hold; `ts` is the time its host gave."""
    text = normalise(text)
    plain: list[str] = []
    joined: list[str] = []
    # A large text repeats itself: what it repeats is split once.
    for run, times in Counter(run[0] for run in _RUN.finditer(text)).items():
        forms: list[str] = []
        plain.extend(_parts(run, forms) * min(times, _REPEATS))
        joined.extend(forms * min(times, _REPEATS))
    for date, times in Counter(date.groups() for date in _DATE.finditer(text)).items():
        joined.extend(_indexed(*_read(date)) * min(times, _REPEATS))
    if ts is not None:
        joined.extend(_indexed(ts[:4], int(ts[5:7]), int(ts[8:10])))
    return _capped(plain), _capped(joined)


def terms(query: str) -> Query:
    """Analyse what is asked: the same terms without stop words, unless nothing else is left."""
    text = normalise(query[:MAX_QUERY])
    dates = [term for date in _DATE.finditer(text) for term in _date(*_read(date.groups()))]
    found = list(_asked(_DATE.sub(" ", text)))
    meaning = [one for one in found if one[1] not in STOP]
    if not meaning and not dates:
        meaning = found
    plain = [term for column, term in meaning if column == "w"]
    latin = [term for term in plain if not _IS_CJK.match(term)]
    joined = [term for column, term in meaning if column == "i"]
    if 2 <= len(latin) == len(plain) <= 5:
        joined.append("".join(latin)[:_LONGEST])
    # `openstore` asks for open_store too: every word may be the joined form of an identifier.
    joined.extend(latin)
    prefixes = [term for column, term in meaning if column == "p"]
    asked = [
        (column, term) for column, some in zip("wpdi", (plain, prefixes, dates, joined), strict=True) for term in some
    ]
    kept = list(dict.fromkeys(asked))[:MAX_TERMS]
    by_column = {name: tuple(term for column, term in kept if column == name) for name in "wipd"}
    return Query(by_column["w"], by_column["i"], by_column["p"], by_column["d"], query.strip()[:MAX_QUERY])


def spoken(kind: str, body: str, tool: str | None = None) -> str:
    """Return what of a body is searched: the strings of a tool's input, a result without the host's reminders."""
    if kind == "tool_result":
        body = without_reminders(body)
    if kind in {"tool_call", "tool_result"} and body[:1] in {"{", "["}:
        body = _unescaped(body)
    return f"{tool}: {body}" if tool and kind == "tool_call" else body


def without_reminders(body: str) -> str:
    """Take out what the host writes to the model into a tool's result: it is no memory."""
    opening, closing = "<system-reminder>", "</system-reminder>"
    kept, position = [], 0
    while (start := body.find(opening, position)) >= 0 and (end := body.find(closing, start)) >= 0:
        kept.append(body[position:start])
        position = end + len(closing)
    return "".join((*kept, body[position:])) if kept else body


def _parts(run: str, joined: list[str]) -> list[str]:
    """Split one run into its words, adding the joined forms of its pieces and of itself."""
    if _IS_CJK.match(run):
        return [*map("".join, pairwise(run)), run[-1]]
    if len(run) > _LONGEST and not _SEPARATOR.search(run):
        return [run[:_LONGEST].lower()]
    if run.isalnum() and (run.islower() or run.isdigit()):
        return [run]
    pieces = [piece for piece in re.split(r"[./\\\-:@+#]+", run) if piece]
    parts: list[str] = []
    for piece in pieces:
        split = [part.lower() for part in _split(piece)]
        parts.extend(split)
        if len(split) > 1:
            joined.append("".join(split)[:_LONGEST])
    if len(pieces) > 1:
        whole = "".join(pieces).replace("_", "").lower()
        joined.append(whole[:_LONGEST])
    return parts


def _split(piece: str) -> Iterator[str]:
    for word in piece.split("_"):
        if len(word) > _LONGEST:
            yield word[:_LONGEST]
        elif word:
            yield from _CASE.split(word)


def _asked(text: str) -> Iterator[tuple[str, str]]:
    """Yield the terms of a query as (column, term); a lone CJK character is the beginning of a pair."""
    for run in _RUN.finditer(text):
        whole = run[0]
        if not _IS_CJK.match(whole):
            joined: list[str] = []
            yield from (("w", part) for part in _parts(whole, joined))
            yield from (("i", term) for term in joined)
        elif len(whole) == 1:
            yield "p", whole
        else:
            yield from (("w", left + right) for left, right in pairwise(whole))


def _unescaped(body: str) -> str:
    r"""Return the keys and values of a JSON text: in the text itself `\nword` would be the word `nword`."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            for key, part in reversed(one.items()):
                waiting += [part, key]
        elif isinstance(one, list):
            waiting.extend(reversed(one))
        else:
            found.append(str(one))
    return "\n".join(found)


def _read(date: Sequence[str | None]) -> tuple[str | None, int, int | None]:
    """Return the year, month and day of a date as it was written, from the groups of its match."""
    named = {name.rpartition("_")[2]: date[place - 1] for name, place in _DATE.groupindex.items() if date[place - 1]}
    given = {name: value for name, value in named.items() if value is not None}
    month = given["m"].lower()
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1
    return given.get("y"), number, int(given["d"]) if "d" in given else None


def _date(year: str | None, month: int, day: int | None) -> list[str]:
    """Return the terms that ask for a date: the day and the day of any year, or the month."""
    if day is None:
        return [f"{year}{month:02}" if year else f"{month}月"]
    return [*([f"{year}{month:02}{day:02}"] if year else []), f"{month}月{day}日"]


def _indexed(year: str | None, month: int, day: int | None) -> list[str]:
    """Return the terms a date is found by: those of its day, and of its month with and without the year."""
    days = _date(year, month, day) if day else []
    return [*days, *_date(year, month, None), *(_date(None, month, None) if year else [])]


def _capped(found: list[str]) -> str:
    return " ".join(term for term, count in Counter(found).items() for _ in range(min(count, _REPEATS)))

"""Answers for people: tables and colour on a terminal, tab-separated lines in a pipe.

What is shown was said by others: control and bidi characters never reach a terminal, where they could rewrite lines.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

Answer = Mapping[str, object]

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BLANK: Final = re.compile(r"\s+")
_STYLES: Final = {"id": "cyan", "type": "magenta", "kind": "magenta", "ref": "dim", "when": "dim", "why": "dim"}
_WRAP: Final = frozenset({"label", "body", "reason"})


def clean(text: str) -> str:
    """Replace every character that would steer a terminal instead of being seen."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Fold a text into one printable line."""
    return _BLANK.sub(" ", clean(text)).strip()


def say(text: str) -> None:
    """Tell the person at the terminal something that is not part of the answer."""
    print(clean(text), file=sys.stderr)


def title(text: str) -> None:
    """Print a heading."""
    if sys.stdout.isatty():
        _console().print(one_line(text), style="bold", markup=False, highlight=False)
    else:
        write(one_line(text) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their column names; in a pipe one tab-separated line a row, whole and without a header."""
    cells = [[one_line(_cell(value)) for value in row] for row in rows]
    if not sys.stdout.isatty():
        write("".join("\t".join(row).rstrip("\t") + "\n" for row in cells))
        return
    shown = [index for index in range(len(columns)) if any(row[index] for row in cells)]
    grid = Table(box=None, pad_edge=False, header_style="bold dim")
    for index in shown:
        name = columns[index]
        wide = name in _WRAP
        grid.add_column(name, style=_STYLES.get(name, ""), no_wrap=not wide, overflow="fold", ratio=1 if wide else None)
    for row in cells:
        grid.add_row(*(Text(row[index]) for index in shown))
    _console().print(grid)


def answer(got: Answer) -> None:
    """Print an answer of the tool: an envelope or the results of a search."""
    if "results" in got:
        _search(got)
    else:
        _envelope(got)
    remarks(got)


def remarks(got: Answer) -> None:
    """Tell what stands beside an answer: status, notes, the next page, what to try instead."""
    for note in _list(got, "notes"):
        say(f"note: {note}")
    if got.get("status") in {"not-found", "degraded"}:
        say(str(got["status"]))
    if suggestion := got.get("suggestion"):
        say(f"try: {suggestion}")
    if cursor := got.get("cursor"):
        say(f"more: add --cursor {cursor}")


def write(text: str) -> None:
    """Write text to standard output as it is, except for what would steer a terminal."""
    shown = clean(text) if sys.stdout.isatty() else text
    sys.stdout.flush()
    sys.stdout.buffer.write(shown.encode("utf-8", "surrogatepass" if shown is text else "backslashreplace"))
    sys.stdout.buffer.flush()


@contextmanager
def progress(task: str) -> Iterator[Callable[[int, int], None]]:
    """Yield what is told (done, all); on a terminal it moves a bar on standard error."""
    if not sys.stderr.isatty():
        yield lambda done, total: None  # noqa: ARG005 # nobody watches
        return
    columns = (TextColumn(task), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        number = bar.add_task(task)
        yield lambda done, total: bar.update(number, completed=done, total=total)


def size(count: float) -> str:
    """Write a number of bytes as people read it."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def day(seconds: float) -> str:
    """Write a time in seconds since 1970 as a date."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def when(time: object) -> str:
    """Shorten a UTC time to the minute."""
    return str(time)[:16].replace("T", " ") if time else ""


def _search(got: Answer) -> None:
    if "count" in got:
        write(f"{got['count']}\n")
    rows = [
        [hit.get("id"), hit.get("kind"), when(hit.get("ts")), hit.get("session_id"), hit.get("body"), hit.get("why")]
        for hit in _list(got, "results")
    ]
    if rows:
        table(("id", "kind", "when", "session", "body", "why"), rows)


def _envelope(got: Answer) -> None:
    title(str(got.get("title", "")))
    items = _list(got, "items")
    if items:
        table(
            ("id", "type", "label", "ref"),
            [[item.get(name) for name in ("id", "type", "label", "ref")] for item in items],
        )
    context = got.get("context")
    evidence = _list(context, "evidence") if isinstance(context, Mapping) else []
    if evidence:
        write(f"evidence: {' '.join(map(str, evidence))}\n")


def _list(got: Answer, name: str) -> list[dict[str, object]]:
    value = got.get(name)
    return value if isinstance(value, list) else []


def _cell(value: object) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _console() -> Console:
    return Console(highlight=False)

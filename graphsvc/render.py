"""Answers for people: tables and colour on a terminal, tab-separated lines in a pipe.

What is shown was said by others: control and bidi characters never reach a terminal, where they could rewrite lines.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from graphsvc.store import visibility

Answer = Mapping[str, object]

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BLANK: Final = re.compile(r"\s+")
_BODY: Final = 600  # characters of a hit on a terminal; `cat` has the rest
_STYLES: Final = {"id": "cyan", "host": "cyan", "session": "cyan", "note": "dim"}
_WRAP: Final = frozenset({"found", "problem", "text", "what to do", "where"})


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
    """Print a heading; a line feed before it leaves a line free."""
    write("\n" if text.startswith("\n") else "")
    if sys.stdout.isatty():
        Console(highlight=False).print(one_line(text), style="bold", markup=False)
    else:
        write(one_line(text) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their column names; in a pipe one tab-separated line a row, whole and without a header."""
    cells = [[one_line(_cell(value)) for value in row] for row in rows]
    if not sys.stdout.isatty():
        write("".join("\t".join(row).rstrip("\t") + "\n" for row in cells))
        return
    if not cells:
        return
    shown = [index for index in range(len(columns)) if any(row[index] for row in cells)]
    grid = Table(box=None, pad_edge=False, header_style="bold dim")
    for index in shown:
        name = columns[index]
        wide = name in _WRAP
        grid.add_column(name, style=_STYLES.get(name, ""), no_wrap=not wide, overflow="fold", ratio=1 if wide else None)
    for row in cells:
        grid.add_row(*(Text(row[index]) for index in shown))
    Console(highlight=False).print(grid)


def tree(got: Answer) -> None:
    """Draw a walk: each node below the one it was reached from; in a pipe a line each, with its depth and that node."""
    nodes = _list(got, "nodes")
    if not sys.stdout.isatty():
        names = ("depth", "id", "type", "status", "label", "via")
        table(names, [[node.get(name) for name in names] for node in nodes])
        return
    edges: dict[frozenset[object], str] = {}
    for edge in _list(got, "edges"):
        edges.setdefault(frozenset((edge["source"], edge["target"])), f"{edge['type']}, {edge['rule']}")
    drawn: dict[object, Tree] = {}
    for node in nodes:
        line = Text(one_line(_cell(node.get("id"))), "cyan")
        if status := node.get("status"):
            line.append(f" {status}", "magenta")
        line.append(f"  {one_line(_cell(node.get('label')))}", "")
        how = edges.get(frozenset((node.get("id"), node.get("via"))))
        line.append(f"  {one_line(how)}" if how else "", "dim")
        line.append("  some neighbours are isolated" if node.get("hidden") else "", "dim")
        above = drawn.get(node.get("via"))
        drawn[node.get("id")] = above.add(line) if above is not None else Tree(line)
        if above is None:
            roots = drawn.setdefault(None, Tree("", hide_root=True))
            roots.children.append(drawn[node.get("id")])
    if drawn:
        Console(highlight=False).print(drawn[None])


def answer(got: Answer, options: Sequence[str]) -> None:
    """Print an answer of the tool: an envelope, the results of a search, or a content."""
    if "results" in got:
        _search(got)
    elif got.get("kind") == "content":
        text = "".join(str(item.get("label", "")) for item in _list(got, "items"))
        write(text if text.endswith("\n") else f"{text}\n")
    else:
        _envelope(got)
    remarks(got, options)


def remarks(got: Answer, options: Sequence[str]) -> None:
    """Tell what stands beside an answer: status, notes, what to try, the next page. `options` say who asked."""
    for note in _list(got, "notes"):
        say(f"note: {note}")
    if got.get("status") in {"not-found", "degraded"}:
        say(str(got["status"]))
    if suggestion := got.get("suggestion"):
        asker = _without_viewer(options) if visibility.NO_VIEWER in map(str, _list(got, "notes")) else options
        say(f"try: {as_command(str(suggestion), asker)}")
    if cursor := got.get("cursor"):
        say(f"there is more: the same command with --cursor {cursor}")


def typed(arguments: Answer, options: Sequence[str]) -> str:
    """Write a call of the tool as the command a person types."""
    verb = str(arguments.get("nav", "search"))
    names = [str(arguments[name]) for name in ("target", "query") if name in arguments]
    rest = {name: value for name, value in arguments.items() if name not in {"nav", "target", "query"}}
    flags = [part for name, value in rest.items() for part in _flag(name, value)]
    if any(name.startswith("-") for name in names):  # else it is read as an option
        return shlex.join(["graphsvc", verb, *flags, *options, "--", *names])
    return shlex.join(["graphsvc", verb, *names, *flags, *options])


def as_command(suggestion: str, options: Sequence[str]) -> str:
    """Write a suggestion that is a call of the tool as a command."""
    try:
        arguments = json.loads(suggestion)
    except ValueError:
        return suggestion
    return typed(arguments, options) if isinstance(arguments, dict) else suggestion


def write(text: str) -> None:
    """Write text to standard output as it is, except for what would steer a terminal."""
    shown = clean(text) if sys.stdout.isatty() else text
    sys.stdout.flush()
    sys.stdout.buffer.write(shown.encode("utf-8", "surrogatepass" if shown is text else "backslashreplace"))
    sys.stdout.buffer.flush()


@contextmanager
def progress(task: str, *, bytes_read: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yield what is told (done, all); on a terminal it moves a bar on standard error."""
    if not sys.stderr.isatty():
        yield lambda done, total: None  # noqa: ARG005 # nobody watches
        return
    amount = DownloadColumn() if bytes_read else TaskProgressColumn()
    columns = (TextColumn(task), BarColumn(), amount, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        number = bar.add_task(task, total=None)
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
    hits = _list(got, "results")
    if not sys.stdout.isatty():
        names = ("id", "kind", "ts", "session_id", "body", "why")
        table(names, [[when(hit.get("ts")) if name == "ts" else hit.get(name) for name in names] for hit in hits])
        return
    _blocks(
        [((hit.get("id"), _kind(hit), when(hit.get("ts")), hit.get("session_id")), hit.get("body")) for hit in hits]
    )


def _kind(hit: Mapping[str, object]) -> str:
    """A record that no longer holds says so beside its kind."""
    states = [str(why).removeprefix("status:") for why in _list(hit, "why") if str(why).startswith("status:")]
    return " ".join([str(hit.get("kind")), *states])


def _envelope(got: Answer) -> None:
    title(str(got.get("title", "")))
    items = _list(got, "items")
    if got.get("kind") == "hits" and sys.stdout.isatty():
        _blocks([((item.get("id"), item.get("type"), item.get("ref")), item.get("label")) for item in items])
    elif sys.stdout.isatty():
        _items(items)
    else:
        names = ("id", "type", "label", "ref")
        table(names, [[item.get(name) for name in names] for item in items])
    context = got.get("context")
    evidence = _list(context, "evidence") if isinstance(context, Mapping) else []
    if evidence:
        write(f"evidence: {' '.join(map(str, evidence))}\n")


def _items(items: Iterable[Mapping[str, object]]) -> None:
    """Print the rows of an envelope on a terminal; the reference stands behind the label, which has most to say."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(style="magenta", no_wrap=True)
    grid.add_column(overflow="fold", ratio=1)
    for item in items:
        label = Text(one_line(_cell(item.get("label"))))
        if ref := item.get("ref"):
            label.append(f"  {one_line(_cell(ref))}", "dim")
        grid.add_row(Text(one_line(_cell(item.get("id")))), Text(_cell(item.get("type"))), label)
    Console(highlight=False).print(grid)


def _blocks(hits: Iterable[tuple[Sequence[object], object]]) -> None:
    """Print hits on a terminal: what each is in one line, and below it the text with its lines."""
    console = Console(highlight=False)
    for heads, body in hits:
        line = Text()
        for style, head in zip(("cyan", "magenta", "dim", "dim"), heads, strict=False):
            if head:
                line.append(f"{one_line(_cell(head))}  ", style)
        text = clean(_cell(body)).strip("\n")
        shown = text if len(text) <= _BODY else f"{text[:_BODY]} …"
        console.print(line)
        console.print(Padding(Text(shown), (0, 0, 1, 2)))


def _without_viewer(options: Sequence[str]) -> list[str]:
    """Leave out a viewer that does not exist: with it no call runs."""
    pairs = zip(options[::2], options[1::2], strict=True)
    return [part for name, value in pairs if name != "--viewer" for part in (name, value)]


def _flag(name: str, value: object) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, str(value)]


def _list(got: Answer, name: str) -> list[dict[str, object]]:
    value = got.get(name)
    return value if isinstance(value, list) else []


def _cell(value: object) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

"""Measurements, repeated on this machine."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from graphsvc import __version__
from graphsvc.cli.options import Command, as_json, line
from graphsvc.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from graphsvc.bench.graph import Figure

_LEAST, _MOST = 1_000, 5_000_000
_PLAIN: Final = {"ms": "{:,.2f} ms", "rows/s": "{:,.0f} rows/s"}


@click.group(short_help="Measure what graphsvc does, beside what it could be.")
def bench() -> None:
    """Measure on this machine: each figure stands beside another one of the same run.

    What is measured is made in a temporary folder; your own memory is not touched.
    """


@bench.command("graph", cls=Command, short_help="Measure lineage and the mirror of the graph.")
@click.option("--edges", metavar="N,N", default="100000,1000000", help="Sizes of the graph, rising.")
@as_json
def _graph(edges: str, as_json: bool) -> None:
    """Measure what lineage costs beside a walk over dicts and beside Cypher, as the graph grows to each size; how fast
    the mirror is made anew beside a bare COPY; and how far it is behind while events come.

    A graph of a million edges takes ten to fifteen minutes and 1.5 GB in the temporary folder.

    \b
    graphsvc bench graph --edges 1000
    """
    from graphsvc import render
    from graphsvc.graph import mirror

    sizes = _sizes(edges)
    if not mirror.installed():
        raise StoreError(mirror.NOT_INSTALLED)
    from graphsvc.bench.graph import Bench

    with tempfile.TemporaryDirectory(prefix="graphsvc-bench-") as folder, _told() as told:
        figures = list(Bench(Path(folder) / "home", told).run(sizes))
    if as_json:
        line({"versions": _versions(), "figures": [{**asdict(one), "holds": one.holds} for one in figures]})
        return
    render.table(("edges", "what", "is", "beside", "which is", "ratio", "aim", "holds"), map(_row, figures))


def _row(one: Figure) -> tuple[object, ...]:
    plain = _PLAIN[one.unit].format
    other, ratio = (plain(one.other), f"{one.ratio:.2f}") if one.other is not None else (None, None)
    holds = None if one.holds is None else "yes" if one.holds else "no"
    return f"{one.edges:,}", one.what, plain(one.ours), one.beside, other, ratio, one.aim, holds


def _sizes(text: str) -> list[int]:
    allowed = f"rising numbers from {_LEAST} to {_MOST} with commas between them, such as 2000,10000"
    try:
        sizes = [int(one) for one in text.split(",")]
    except ValueError:
        raise InvalidInput("edges", f"{text[:80]!r} is no list of numbers", allowed) from None
    if sizes != sorted(set(sizes)) or not _LEAST <= sizes[0] <= sizes[-1] <= _MOST:
        raise InvalidInput("edges", f"{text[:80]!r} is out of range", allowed)
    return sizes


def _versions() -> dict[str, str]:
    from graphsvc.store import database

    return {
        "graphsvc": __version__,
        "python": platform.python_version(),
        "sqlite": database.engine()[0],
        "kuzu": metadata.version("kuzu"),
        "machine": f"{platform.system()} {platform.machine()}",
    }


@contextmanager
def _told() -> Iterator[Callable[[str, int, int], None]]:
    """Yield what is told (task, done, all); on a terminal each task has a bar of its own."""
    from graphsvc import render

    with ExitStack() as stack:
        task = ""
        moved: Callable[[int, int], None]

        def told(name: str, done: int, total: int) -> None:
            nonlocal task, moved
            if name != task:
                stack.close()
                task, moved = name, stack.enter_context(render.progress(name))
            moved(done, total)

        yield told

"""The graph: how its mirror is, made anew, and a copy of it for Kuzu's own tools."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from graphsvc import config
from graphsvc.cli.options import Command, as_json, line
from graphsvc.config import Settings
from graphsvc.errors import InvalidInput, ServiceError, StoreError

if TYPE_CHECKING:
    from graphsvc.graph.mirror import Status

_POLL_S: Final = 0.05
_BEGIN_S: Final = 30.0  # for the mirror to take note
Look = Callable[[], "Status"]


@click.group(short_help="See to the mirror that answers questions about the whole graph.")
def graph() -> None:
    """See to the Kuzu database that mirrors the graph, for questions about all of it.

    The running service keeps it; it can be lost without harm and is made again from what is stored.

    \b
    graphsvc graph status
    graphsvc graph export ~/graph
    """


@graph.command("status", cls=Command, short_help="Say how the mirror is.")
@as_json
def _status(as_json: bool) -> None:
    """Say how the mirror is, where it lies, and how far it is behind what is stored.

    \b
    graphsvc graph status --json
    """
    from graphsvc import render
    from graphsvc.graph.place import place
    from graphsvc.memory import rebuild as replay
    from graphsvc.store import events

    settings = config.from_environment()
    path = place(settings).graph
    with closing(replay.connect(settings)) as db:
        newest = events.position(db)
    found = told(settings)
    position = found.position if found is not None else None
    size = path.stat().st_size if path.exists() else 0
    about: dict[str, object] = {
        "status": found.state if found is not None else "no service",
        "position": position,
        "lag": max(0, newest - position) if position is not None else None,
        "file": str(path) if size else None,
        "bytes": size,
    }
    if as_json:
        line(about)
        return
    shown = {**about, "bytes": render.size(size)}
    render.table(("what", "is"), [(name, value) for name, value in shown.items() if value is not None])
    if found is None:
        click.echo("the service keeps it: graphsvc serve", err=True)


@graph.command("rebuild", cls=Command, short_help="Make the mirror anew.")
@as_json
def _rebuild(as_json: bool) -> None:
    """Make the mirror anew from what is stored, in the running service or without one.

    \b
    graphsvc graph rebuild
    """
    from graphsvc import render
    from graphsvc.graph.place import ask_anew, place
    from graphsvc.memory import rebuild as replay

    settings = config.from_environment()
    where = place(settings)
    replay.connect(settings).close()
    ask_anew(where)
    with _kept(settings) as look, render.progress("making the graph anew") as progress:
        begun = time.monotonic()
        while where.doubt.exists() or look().state != "ok":
            status = look()
            if status.state == "absent" and time.monotonic() - begun > _BEGIN_S:
                raise StoreError(f"the graph cannot be made: {status.why or 'the log of the service says why'}")
            progress(status.done, status.expected)
            time.sleep(_POLL_S)
        position = look().position
    if as_json:
        line({"position": position})
    else:
        click.echo(f"made anew, up to position {position}")


@graph.command("export", cls=Command, short_help="Write a copy for Kuzu's own tools.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@as_json
def _export(folder: Path, as_json: bool) -> None:
    """Write a copy of the graph into DIR, which is made or empty, as a database of Kuzu: DIR/graph.kuzu.

    It holds what all may see, and is made from what is stored; the service may run. Its tables are told in
    schema/kuzu/graph.cypher. Whoever has the copy may read what is in it.

    \b
    graphsvc graph export ~/graph
    """
    from graphsvc.graph import mirror

    if not mirror.installed():
        raise StoreError(mirror.NOT_INSTALLED)
    from graphsvc import render
    from graphsvc.graph.build import build
    from graphsvc.graph.driver import Failed
    from graphsvc.graph.place import Place
    from graphsvc.memory import rebuild as replay
    from graphsvc.memory.apply import VERSION

    path = Place(folder.absolute()).graph
    os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidInput("dir", f"{str(folder)!r} is not empty", "a folder that is empty, or not there yet")
    except OSError as error:
        raise InvalidInput("dir", f"{str(folder)!r}: {error.strerror}", "a folder that you can write") from None
    with closing(replay.connect(config.from_environment())) as db, render.progress("writing the graph") as progress:
        try:
            meta = build(db, path, VERSION, progress)
        except Failed as error:
            raise StoreError(f"{path} cannot be written: {error}") from error
    if as_json:
        line({"file": str(path), "position": meta.position, "bytes": path.stat().st_size})
    else:
        click.echo(f"wrote {path}, {render.size(path.stat().st_size)}, up to position {meta.position}")


def told(settings: Settings) -> Status | None:
    """Return what the running service tells of its mirror; None when no service runs."""
    from graphsvc.client import executor
    from graphsvc.graph.mirror import Status

    health = executor.health(settings)
    if health is None:
        return None
    found = health.get("graph")
    about: Mapping[str, object] = found if isinstance(found, dict) else {}

    def number(name: str) -> int:
        value = about.get(name)
        return value if isinstance(value, int) else 0

    return Status(
        state=str(about.get("status", "absent")),
        position=number("position"),
        done=number("done"),
        expected=number("expected"),
    )


@contextmanager
def _kept(settings: Settings) -> Iterator[Look]:
    """Yield how the mirror is, while the service keeps it, or this process where none runs."""
    from graphsvc.graph.mirror import Mirror
    from graphsvc.memory.apply import VERSION

    if told(settings) is not None:
        yield lambda: _still(settings)
        return
    mirror = Mirror(settings, VERSION, delay_s=0)
    mirror.begin()
    try:
        yield mirror.status
    finally:
        mirror.close()


def _still(settings: Settings) -> Status:
    found = told(settings)
    if found is None:
        raise ServiceError("the service ended meanwhile; ask again")
    return found

"""Is everything as it should be? One check a row: what was found, and what to do about it. Nothing is changed."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import click

from graphsvc import config
from graphsvc.cli.options import Command, as_json, line
from graphsvc.config import Settings
from graphsvc.errors import ServiceError, StoreError

if TYPE_CHECKING:
    from graphsvc.store.database import Connection

_WARN_FREE: Final = 1 << 30  # bytes left on the disk
_FAIL_FREE: Final = 64 << 20
_ORDER: Final = ("ok", "warn", "fail")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `todo` says what to do about it, empty when all is well."""

    check: str
    status: str
    found: str
    todo: str = ""


Findings = Iterator[Finding]


@click.command(cls=Command, short_help="Check that everything is as it should be.")
@click.option("--deep", is_flag=True, help="Compare the tables with a replay of the whole ledger, too.")
@as_json
def doctor(deep: bool, as_json: bool) -> None:
    """Look at the home, the database, the index and the service, and say what to do about what is wrong.

    Nothing is changed. Exit 0 when nothing fails, 1 otherwise; a warning says what is worth knowing.

    \b
    graphsvc doctor --deep
    """
    from graphsvc import render

    settings = config.from_environment()
    findings = [found for check in _CHECKS for found in check(settings)]
    findings += _database(settings, deep=deep)
    worst = max((found.status for found in findings), key=_ORDER.index)
    if as_json:
        line({"status": worst, "checks": [asdict(found) for found in findings]})
    else:
        rows = [(found.check, found.status, found.found, found.todo) for found in findings]
        render.table(("check", "status", "found", "what to do"), rows)
    sys.exit(1 if worst == "fail" else 0)


def _versions(_: Settings) -> Findings:
    from graphsvc import __version__
    from graphsvc.store import database

    yield Finding("graphsvc", "ok", f"{__version__} on Python {platform.python_version()}")
    version, good = database.engine()
    todo = "" if good else "use a Python with SQLite 3.37 or newer and FTS5"
    yield Finding("sqlite", "ok" if good else "fail", version, todo)


def _home(settings: Settings) -> Findings:
    """Only its owner may look into the home, whatever lies there."""
    home = settings.home
    if not home.exists():
        yield Finding("home", "ok", f"{home} is made at first use")
        return
    if not home.is_dir() or not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            "home", "fail", f"{home} is no folder that you can write", "set GRAPHSVC_HOME to one that you can"
        )
        return
    loose = config.loose_home(home)
    if loose is not None:
        yield Finding("home", "fail", *loose)
        return
    wrong = [path for path in (home, *sorted(home.rglob("*"))) if _open_to_others(path)]
    if wrong:
        more = f" and {len(wrong) - 1} more" if wrong[1:] else ""
        yield Finding("home", "fail", f"open to others: {wrong[0]}{more}", f"chmod -R go= {shlex.quote(str(home))}")
    else:
        yield Finding("home", "ok", str(home))


def _open_to_others(path: os.PathLike[str]) -> bool:
    try:
        found = os.lstat(path).st_mode
    except FileNotFoundError:  # the log of a connection that closed meanwhile
        return False
    return not stat.S_ISLNK(found) and bool(found & 0o077)


def _disk(settings: Settings) -> Findings:
    from graphsvc import render

    place = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    held = settings.database.stat().st_size if settings.database.exists() else 0
    # A migration copies the file first.
    status = "fail" if free < _FAIL_FREE else "warn" if free < max(_WARN_FREE, held) else "ok"
    todo = "" if status == "ok" else "free some space, or move the home: GRAPHSVC_HOME"
    yield Finding("disk", status, f"{render.size(free)} free, {render.size(held)} used", todo)


def _token(settings: Settings) -> Findings:
    from graphsvc.client.token import read_token

    try:
        read_token(settings)
    except FileNotFoundError:
        yield Finding("token", "ok", "none yet; the service makes it at its first start")
    except StoreError as error:
        found, _, todo = str(error).partition(": ")
        yield Finding("token", "fail", found, todo)
    except OSError as error:
        yield Finding("token", "fail", f"{settings.token_file}: {error.strerror}", "remove it; a new one is made")
    else:
        yield Finding("token", "ok", str(settings.token_file))


def _service(settings: Settings) -> Findings:
    from graphsvc.client import executor

    try:
        url = executor.url(settings)
    except ServiceError as error:
        yield Finding("service", "fail", str(error), "stop what listens there, then graphsvc serve")
        return
    if url is not None:
        yield Finding("service", "ok", f"answers at {url}/graphql")
    elif settings.socket.exists():
        yield Finding("service", "warn", f"{settings.socket} is there and nobody answers", "graphsvc serve replaces it")
    else:
        yield Finding("service", "ok", "not running; commands answer by themselves")


def _graph(settings: Settings) -> Findings:
    from graphsvc.cli.lineage import graph
    from graphsvc.graph.place import place

    try:
        found = graph.told(settings)
    except ServiceError:
        return  # told already
    if found is None:
        kept = place(settings).graph.exists()
        yield Finding("graph", "ok", "kept by the service, which does not run" if kept else "the service makes it")
    elif found.state == "ok":
        yield Finding("graph", "ok", f"mirrors the ledger, at {found.position}")
    elif found.state == "building":
        yield Finding("graph", "ok", "is being made; questions about all of it wait for that")
    else:
        todo = "the log of the service says why; graphsvc graph rebuild"
        yield Finding("graph", "warn", "is not there; only questions about all of it need it", todo)


def _page(_: Settings) -> Findings:
    from graphsvc.server import pages

    if pages.packed():
        yield Finding("page", "ok", "GraphiQL is installed")
    else:
        todo = "install graphsvc where npm is, if you want GraphiQL"
        yield Finding("page", "ok", "GraphiQL is not installed, a small page serves", todo)


_CHECKS: Final[tuple[Callable[[Settings], Findings], ...]] = (
    *(_versions, _home, _disk, _token, _service, _graph, _page),
)


def _database(settings: Settings, *, deep: bool) -> Findings:
    """Check what the database file holds, as far as it can be read."""
    from graphsvc.store import database

    if not settings.database.exists():
        yield Finding("database", "ok", "nothing is stored yet", "graphsvc import, or graphsvc demo")
        return
    restore = f"restore a copy of {settings.database}, or set GRAPHSVC_HOME"
    try:
        with closing(database.reader(settings.database)) as db:
            damage = database.faults(db)
            if damage:
                yield Finding("database", "fail", damage[0], restore)
                return
            yield Finding("database", "ok", str(settings.database))
            number, newest = database.numbers(db)
            if number != newest:
                newer = "install a newer graphsvc, or set GRAPHSVC_HOME"
                todo = newer if number > newest else "any other command migrates it and keeps a copy"
                status = "fail" if number > newest else "warn"
                yield Finding("schema", status, f"{number}; this graphsvc knows {newest}", todo)
                return
            yield Finding("schema", "ok", str(number))
            for check in _TABLES:
                yield from check(db)
    except database.Error as error:
        yield Finding("database", "fail", f"cannot be read: {error}", restore)
        return
    if deep:
        yield from _replayed(settings)


def _triggers(db: Connection) -> Findings:
    from graphsvc.store import database

    if lost := database.lost_triggers(db):
        todo = "graphsvc export > log.jsonl, and graphsvc capture < log.jsonl in a new home"
        yield Finding("ledger", "fail", f"not append-only any more: {', '.join(lost)}", todo)
    else:
        yield Finding("ledger", "ok", "append-only")


def _tables(db: Connection) -> Findings:
    from graphsvc.memory import apply
    from graphsvc.store import rows

    if rows.version(db) == apply.VERSION:
        yield Finding("tables", "ok", f"written by the rules of today, {apply.VERSION}")
    else:
        yield Finding("tables", "warn", "written by other rules", "any other command replays the ledger")


def _index(db: Connection) -> Findings:
    from graphsvc.recall import index
    from graphsvc.store import counts, events

    newest, held, version = events.position(db), counts.indexed(db), counts.index_version(db)
    if version not in {None, index.proof()[1]}:
        yield Finding("index", "warn", "written by another version", "the next search begins it anew")
    elif held > newest:
        yield Finding("index", "fail", f"at {held}, the ledger ends at {newest}", "graphsvc rebuild")
    elif held < newest:
        yield Finding("index", "warn", f"{newest - held} events behind the ledger", "searches catch up, or the service")
    else:
        yield Finding("index", "ok", f"at {held}, as the ledger")


def _gaps(db: Connection) -> Findings:
    from graphsvc.store import imports

    if files := imports.unread(db):
        found = f"{sum(files.values())} lines of {len(files)} imported files could not be read"
        yield Finding("gaps", "warn", found, f"graphsvc import {shlex.quote(next(iter(files)))} says which")
    else:
        yield Finding("gaps", "ok", "every line of the imported files was read")


def _pauses(db: Connection) -> Findings:
    from graphsvc.store import imports

    lasting = imports.pauses(db)
    for one in lasting:
        name = one.project or "all"
        todo = f"graphsvc resume --project {shlex.quote(name)}"
        if one.folder is not None:
            todo = f"change {one.folder}/.graphsvc.toml, which says so"
        yield Finding("pause", "warn", f"nothing of {name} is recorded since {one.since}", todo)
    if not lasting:
        yield Finding("pause", "ok", "nothing is paused")


def _forgotten(db: Connection) -> Findings:
    from graphsvc.memory.erase import clean
    from graphsvc.store.erase import traces

    if remains := traces.remains(db):
        found = f"bytes of what was forgotten are still in {clean.told(remains)}"
        yield Finding("forgotten", "warn", found, "any other command removes them, and so does the service")
    else:
        yield Finding("forgotten", "ok", "nothing of it is in any file")


_TABLES: Final[tuple[Callable[[Connection], Findings], ...]] = (
    *(_triggers, _tables, _index, _gaps, _pauses, _forgotten),
)


def _replayed(settings: Settings) -> Findings:
    from graphsvc import render
    from graphsvc.memory import rebuild
    from graphsvc.recall import index

    with render.progress("comparing with the ledger") as progress:
        found = rebuild.check(settings, progress, index.proof())
    if found:
        yield Finding("replay", "fail", f"{len(found)} rows differ from the ledger", "graphsvc rebuild")
    else:
        yield Finding("replay", "ok", "the tables hold what the ledger gives")

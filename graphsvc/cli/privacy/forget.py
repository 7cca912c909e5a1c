"""What is to leave the store: what somebody wants to forget, and secrets that were stored before a rule knew them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from graphsvc import config
from graphsvc.cli.options import Command, as_json, folder, line
from graphsvc.errors import InvalidInput

if TYPE_CHECKING:
    from graphsvc.memory.erase.forget import Forgotten
    from graphsvc.memory.erase.reach import Wanted
    from graphsvc.store.database import Connection

LEFT: Final = 3  # the exit code when bytes of it are still in a file
_INDEX_MS: Final = 60_000  # what is left is indexed before the command ends
_SHOWN: Final = 50  # findings a person is shown; --json lists all
_KINDS: Final = ("session", "event")


@click.command(cls=Command, short_help="Remove what was said, and all that came of it.")
@click.argument("what", nargs=-1, metavar="[session ID… | event ID…]")
@click.option("--since", metavar="TIME", help="All from this ISO time or date on, inclusive.")
@click.option("--until", metavar="TIME", help="All up to this ISO time or date, inclusive.")
@click.option("--project", metavar="KEY|all", help="With a time: of this project, or of all; default: the folder's.")
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@click.option("--yes", is_flag=True, help="Forget it without asking.")
@as_json
def forget(
    what: tuple[str, ...],
    since: str | None,
    until: str | None,
    project: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove sessions, events or a time from the store for good, with all that came of them by rule.

    \b
    graphsvc forget session harbor-cafe-2026-11-05 --dry-run
    graphsvc forget event event-40 decision-41 asset-12
    graphsvc forget --since 2026-11-05 --until 2026-11-06 --project /srv/cafe

    An event goes from every session that holds a copy of it; an asset with the calls that wrote and read it. What
    repeats the same words elsewhere stays: search for it. The host's transcript still has it; import skips it from
    then on, and counts it, unless it is told --again. Copies of the database that migrations left in the home are
    removed; those that you made elsewhere are yours to remove.

    Exit 0 when no file of the home holds a byte of it; 3 when it is forgotten and some still do, which is told, and
    done when graphsvc is used next.
    """
    from graphsvc.memory import rebuild
    from graphsvc.memory.erase import forget as erase

    with closing(rebuild.connect(config.from_environment())) as db:
        wanted = _wanted(db, what, since, until, project)
        planned = erase.plan(db, wanted)
        if dry_run or not planned.count:
            _tell(planned, as_json)
            return
        if not yes:
            _ask(planned, as_json)
        from graphsvc import render

        with render.progress("forgetting") as progress:
            done = erase.forget(db, wanted, progress)
        _index(db)
    _tell(done, as_json)
    sys.exit(LEFT if done.remains else 0)


def _wanted(db: Connection, what: Sequence[str], since: str | None, until: str | None, project: str | None) -> Wanted:
    """Read what is named; a project that is not named is the folder's, when it is known."""
    from graphsvc.memory import paths
    from graphsvc.memory.erase.reach import Wanted
    from graphsvc.store import events

    timed = since is not None or until is not None
    if what and what[0] not in _KINDS:
        raise InvalidInput("what", f"{what[0][:80]!r} is neither", "session ID…, event ID…, or --since and --until")
    if bool(what[1:]) is timed or (what and timed):
        raise InvalidInput("what", "nothing is named, or two things are", "session ID…, event ID…, or --since, --until")
    if project is not None and not timed:
        raise InvalidInput("project", "ids say where they belong", "no --project")
    here = folder()
    if project is None and here is not None and timed:
        key = paths.project_of(here)
        project = key if events.find_project(db, key) is not None else None
    named = what[1:]
    return Wanted(
        sessions=tuple(named) if what[:1] == ("session",) else (),
        ids=tuple(named) if what[:1] == ("event",) else (),
        since=since,
        until=until,
        project=project,
    )


def _ask(planned: Forgotten, as_json: bool) -> None:
    if as_json:
        raise InvalidInput("yes", "nobody can be asked with --json", "--yes, or --dry-run")
    _tell(planned, as_json)
    try:
        agreed = click.confirm("Forget this for good?", default=False, err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        click.echo("nothing was forgotten; --yes answers the question", err=True)
        sys.exit(InvalidInput.exit_code)


def _tell(found: Forgotten, as_json: bool) -> None:
    if as_json:
        line({**asdict(found), "done": found.position is not None})
        return
    from graphsvc import render

    if not found.count:
        click.echo("nothing is there to be forgotten")
        return
    done = "forgot" if found.position is not None else "to be forgotten:"
    whole = f", {_many(found.sessions, 'whole session')}" if found.sessions else ""
    render.title(f"{done} {_many(found.count, 'event')}{whole}")
    render.table(("kind", "events"), list(found.kinds.items()))
    if found.shared:
        render.say(f"note: {_many(found.shared, 'event')} copied from other sessions stay with those")
    if found.delegated:
        named = " ".join(found.delegated[:_SHOWN])
        render.say(f"note: sessions that did a part of the work stay: {named}")
    _left(found.remains)


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _left(remains: Sequence[str]) -> None:
    from graphsvc import render

    for one in remains:
        render.say(f"note: bytes of it are still in {one}; the next command, or the service, removes them")


def _index(db: Connection) -> None:
    from graphsvc.recall import index

    while index.catch_up(db, _INDEX_MS):
        pass


@click.command(cls=Command, short_help="Look for secrets in what is stored, and take them out.")
@click.option("--scan", is_flag=True, help="Look through everything that is stored with the rules of today.")
@click.option("--apply", "apply_", is_flag=True, help="With --scan: take out what is found.")
@as_json
def redact(scan: bool, apply_: bool, as_json: bool) -> None:
    """Look through everything that is stored for secrets, with the rules of today; with --apply take them out.

    \b
    graphsvc redact --scan
    graphsvc redact --scan --apply

    Told are the event and the kind of each secret, never the secret. Exit 0 when nothing is left to take out, 1 when
    secrets were found and not taken out, 3 when they were and some file still holds bytes of them.
    """
    from graphsvc import render
    from graphsvc.memory import rebuild
    from graphsvc.memory.erase import scan as erase

    if not scan:
        raise InvalidInput("scan", "says what to do, and is left out", "--scan, with or without --apply")
    with closing(rebuild.connect(config.from_environment())) as db, render.progress("scanning") as progress:
        found = erase.apply(db, progress) if apply_ else erase.scan(db, progress)
        if found.position is not None:
            _index(db)
    if as_json:
        line(asdict(found))
    else:
        shown = found.findings[:_SHOWN]
        render.table(("id", "rule", "count"), [(one.id, one.rule, one.count) for one in shown])
        if len(found.findings) > _SHOWN:
            render.say(f"and {len(found.findings) - _SHOWN} more: --json lists them")
        many = sum(one.count for one in found.findings)
        verb = "taken out" if found.position is not None else "found"
        click.echo(f"{_many(many, 'secret')} {verb}, in {found.changed} of {_many(found.events, 'event')}")
        _left(found.remains)
        if found.findings and found.position is None:
            click.echo("to take them out: graphsvc redact --scan --apply", err=True)
    sys.exit(LEFT if found.remains else 1 if found.findings and found.position is None else 0)

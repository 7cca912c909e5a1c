"""What comes in: histories, neutral events, the demo; how it goes to another machine, and when nothing comes in."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from graphsvc import config
from graphsvc.cli.ask import answer, as_options
from graphsvc.cli.options import Command, as_json, line, printable
from graphsvc.errors import InvalidInput

if TYPE_CHECKING:
    from graphsvc.importers.discover import Found
    from graphsvc.importers.run import Report
    from graphsvc.model import Event
    from graphsvc.store.database import Connection

_BATCH: Final = 256  # events, and
_BATCH_BYTES: Final = 4 << 20  # bytes that `capture` stores in one transaction
_INDEX_MS: Final = 60_000  # what was stored is indexed before the next batch
_SHOWN: Final = 20  # gaps and skipped files a person is shown; --json lists all
_CAFE: Final = "/home/demo/harbor-cafe"  # the project of the demo conversations


@click.command("import", cls=Command, short_help="Import files, folders, or what is on this machine.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--project", metavar="KEY", help="File everything under this project; default: as the conversations say.")
@click.option("--format", "format_", metavar="FORMAT", help="Read as this format; default: by content.")
@click.option("--yes", is_flag=True, help="Import all histories found, without asking.")
@click.option("--demo", "or_demo", is_flag=True, help="Show the demo when no history is found.")
@click.option("--again", is_flag=True, help="Store again what was forgotten.")
@as_json
def import_(
    paths: tuple[Path, ...],
    project: str | None,
    format_: str | None,
    yes: bool,
    or_demo: bool,
    again: bool,
    as_json: bool,
) -> None:
    """Import conversations from files and folders; without a PATH, the histories found on this machine.

    \b
    graphsvc import                            what do my agents have? asks once
    graphsvc import ~/.claude/projects         a folder, with everything below it
    graphsvc import talk.jsonl --format neutral

    The format is found by content. A line that cannot be read is a gap: it is reported, the rest is imported.
    Importing again adds nothing, and picks up where a growing file ended. What was forgotten stays out, and is counted.
    """
    missing = next((path for path in paths if not os.path.exists(path)), None)  # noqa: PTH110 # Path's may raise
    if missing is not None:
        raise InvalidInput("path", f"{str(missing)!r} does not exist", "files and folders")
    if as_json and not paths and not yes:
        raise InvalidInput("yes", "nobody can be asked with --json", "--yes, or files and folders")
    found = [] if paths else _histories(yes, as_json)
    if not paths and not found:
        if or_demo:
            _demo()
        elif as_json:
            line(_import([], project, format_).to_json())
        return
    report = _import(paths or found, project, format_, again=again)
    if as_json:
        line(report.to_json())
        return
    _reported(report)
    if not paths and or_demo and not report.sessions:
        _demo()
    elif not paths:
        walk(
            [
                {"kind": "user_message", "limit": 3},
                {"nav": "ls"},
                {"query": "decided decision 决定", "limit": 3},
            ],
            "all",
        )


@click.command(cls=Command, short_help="Store neutral events from standard input.")
@click.option("--again", is_flag=True, help="Store again what was forgotten.")
@as_json
def capture(again: bool, as_json: bool) -> None:
    """Read neutral events on standard input, one JSON a line, and store them.

    \b
    echo '{"session_id": "s1", "kind": "user_message", "origin": "m1", "body": "Hello"}' | graphsvc capture

    Each line has session_id, kind, origin and body; ts, project, cwd, actor and meta are optional.
    A bad line is rejected with its number and the reason, the others are stored. Exit 2 if any was rejected.
    What was forgotten stays out, and is counted.
    What graphsvc export wrote is stored as it stood there:

    \b
    graphsvc capture < log.jsonl
    """
    from graphsvc.memory import capture as memory
    from graphsvc.memory import rebuild
    from graphsvc.recall import index

    accepted = duplicates = forgotten = position = 0
    rejected: list[dict[str, object]] = []
    with closing(rebuild.connect(config.from_environment())) as db:
        for batch in _batches(sys.stdin.buffer, rejected):
            done = memory.capture(db, [event for _, event in batch], again=again)
            index.catch_up(db, _INDEX_MS)  # what was stored is searchable at once
            accepted, duplicates, position = accepted + done.accepted, duplicates + done.duplicates, done.position
            forgotten += sum(bad.code == "forgotten" for bad in done.rejected)
            rejected += [
                {"line": batch[bad.index][0], "code": bad.code, "message": bad.message}
                for bad in done.rejected
                if bad.code != "forgotten"
            ]
    rejected.sort(key=lambda bad: int(str(bad["line"])))
    if as_json:
        counts = {"accepted": accepted, "duplicates": duplicates, "forgotten": forgotten}
        line({**counts, "rejected": rejected, "position": position})
    else:
        for bad in rejected:
            click.echo(f"line {bad['line']}: {printable(str(bad['message']))}", err=True)
        stays = f", {forgotten} forgotten" if forgotten else ""
        click.echo(f"{accepted} stored, {duplicates} known, {len(rejected)} rejected{stays}")
    sys.exit(2 if rejected else 0)


@click.command(cls=Command, short_help="Write the ledger as lines that capture stores elsewhere.")
@click.option("--project", metavar="KEY|all", help="Write this project; default: all.")
@click.option("--viewer", metavar="SESSION", help="Write what this session sees.")
@click.option("--since", type=click.IntRange(min=0), default=0, metavar="POSITION", help="Only what came behind this.")
@as_json
def export(project: str | None, viewer: str | None, since: int, as_json: bool) -> None:
    """Write the ledger on standard output, one neutral event a line: a backup, or a way to another machine.

    \b
    graphsvc export > log.jsonl
    graphsvc capture < log.jsonl          there

    Every line says what became of the event here, and what followed from it stands in lines of its own: capturing them
    in an empty home gives an equal store, capturing them again adds nothing, and the logs of two machines give the
    same events whichever is captured first. Isolated rows are left out unless --viewer may see them. How much was
    written is told on standard error, with --json as JSON; its position is the --since of the next export.
    """
    from graphsvc import render
    from graphsvc.memory import export as memory
    from graphsvc.memory import rebuild
    from graphsvc.recall import scope
    from graphsvc.store import database, events, visibility

    written = 0
    asker = scope.Asker(session_id=viewer, project=project or (None if viewer else "all"))
    with closing(rebuild.connect(config.from_environment())) as db, render.progress("exporting") as progress:
        with database.snapshot(db):
            asked, _ = scope.resolve(db, asker, None)
            newest, hides = events.position(db), visibility.any_hidden(db, asked)
        for position, text in memory.export(db, asked, since, newest):
            sys.stdout.buffer.write(text)
            written += 1
            progress(position - since, newest - since)
    sys.stdout.buffer.flush()
    notes = [visibility.NOTE] if hides else []
    if as_json:
        click.echo(json.dumps({"events": written, "position": newest, "notes": notes}), err=True)
        return
    for note in notes:
        render.say(f"note: {note}")
    render.say(f"{written} events up to position {newest}; what comes later: graphsvc export --since {newest}")


@click.command(cls=Command, short_help="Record nothing of a project until resume.")
@click.option("--project", metavar="KEY|all", help="Pause this project, or all; default: the folder's.")
@as_json
def pause(project: str | None, as_json: bool) -> None:
    """Record nothing of a project until `graphsvc resume`.

    What is said meanwhile stays out, also when its transcript is imported later; what was said before is still taken.
    What you record yourself (a decision, a goal, a todo) is stored.

    \b
    graphsvc pause --project /srv/cafe
    """
    from graphsvc import clock
    from graphsvc.memory import rebuild
    from graphsvc.store import events, imports

    with closing(rebuild.connect(config.from_environment())) as db:
        begun = imports.pause(db, project_key(db, project), clock.utc_text(clock.system()))
        known = begun.project is None or events.find_project(db, begun.project) is not None
    if as_json:
        line(asdict(begun))
        return
    name = begun.project or "all"
    click.echo(f"{printable(name)} is paused since {begun.since}")
    if not known:
        click.echo("note: nothing of such a project is stored yet; is that its name?", err=True)
    click.echo(f"to record again: graphsvc resume --project {printable(shlex.quote(name))}")


@click.command(cls=Command, short_help="Record again what pause stopped.")
@click.option("--project", metavar="KEY|all", help="Resume this project, or end every pause; default: the folder's.")
@as_json
def resume(project: str | None, as_json: bool) -> None:
    """Record again. What was said since `graphsvc pause` stays out, however late it arrives.

    \b
    graphsvc resume --project all
    """
    from graphsvc import clock
    from graphsvc.memory import rebuild
    from graphsvc.memory.settings.policy import Policies
    from graphsvc.store import imports

    with closing(rebuild.connect(config.from_environment())) as db:
        key = project_key(db, project)
        at = clock.utc_text(clock.system())
        if key is not None:
            Policies(db, at).of(key, None if project else str(Path.cwd()))
        ended = imports.resume(db, key, at)
        rest = [one for one in imports.pauses(db) if one.project in {None, key}]
    if as_json:
        line({"ended": [asdict(one) for one in ended], "paused": [asdict(one) for one in rest]})
        return
    for one in ended:
        click.echo(f"{printable(one.project or 'all')} was paused from {one.since} until {one.until}")
    for one in rest:
        if one.folder is not None:
            name, where = printable(one.project or "all"), printable(f"{one.folder}/.graphsvc.toml")
            click.echo(f"{name} is still paused since {one.since}: {where} says paused = true")
        else:
            click.echo(f"all is still paused since {one.since}: graphsvc resume --project all")
    if not ended and not rest:
        click.echo(f"{printable(key or 'all')} is not paused")


def project_key(db: Connection, project: str | None) -> str | None:
    """Return the key of the project that is meant, as events name it; None for all."""
    from graphsvc.memory import paths
    from graphsvc.memory.redact import redact
    from graphsvc.store import events

    if project == "all":
        return None
    if project is not None and not project.strip():
        raise InvalidInput("project", "is empty", "a key, a folder, or all")
    key = redact(project) if project is not None else None
    if key is not None and events.find_project(db, key) is not None:
        return key
    return redact(paths.project_of(str(Path.cwd() / project) if project else str(Path.cwd())))


@click.command(cls=Command, short_help="A tour of two small conversations.")
@as_json
def demo(as_json: bool) -> None:
    """Import two small conversations and show what can be asked about them.

    They are a project of their own: two sessions about a café's ordering page, the first in English, the second in
    Chinese, in which a decision of the first one is replaced. In a folder whose project is known they stay out of
    what you ask; elsewhere --project KEY keeps them apart, and so does another GRAPHSVC_HOME. With --json the
    report of the import is printed, without the tour.

    \b
    graphsvc demo
    """
    if as_json:
        line(_import_demo().to_json())
    else:
        _demo()


def _demo() -> None:
    """Import the demo and walk through it; every answer comes from the store."""
    from graphsvc import render

    report = _import_demo()
    render.title(f"The demo: {len(report.sessions)} sessions of {_CAFE}")
    render.table(("session",), [(f"session-{name}",) for name in report.sessions])
    for session in report.sessions:
        walk([{"nav": "ls", "target": session}], _CAFE)
    replaced = answer(None, _CAFE, kind="decision", query="card", limit=1)["results"]
    note = answer(None, _CAFE, nav="cd", target="docs/付款说明.md")["items"]
    walk(
        [
            {"nav": "cd", "target": "docs/ordering.md"},
            {"kind": "decision"},
            *({"nav": "cd", "target": hit["id"]} for hit in replaced),
            {"query": "rounding error", "limit": 3},
            {"query": "取餐码", "limit": 3},
            # The file itself is on no machine; its first version is what the agent wrote.
            *({"nav": "cat", "target": item["id"]} for item in note[:1]),
        ],
        _CAFE,
    )
    render.title("\nEvery id above works with graphsvc cd and graphsvc cat. Your own history: graphsvc import")


def _import_demo() -> Report:
    from graphsvc import resources

    return _import([resources.ROOT / name for name in resources.names("examples/demo", ".jsonl")], None, None)


def walk(steps: Iterable[Mapping[str, object]], project: str) -> None:
    """Show each call as the command a person would type, and its answer."""
    from graphsvc import render

    options = as_options(None, project)
    for step in steps:
        found = answer(None, project, **step)
        render.title(f"\n$ {render.typed(step, options)}")
        render.answer(found, options)


def _histories(yes: bool, quiet: bool) -> list[Path]:
    """Find the histories on this machine, show them, ask once; return the files to import, newest first."""
    from graphsvc.importers import discover

    found = discover.discover(os.environ, Path.home())
    files = discover.newest_first(found)
    if quiet:
        return files
    from graphsvc import render

    if found:
        render.table(("host", "sessions", "size", "newest", "where", "note"), map(_history, found))
    if not files:
        click.echo("No history that can be imported was found on this machine. See how it works: graphsvc demo")
        return []
    question = f"Import {len(files)} files into {config.from_environment().home}?"
    try:
        agreed = yes or click.confirm(question, default=True)
    except click.Abort:
        click.echo("nothing was imported; --yes answers the question", err=True)
        sys.exit(InvalidInput.exit_code)
    if not agreed:
        sys.exit(0)
    return files


def _history(found: Found) -> tuple[object, ...]:
    """Write one history as a row."""
    from graphsvc import render

    note = "" if found.importable else "no importer yet"
    newest = render.day(found.newest)
    return (found.host, found.sessions, render.size(found.bytes), newest, str(found.path), note)


def _import(paths: Sequence[Path], project: str | None, format_: str | None, *, again: bool = False) -> Report:
    """Import files and folders in the order given, with a bar when somebody watches."""
    from graphsvc import clock, render
    from graphsvc.importers import run
    from graphsvc.memory import capture as memory
    from graphsvc.memory import rebuild
    from graphsvc.memory.redact import redact
    from graphsvc.recall import index
    from graphsvc.store import imports

    with (
        closing(rebuild.connect(config.from_environment())) as db,
        render.progress("importing", bytes_read=True) as progress,
    ):

        def keep(batch: Sequence[Event]) -> memory.Captured:
            done = memory.capture(db, batch, history=True, again=again)
            index.catch_up(db, _INDEX_MS)  # what is imported is searchable while the rest comes in
            return done

        return run.import_files(
            paths,
            capture=keep,
            known=lambda path: None if again else imports.known(db, redact(path)),
            record=lambda path, done: imports.record(db, redact(path), done, clock.utc_text(clock.system())),
            project=project,
            format=format_,
            progress=lambda _, done, total: progress(done, total),
        )


def _reported(report: Report) -> None:
    """Tell a person what an import did: counts and sessions, and on standard error what could not be read."""
    from graphsvc import render

    problems = [f"{gap['file']}:{gap['line']}: {gap['reason']}" for gap in report.gaps]
    problems += [f"{skipped['file']}: skipped, {skipped['reason']}" for skipped in report.skipped]
    for problem in problems[:_SHOWN]:
        render.say(problem)
    if len(problems) > _SHOWN:
        render.say(f"and {len(problems) - _SHOWN} more: --json lists them")
    noise, unknown = report.noise.total(), report.unknown.total()
    render.title(
        f"{report.files} files, {report.records} records: {report.events_added} events added, "
        f"{report.duplicates} known, {noise} noise, {unknown} of unknown types kept, {len(report.gaps)} gaps, "
        f"{len(report.skipped)} skipped" + (f", {report.forgotten} forgotten" if report.forgotten else "")
    )
    render.table(("kind", "events"), sorted(report.kinds.items()))
    names = list(report.sessions)
    render.table(("session",), [(f"session-{name}",) for name in names[:_SHOWN]])
    if len(names) > _SHOWN:
        render.say(f"and {len(names) - _SHOWN} more sessions")


def _batches(stream: Iterable[bytes], rejected: list[dict[str, object]]) -> Iterator[list[tuple[int, Event]]]:
    """Yield the events of the lines in batches, the last one even if empty; add to `rejected` what is no event."""
    from graphsvc.importers import neutral, source
    from graphsvc.memory import capture as memory

    batch: list[tuple[int, Event]] = []
    held = 0
    for number, data in enumerate(stream, 1):
        text = data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data
        if not text.strip(b" \t\r\n"):
            continue
        try:
            batch.append((number, neutral.parse_event(source.decode(text.removesuffix(b"\n")))))
        except source.UnreadableError as error:
            rejected.append({"line": number, "code": "invalid-json", "message": str(error)})
        except InvalidInput as error:
            rejected.append({"line": number, "code": memory.code(error), "message": str(error)})
        held += len(data)
        if len(batch) >= _BATCH or held >= _BATCH_BYTES:
            yield batch
            batch, held = [], 0
    yield batch

"""The command line. Rooms are imported inside the commands, so that `--help` and the tool start fast.

Standard output carries the answer, standard error everything else: progress, notes, errors.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from graphsvc import __version__, config
from graphsvc.errors import GraphsvcError, InvalidInput, NotFoundError

if TYPE_CHECKING:
    from graphsvc.importers.discover import Found
    from graphsvc.importers.run import Report
    from graphsvc.model import Event

F = TypeVar("F", bound=Callable[..., Any])

INTERRUPTED: Final = 130  # as a shell reports SIGINT
_PAGE: Final = 100_000  # tokens a page when `cat` reads the whole for a person
_BATCH: Final = 256  # events, and
_BATCH_BYTES: Final = 4 << 20  # bytes that `capture` stores in one transaction
_INDEX_MS: Final = 60_000  # what was stored is indexed before the next batch
_SHOWN: Final = 20  # gaps and skipped files a person is shown; --json lists all
_CAFE: Final = "/home/demo/harbor-cafe"  # the project of the demo conversations


class Command(click.Command):
    """A command whose errors are one line: a sentence for people, an object for programs."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except GraphsvcError as error:
            if ctx.params.get("as_json"):
                _line({"error": _described(error)})
            else:
                click.echo(f"graphsvc: {_printable(str(error))}", err=True)
                if isinstance(error, NotFoundError):
                    click.echo(f"try: {_printable(error.suggestion)}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


class Program(click.Group):
    """The group of all commands, in the order a newcomer needs them."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # click's own signature
        return list(self.commands)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="graphsvc")
def program() -> None:
    """Session memory with lineage for coding agents.

    \b
    graphsvc demo                        a guided tour of two small conversations
    graphsvc import                      find and import the histories on this machine
    graphsvc search "why cents"          ask in English or Chinese
    graphsvc ls, cd ID, cat ID           walk from a session to what it made, and why

    Every id in an answer works as the next target. GRAPHSVC_HOME chooses where everything is kept.
    """


def main() -> None:
    """Run the command line; what is printed is UTF-8 whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    program(prog_name="graphsvc")


def as_json(command: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on one line, for programs.")(command)


def asking(command: F) -> F:
    """Add who asks: --viewer and --project."""
    command = click.option("--project", metavar="KEY|all", help="Ask about this project; default: the folder's.")(
        command
    )
    return click.option("--viewer", metavar="SESSION", help="Ask as this session sees it.")(command)


def paging(command: F) -> F:
    """Add the parameters every call of the tool has."""
    command = click.option("--cursor", help="The next page of the previous answer.")(command)
    return click.option("--token-budget", type=int, metavar="N", help="Most tokens of the answer (default 4000).")(
        command
    )


def limited(command: F) -> F:
    """Add --limit."""
    return click.option("--limit", type=int, metavar="N", help="Most rows, 1 to 50 (default 20).")(command)


def filters(command: F) -> F:
    """Add the filters of search and grep, named as the tool's parameters."""
    for option in (
        limited,
        click.option("--order", metavar="asc|desc", help="By time; default: by score."),
        click.option("--until", metavar="TIME", help="Up to this ISO time or date, inclusive."),
        click.option("--since", metavar="TIME", help="From this ISO time or date on, inclusive."),
        click.option("--session-id", metavar="SESSION", help="Only this session."),
        click.option("--kind", metavar="KIND", help="Only this kind: user_message, tool_call, decision, …"),
    ):
        command = option(command)
    return command


@program.command("import", short_help="Import files, folders, or what is on this machine.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--project", metavar="KEY", help="File everything under this project; default: as the conversations say.")
@click.option("--format", "format_", metavar="FORMAT", help="Read as this format; default: by content.")
@click.option("--yes", is_flag=True, help="Import all histories found, without asking.")
@click.option("--demo", "or_demo", is_flag=True, help="Show the demo when no history is found.")
@as_json
def import_(
    paths: tuple[Path, ...], project: str | None, format_: str | None, yes: bool, or_demo: bool, as_json: bool
) -> None:
    """Import conversations from files and folders; without a PATH, the histories found on this machine.

    \b
    graphsvc import                            what do my agents have? asks once
    graphsvc import ~/.claude/projects         a folder, with everything below it
    graphsvc import talk.jsonl --format neutral

    The format is found by content. A line that cannot be read is a gap: it is reported, the rest is imported.
    Importing again adds nothing, and picks up where a growing file ended.
    """
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise InvalidInput("path", f"{str(missing)!r} does not exist", "files and folders")
    if as_json and not paths and not yes:
        raise InvalidInput("yes", "nobody can be asked with --json", "--yes, or files and folders")
    found = [] if paths else _histories(yes, as_json)
    if not paths and not found:
        if or_demo:
            _demo()
        elif as_json:
            _line(_import([], project, format_).to_json())
        return
    report = _import(paths or found, project, format_)
    if as_json:
        _line(report.to_json())
        return
    _reported(report)
    if not paths and or_demo and not report.sessions:
        _demo()
    elif not paths:
        _walk(
            [
                {"kind": "user_message", "limit": 3},
                {"nav": "ls"},
                {"query": "decided decision 决定", "limit": 3},
            ],
            "all",
        )


@program.command(short_help="Store neutral events from standard input.")
@as_json
def capture(as_json: bool) -> None:
    """Read neutral events on standard input, one JSON a line, and store them.

    \b
    echo '{"session_id": "s1", "kind": "user_message", "origin": "m1", "body": "Hello"}' | graphsvc capture

    Each line has session_id, kind, origin and body; ts, project, cwd, actor and meta are optional.
    A bad line is rejected with its number and the reason, the others are stored. Exit 2 if any was rejected.
    """
    from graphsvc.memory import capture as memory
    from graphsvc.recall import index
    from graphsvc.store import database

    accepted = duplicates = position = 0
    rejected: list[dict[str, object]] = []
    with closing(database.connect(config.from_environment())) as db:
        for batch in _batches(sys.stdin.buffer, rejected):
            done = memory.capture(db, [event for _, event in batch])
            index.catch_up(db, _INDEX_MS)  # what was stored is searchable at once
            accepted, duplicates, position = accepted + done.accepted, duplicates + done.duplicates, done.position
            rejected += [
                {"line": batch[bad.index][0], "code": bad.code, "message": bad.message} for bad in done.rejected
            ]
    rejected.sort(key=lambda bad: int(str(bad["line"])))
    if as_json:
        _line({"accepted": accepted, "duplicates": duplicates, "rejected": rejected, "position": position})
    else:
        for bad in rejected:
            click.echo(f"line {bad['line']}: {_printable(str(bad['message']))}", err=True)
        click.echo(f"{accepted} stored, {duplicates} known, {len(rejected)} rejected")
    sys.exit(2 if rejected else 0)


@program.command(short_help="Call query_session_memory with a JSON object.")
@click.argument("arguments")
@asking
def tool(arguments: str, viewer: str | None, project: str | None) -> None:
    """Call query_session_memory with ARGUMENTS, a JSON object (or - for standard input).

    \b
    graphsvc tool '{"query": "receipt"}'
    graphsvc tool '{"nav": "cd", "target": "docs/ordering.md"}'

    Prints the answer as one compact line. Exit 0: something is there; 1: not found; 2: bad arguments.
    """
    try:
        printed, code = _call(viewer, project, _object(arguments))
    except GraphsvcError as error:
        _line({"error": _described(error)})
        sys.exit(error.exit_code)
    _put(printed)
    sys.exit(code)


@program.command(short_help="Outputs and todos of a session, edges of an asset.")
@click.argument("target", required=False)
@paging
@limited
@asking
@as_json
def ls(target: str | None, viewer: str | None, project: str | None, as_json: bool, **parameters: object) -> None:
    """List what a session made and left to do, or the edges of an asset; without TARGET, the latest session.

    \b
    graphsvc ls
    graphsvc ls harbor-cafe-2026-11-05
    graphsvc ls docs/ordering.md
    """
    _show(viewer, project, as_json, nav="ls", target=target, **parameters)


@program.command(short_help="One node: title, source, everything connected.")
@click.argument("target")
@paging
@limited
@asking
@as_json
def cd(target: str, viewer: str | None, project: str | None, as_json: bool, **parameters: object) -> None:
    """Show one node: its title, the event it came from, and everything it is connected to.

    \b
    graphsvc cd docs/ordering.md
    graphsvc cd decision-41
    """
    _show(viewer, project, as_json, nav="cd", target=target, **parameters)


@program.command(short_help="Whole content of a node.")
@click.argument("target")
@paging
@asking
@as_json
def cat(
    target: str, viewer: str | None, project: str | None, as_json: bool, cursor: str | None, token_budget: int | None
) -> None:
    """Print the whole content of an asset, event, record or session. With --json one page, as the tool gives it.

    \b
    graphsvc cat docs/ordering.md
    graphsvc cat event-40
    """
    if as_json:
        _show(viewer, project, as_json, nav="cat", target=target, cursor=cursor, token_budget=token_budget)
    from graphsvc import render

    budget = _PAGE if token_budget is None else token_budget
    page = _answer(viewer, project, nav="cat", target=target, cursor=cursor, token_budget=budget)
    if page["kind"] != "content":
        render.answer(page, _options(viewer, project))
        sys.exit(_code(page))
    last = ""
    while True:
        for item in page["items"]:
            render.write(item["label"])
            last = item["label"] or last
        if "cursor" not in page:
            break
        page = _answer(viewer, project, nav="cat", target=target, cursor=page["cursor"], token_budget=budget)
    if sys.stdout.isatty() and not last.endswith("\n"):
        render.write("\n")
    render.remarks(page, _options(viewer, project))
    sys.exit(_code(page))


@program.command(short_help="Matching lines in events and assets.")
@click.argument("query")
@filters
@paging
@asking
@as_json
def grep(query: str, viewer: str | None, project: str | None, as_json: bool, **parameters: object) -> None:
    """Find QUERY in the text of events and in titles, paths and content of assets; prints the lines around it.

    \b
    graphsvc grep total_cents
    graphsvc grep 到店付款 --session-id harbor-cafe-2026-11-05
    """
    _show(viewer, project, as_json, nav="grep", query=query, **parameters)


@program.command(short_help="Search everything that was said and done.")
@click.argument("query", required=False)
@filters
@click.option("--count-only", is_flag=True, help="Print the number of hits.")
@paging
@asking
@as_json
def search(
    query: str | None, count_only: bool, viewer: str | None, project: str | None, as_json: bool, **parameters: object
) -> None:
    """Search everything that was said and done; without QUERY, the newest that passes the filters.

    \b
    graphsvc search "rounding error"
    graphsvc search 退款 --kind user_message --since 2026-11-01
    graphsvc search --kind decision
    """
    _show(viewer, project, as_json, query=query, count_only=count_only or None, **parameters)


@program.command(short_help="Answer GraphQL until stopped.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address to listen on.")
@click.option("--port", default=8137, show_default=True, help="0 takes a free one.")
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path),
    help="Written when the service answers: url, socket, token_file, pid.",
)
@as_json
def serve(host: str, port: int, ready_file: Path | None, as_json: bool) -> None:
    """Answer GraphQL on loopback and on a socket in the home, until stopped.

    With --json, what the ready file says is printed when it answers.

    \b
    graphsvc serve
    graphsvc serve --port 0 --ready-file ready.json
    """
    from graphsvc.api import app

    settings = config.from_environment()

    def answering(ready: Mapping[str, object]) -> None:
        if as_json:
            _line(ready)
            return
        click.echo(f"graphsvc answers on {ready['url']}/graphql and {ready['socket']}; stop with Ctrl-C", err=True)
        click.echo(
            f"the owner's token stands in {ready['token_file']}; a browser takes it as /graphql#token=…", err=True
        )

    app.serve(settings, host=host, port=port, ready_file=ready_file, ready=answering)


@program.command(short_help="Replay the ledger, or check that it holds.")
@click.option("--check", is_flag=True, help="Change nothing; compare the tables with a replay, exit 1 if they differ.")
@as_json
def rebuild(check: bool, as_json: bool) -> None:
    """Drop everything that was derived and replay the ledger; the events themselves are never touched."""
    from graphsvc import render
    from graphsvc.memory import rebuild as replay
    from graphsvc.recall import index
    from graphsvc.store import database

    settings = config.from_environment()
    with closing(database.connect(settings)) as db:
        if not check:
            with render.progress("replaying the ledger") as progress:
                events = replay.rebuild(db, progress)
            while index.catch_up(db, _INDEX_MS):
                pass
            if as_json:
                _line({"events": events})
            else:
                click.echo(f"replayed {events} events")
            return
    with render.progress("comparing with the ledger") as progress:
        differences = replay.check(settings, progress, index.proof())
    if as_json:
        _line({"differences": [asdict(difference) for difference in differences]})
    elif differences:
        render.table(("id", "table", "problem"), [(found.id, found.table, found.problem) for found in differences])
    else:
        click.echo("the tables hold what the ledger gives")
    sys.exit(1 if differences else 0)


@program.command(short_help="Count what is stored.")
@click.option("--project", metavar="KEY|all", help="Count this project; default: all.")
@click.option("--viewer", metavar="SESSION", help="Count what this session sees.")
@as_json
def stats(viewer: str | None, project: str | None, as_json: bool) -> None:
    """Count what is stored: sessions, events, records, assets, edges, gaps, and the position of the index."""
    from graphsvc.recall import scope
    from graphsvc.store import counts, database

    asker = scope.Asker(session_id=viewer, project=project or (None if viewer else "all"))
    with closing(database.connect(config.from_environment())) as db, database.snapshot(db):
        asked, _ = scope.resolve(db, asker, None)
        counted = asdict(counts.stats(db, asked))
    if as_json:
        _line(counted)
        return
    from graphsvc import render

    rows = [(name, count) for name, count in counted.items() if count is not None and not isinstance(count, dict)]
    for name in ("kinds", "records", "edges"):
        rows += [(f"{name}: {kind}", count) for kind, count in counted[name].items()]
    render.table(("what", "count"), rows)


@program.command(short_help="Print the GraphQL schema (SDL).")
def schema() -> None:
    """Print the GraphQL schema (SDL)."""
    from graphsvc.api import schema as api

    sys.stdout.buffer.write(api.print_sdl().encode("utf-8"))


@program.command(short_help="A tour of two small conversations.")
@as_json
def demo(as_json: bool) -> None:
    """Import two small conversations and show what can be asked about them.

    They are a project of their own: two sessions about a café's ordering page, the first in English, the second in
    Chinese, in which a decision of the first one is replaced. In a folder whose project is known they stay out of
    what you ask; elsewhere --project KEY keeps them apart, and so does another GRAPHSVC_HOME. With --json the
    report of the import is printed, without the tour.
    """
    if as_json:
        _line(_import_demo().to_json())
    else:
        _demo()


def _demo() -> None:
    """Import the demo and walk through it; every answer comes from the store."""
    from graphsvc import render

    report = _import_demo()
    render.title(f"The demo: {len(report.sessions)} sessions of {_CAFE}")
    render.table(("session",), [(f"session-{name}",) for name in report.sessions])
    for session in report.sessions:
        _walk([{"nav": "ls", "target": session}], _CAFE)
    replaced = _answer(None, _CAFE, kind="decision", query="card", limit=1)["results"]
    note = _answer(None, _CAFE, nav="cd", target="docs/付款说明.md")["items"]
    _walk(
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


def _walk(steps: Iterable[Mapping[str, object]], project: str) -> None:
    """Show each call as the command a person would type, and its answer."""
    from graphsvc import render

    options = _options(None, project)
    for step in steps:
        answer = _answer(None, project, **step)
        render.title(f"\n$ {render.typed(step, options)}")
        render.answer(answer, options)


def _options(viewer: str | None, project: str | None) -> list[str]:
    """Write who asks as options of a command."""
    pairs = {"--viewer": viewer, "--project": project}
    return [part for name, value in pairs.items() if value for part in (name, value)]


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


def _import(paths: Sequence[Path], project: str | None, format_: str | None) -> Report:
    """Import files and folders in the order given, with a bar when somebody watches."""
    from graphsvc import clock, render
    from graphsvc.importers import run
    from graphsvc.memory import capture as memory
    from graphsvc.memory.redact import redact
    from graphsvc.recall import index
    from graphsvc.store import database, imports

    with (
        closing(database.connect(config.from_environment())) as db,
        render.progress("importing", bytes_read=True) as progress,
    ):

        def keep(batch: Sequence[Event]) -> memory.Captured:
            done = memory.capture(db, batch, history=True)
            index.catch_up(db, _INDEX_MS)  # what is imported is searchable while the rest comes in
            return done

        return run.import_files(
            paths,
            capture=keep,
            known=lambda path: imports.known(db, redact(path)),
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
        f"{len(report.skipped)} skipped"
    )
    render.table(("kind", "events"), sorted(report.kinds.items()))
    names = list(report.sessions)
    render.table(("session",), [(f"session-{name}",) for name in names[:_SHOWN]])
    if len(names) > _SHOWN:
        render.say(f"and {len(names) - _SHOWN} more sessions")


def _batches(stream: Iterable[bytes], rejected: list[dict[str, object]]) -> Iterator[list[tuple[int, Event]]]:
    """Yield the events of the lines in batches, the last one even if empty; add to `rejected` what is no event."""
    from graphsvc.importers import neutral, source

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
            rejected.append({"line": number, "code": "invalid-input", "message": str(error)})
        held += len(data)
        if len(batch) >= _BATCH or held >= _BATCH_BYTES:
            yield batch
            batch, held = [], 0
    yield batch


def _show(viewer: str | None, project: str | None, as_json: bool, **arguments: object) -> NoReturn:
    """Call the tool, print its answer, and leave with its exit code."""
    if as_json:
        printed, code = _call(viewer, project, arguments)
        _put(printed)
        sys.exit(code)
    from graphsvc import render

    answer = _answer(viewer, project, **arguments)
    render.answer(answer, _options(viewer, project))
    sys.exit(_code(answer))


def _answer(viewer: str | None, project: str | None, **arguments: object) -> dict[str, Any]:
    """Call the tool for a person; an argument it refuses is an error of the command."""
    printed, _ = _call(viewer, project, arguments)
    answer: dict[str, Any] = json.loads(printed)
    if problem := answer.get("error"):
        raise InvalidInput(problem["field"], problem["problem"], problem["allowed"])
    return answer


def _code(answer: Mapping[str, object]) -> int:
    return 1 if answer.get("status") == "not-found" else 0


def _call(viewer: str | None, project: str | None, arguments: Mapping[str, object]) -> tuple[str, int]:
    """Send one call of the tool as the local owner, from this folder."""
    from graphsvc.api import client
    from graphsvc.api import tool as api_tool
    from graphsvc.recall.scope import Asker

    asker = Asker(session_id=viewer, project=project, cwd=str(Path.cwd()))
    given = {name: value for name, value in arguments.items() if value is not None}
    return api_tool.call(given, client.connect(config.from_environment(), asker))


def _object(text: str) -> Mapping[str, object]:
    """Read the tool's arguments from the command line, or from standard input for `-`."""
    try:
        value = json.loads(sys.stdin.buffer.read().decode("utf-8") if text == "-" else text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput("arguments", "no JSON object", 'an object such as {"query": "receipt"}')
    return value


def _described(error: GraphsvcError) -> dict[str, object]:
    """Write an error as the tool does: what it is about, what would do, and the sentence people read."""
    about = {
        name: value
        for name in ("field", "problem", "allowed", "target", "suggestion")
        if (value := getattr(error, name, None))
    }
    return {**about, "message": str(error)}


def _line(value: object) -> None:
    """Print a value as one compact JSON line."""
    from graphsvc.recall import budget

    _put(budget.line(value))


def _put(line: str) -> None:
    """Write one line as UTF-8, whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def _printable(text: str) -> str:
    """Replace what would steer a terminal."""
    return "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text)


if __name__ == "__main__":
    main()

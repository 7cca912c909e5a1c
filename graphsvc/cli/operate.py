"""Running it: the service, the tables, the counts, the schema."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from graphsvc import config
from graphsvc.cli.lineage import graph
from graphsvc.cli.options import Command, as_json, line
from graphsvc.errors import InvalidInput, ServiceError

_INDEX_MS: Final = 60_000  # what was replayed is indexed before the command ends


@click.command(cls=Command, short_help="Answer GraphQL until stopped.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address to listen on.")
@click.option("--port", default=8137, show_default=True, help="0 takes a free one.")
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path),
    help="Written when the service answers: url, socket, token_file, pid.",
)
@click.option(
    "--log", "log_file", metavar="FILE", type=click.Path(path_type=Path), help="Log to this file, not standard error."
)
@as_json
def serve(host: str, port: int, ready_file: Path | None, log_file: Path | None, as_json: bool) -> None:
    """Answer GraphQL on loopback and on a socket in the home, until stopped.

    With --json, what the ready file says is printed when it answers. GRAPHSVC_LOG says what is logged, a line of JSON
    each and never what was asked or answered: debug, info (each request), warning (the default) or error.

    \b
    graphsvc serve
    graphsvc serve --port 0 --ready-file ready.json
    """
    from graphsvc.server import service

    settings = config.from_environment()

    def answering(ready: Mapping[str, object]) -> None:
        if as_json:
            line(ready)
            return
        click.echo(f"graphsvc answers on {ready['url']}/graphql and {ready['socket']}; stop with Ctrl-C", err=True)
        click.echo("for a browser: graphsvc ui --open", err=True)

    service.serve(settings, host=host, port=port, ready_file=ready_file, log_file=log_file, ready=answering)


@click.command(cls=Command, short_help="Show where a browser asks the running service.")
@click.option("--open", "opens", is_flag=True, help="Open the browser there.")
@as_json
def ui(opens: bool, as_json: bool) -> None:
    """Print the address of GraphiQL on the running service, with the owner's token in it.

    Whoever has the address may read and change what is kept.

    \b
    graphsvc ui
    graphsvc ui --open
    """
    from graphsvc.client import executor
    from graphsvc.client.token import read_token
    from graphsvc.server import pages
    from graphsvc.web import opening

    settings = config.from_environment()
    found = executor.url(settings)
    if found is None:
        raise ServiceError(f"no service runs for {settings.home}; start one: graphsvc serve")
    url = f"{found}/graphql#token={read_token(settings)}"
    if as_json:
        line({"url": url})
    else:
        click.echo(url)
    if not pages.packed():
        click.echo("GraphiQL is not in this installation, a small page serves; pip install -v says why", err=True)
    if opens and not opening.opened(settings, url):
        raise ServiceError("no browser could be started; open the address yourself")


@click.command(cls=Command, short_help="Replay the ledger, or check that it holds.")
@click.option("--check", is_flag=True, help="Change nothing; compare the tables with a replay, exit 1 if they differ.")
@as_json
def rebuild(check: bool, as_json: bool) -> None:
    """Drop everything that was derived and replay the ledger; the events themselves are never touched.

    \b
    graphsvc rebuild --check
    graphsvc rebuild
    """
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
                line({"events": events})
            else:
                click.echo(f"replayed {events} events")
            return
    with render.progress("comparing with the ledger") as progress:
        differences = replay.check(settings, progress, index.proof())
    if as_json:
        line({"differences": [asdict(difference) for difference in differences]})
    elif differences:
        render.table(("id", "table", "problem"), [(found.id, found.table, found.problem) for found in differences])
    else:
        click.echo("the tables hold what the ledger gives")
    sys.exit(1 if differences else 0)


@click.command(cls=Command, short_help="Count what is stored.")
@click.option("--project", metavar="KEY|all", help="Count this project; default: all.")
@click.option("--viewer", metavar="SESSION", help="Count what this session sees.")
@as_json
def stats(viewer: str | None, project: str | None, as_json: bool) -> None:
    """Count what is stored: sessions, events, records, assets, edges, gaps; say what is indexed and paused.

    With a running service, say how its mirror of the graph is.

    \b
    graphsvc stats --json
    """
    from graphsvc.memory import rebuild as replay
    from graphsvc.recall import scope
    from graphsvc.store import counts, database, imports

    settings = config.from_environment()
    asker = scope.Asker(session_id=viewer, project=project or (None if viewer else "all"))
    with closing(replay.connect(settings)) as db, database.snapshot(db):
        asked, _ = scope.resolve(db, asker, None)
        counted = asdict(counts.stats(db, asked))
        lasting = {one.project or "all": one.since for one in imports.pauses(db)}
    paused = lasting if asked.everywhere else None
    mirror = graph.told(settings)
    about = {"status": mirror.state, "position": mirror.position} if mirror is not None else None
    if as_json:
        line({**counted, "graph": about, "paused": paused})
        return
    from graphsvc import render

    rows = [(name, count) for name, count in counted.items() if count is not None and not isinstance(count, dict)]
    for name in ("kinds", "records", "edges"):
        rows += [(f"{name}: {kind}", count) for kind, count in counted[name].items()]
    rows += [(f"graph: {name}", value) for name, value in (about or {}).items()]
    rows += [(f"paused since: {key}", since) for key, since in (paused or {}).items()]
    render.table(("what", "count"), rows)


@click.command(cls=Command, short_help="Print the GraphQL schema, or what changed in it.")
@click.option(
    "--diff",
    "old",
    type=click.Path(path_type=Path),
    metavar="OLD.graphql",
    help="Print what changed since this SDL instead: breaking, dangerous, safe.",
)
@as_json
def schema(old: Path | None, as_json: bool) -> None:
    """Print the GraphQL schema (SDL), or what changed in it.

    \b
    graphsvc schema
    graphsvc schema --diff old.graphql

    Exit 1 when something breaks a client that was not told by @deprecated.
    """
    from graphsvc.api import schema as api

    if old is None:
        if as_json:
            line({"sdl": api.print_sdl()})
        else:
            sys.stdout.buffer.write(api.print_sdl().encode("utf-8"))
        return
    from graphsvc import render
    from graphsvc.cli import changes

    try:
        before = old.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("diff", f"{str(old)!r} cannot be read: {error}", "a file of SDL") from None
    found = changes.changes(before, api.print_sdl())
    breaks = any(one.breaks for one in found)
    if as_json:
        line({"breaks": breaks, "changes": [asdict(one) for one in found]})
    elif found:
        rows = [(one.effect, "was deprecated" if one.deprecated else "", one.change) for one in found]
        render.table(("effect", "note", "change"), rows)
    else:
        click.echo("nothing changed")
    sys.exit(1 if breaks else 0)


@click.command(cls=Command, short_help="Print what makes a shell complete commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete commands, options and their values.

    \b
    echo 'eval "$(graphsvc completion bash)"' >> ~/.bashrc
    echo 'eval "$(graphsvc completion zsh)"' >> ~/.zshrc
    graphsvc completion fish > ~/.config/fish/completions/graphsvc.fish
    """
    from click.shell_completion import get_completion_class

    program = click.get_current_context().find_root()
    made = get_completion_class(shell)
    if made is None:
        raise InvalidInput("shell", f"{shell} is unknown to click", "bash, zsh, fish")
    click.echo(made(program.command, {}, "graphsvc", "_GRAPHSVC_COMPLETE").source())

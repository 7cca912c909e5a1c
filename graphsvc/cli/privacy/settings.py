"""The owner's settings of privacy, beside what the files of a project say."""

from __future__ import annotations

from contextlib import closing

import click

from graphsvc import config
from graphsvc.cli.ingest import project_key
from graphsvc.cli.options import Command, as_json, folder, line, printable
from graphsvc.errors import InvalidInput

_PROJECT = click.option("--project", metavar="KEY|all", help="Of this project, or of all; default: the folder's.")


class Group(click.Group):
    """A group whose commands stand in the order they are used."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # click's own signature
        return list(self.commands)


@click.group(
    cls=Group, short_help="What is isolated and recorded, as you and a project's file say.", no_args_is_help=True
)
def settings() -> None:
    """What is isolated and recorded, as you say and as a project's .graphsvc.toml does.

    A file only makes things more private than you have them: it can isolate and pause, never share.

    \b
    graphsvc settings list
    graphsvc settings set isolation.tools share --project /srv/cafe
    graphsvc settings unset isolation.tools --project /srv/cafe
    """


@settings.command("list", short_help="List what holds, and who says so.")
@_PROJECT
@as_json
def _list(project: str | None, as_json: bool) -> None:
    """List what holds in this folder, or at the root of --project, and who says so.

    \b
    graphsvc settings list
    """
    from graphsvc import clock
    from graphsvc.memory import rebuild
    from graphsvc.memory.settings.policy import Policies

    with closing(rebuild.connect(config.from_environment())) as db:
        key = project_key(db, project)
        policy = Policies(db, clock.utc_text(clock.system())).of(key or "", None if project else folder())
    held = policy.settings
    if as_json:
        rows = [
            {
                "name": name,
                "value": one.value,
                "by": one.by,
                "ignored": [{"file": path, "value": value} for path, value in one.ignored],
            }
            for name, one in held.items()
        ]
        line({"project": key or "all", "settings": rows, "problem": policy.problem})
    else:
        from graphsvc import render

        render.table(("setting", "value", "by"), [(name, one.value, one.by) for name, one in held.items()])
        for name, one in held.items():
            for path, value in one.ignored:
                render.say(f"{path} says {value}, which counts when you say it: graphsvc settings set {name} {value}")
    if policy.problem is not None:
        click.echo(f"graphsvc: {printable(policy.problem)}", err=True)
        raise SystemExit(InvalidInput.exit_code)


@settings.command("set", short_help="Set what holds, unless a project's file is more private.")
@click.argument("name")
@click.argument("value")
@_PROJECT
@as_json
def _set(name: str, value: str, project: str | None, as_json: bool) -> None:
    """Set NAME to VALUE for this project, or for all; what is captured from now on goes by it.

    \b
    isolation.tools    isolate: the tool calls and results of an isolated session are its own (default)
                       share: all see them
    isolation.default  shared: a session is seen by all until it is isolated (default)
                       isolated: a session begins isolated

    \b
    graphsvc settings set isolation.tools share --project /srv/cafe
    graphsvc settings set isolation.default isolated --project all
    """
    from graphsvc.memory import rebuild
    from graphsvc.memory.settings import values
    from graphsvc.store import imports

    if name == values.PAUSED:
        raise InvalidInput("name", "recording has commands of its own", "graphsvc pause, graphsvc resume")
    values.check("setting", name, value)
    with closing(rebuild.connect(config.from_environment())) as db:
        key = project_key(db, project)
        imports.set_(db, key, name, value)
    if as_json:
        line({"project": key or "all", "name": name, "value": value})
    else:
        click.echo(f"{name} is {value} for {printable(key or 'all')}")


@settings.command("unset", short_help="Go back to what holds otherwise.")
@click.argument("name")
@_PROJECT
@as_json
def _unset(name: str, project: str | None, as_json: bool) -> None:
    """Take back what was set for this project, or for all; then what is set for all holds, or what is built in.

    \b
    graphsvc settings unset isolation.tools
    """
    from graphsvc.memory import rebuild
    from graphsvc.memory.settings import values
    from graphsvc.store import imports

    values.check("setting", name, values.BUILT_IN.get(name, ""))
    with closing(rebuild.connect(config.from_environment())) as db:
        key = project_key(db, project)
        known = imports.unset(db, key, name)
    if as_json:
        line({"project": key or "all", "name": name, "was_set": known})
    else:
        click.echo(f"{name} is {'no longer' if known else 'not'} set for {printable(key or 'all')}")

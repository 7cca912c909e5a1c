"""The command line. Rooms are imported inside the commands, so that `--help` and the tool start fast.

Standard output carries the answer, standard error everything else: progress, notes, errors.
"""

from __future__ import annotations

import sys

import click

from graphsvc import __version__
from graphsvc.cli import ask, audit, bench, doctor, ingest, lists, operate, record, token
from graphsvc.cli.lineage import graph, insights, walks, why
from graphsvc.cli.options import INTERRUPTED, Command, line
from graphsvc.cli.privacy import forget, isolation, settings, sight


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
    graphsvc decide, goal, todo, …       state what holds; a group's --help lists what it does

    Every id in an answer works as the next target. GRAPHSVC_HOME chooses where everything is kept.
    """


def main() -> None:
    """Run the command line; what is printed is UTF-8 whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = program.main(prog_name="graphsvc", standalone_mode=False)
    except click.UsageError as error:
        if "--json" in sys.argv:
            line({"error": {"message": error.format_message()}})
        else:
            error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


for _command in (
    ingest.import_,
    ingest.capture,
    ingest.export,
    ingest.pause,
    ingest.resume,
    forget.forget,
    forget.redact,
    settings.settings,
    ask.tool,
    ask.ls,
    ask.cd,
    ask.cat,
    ask.grep,
    ask.search,
    why.why,
    *record.GROUPS,
    isolation.publish,
    isolation.isolate,
    sight.visibility,
    lists.timeline,
    walks.lineage,
    walks.impact,
    walks.path,
    walks.diff,
    insights.insights,
    operate.serve,
    operate.ui,
    token.token,
    operate.rebuild,
    graph.graph,
    bench.bench,
    operate.stats,
    doctor.doctor,
    audit.audit,
    operate.schema,
    operate.completion,
    ingest.demo,
):
    program.add_command(_command)

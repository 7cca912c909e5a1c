"""What a person states: decisions, goals, todos, feedback, candidates, assets; one group of commands each.

A command sends the document of its mutation, as any other client would. Without a verb a group adds: `goal "…"` is
`goal add "…"`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from graphsvc import states
from graphsvc.cli import lists
from graphsvc.cli.options import Command, as_json, asking, line
from graphsvc.errors import Conflict, GraphsvcError, InvalidInput, InvalidTransition, Isolated, NotFoundError
from graphsvc.model import ASSET_KINDS, FEEDBACK_KINDS, SCOPES

F = TypeVar("F", bound=Callable[..., Any])

# A verb that this group has not: nobody means to record one English word.
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_-]*|[a-z]+-[0-9]+")
_CHANGED: Final = ("candidate", "decision", "superseded", "goal", "todo", "feedback", "asset")
_PROBLEMS: Final[Mapping[str, Callable[[Mapping[str, Any]], GraphsvcError]]] = {
    "InvalidInput": lambda got: InvalidInput(got["field"], got["problem"], got["allowed"]),
    "InvalidTransition": lambda got: InvalidTransition(
        got["machine"], got["status"], got["action"], tuple(got["allowed_actions"])
    ),
    "Conflict": lambda got: Conflict(got["target"], got["expected"], got["actual"]),
    "AcrossIsolation": lambda got: Isolated(got["target"], got["problem"], got["allowed"]),
    "NotFound": lambda got: NotFoundError(got["target"], got["suggestion"]),
}


class Group(click.Group):
    """A group whose commands stand in the order they are used; without one of their names it adds."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 # click's own signature
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not _WORD.fullmatch(args[0]):
            args = ["add", *args]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = f"to record it as a text: {ctx.command_path} add {args[0]}"
            raise click.UsageError(f"{error.format_message()} ({hint})", ctx) from None


def _group(name: str, about: str, examples: str) -> Group:
    return Group(name, help=f"{about}\n\n\b\n{examples}", short_help=about, no_args_is_help=True)


decide = _group(
    "decide",
    "Decisions: record, propose, activate, supersede, revoke, list.",
    """\
graphsvc decide "Orders are paid at the counter." --because event-40 --because docs/ordering.md
graphsvc decide supersede decision-41 "改用到店付款。" --reason "Cards were too slow."
graphsvc decide list --status active""",
)
goal = _group(
    "goal",
    "Goals: add, complete, drop, list.",
    """\
graphsvc goal "Orders can be picked up without waiting."
graphsvc goal complete goal-9""",
)
todo = _group(
    "todo",
    "Pending work: add, done, drop, list.",
    """\
graphsvc todo "把押金写进说明牌" --basis goal-9
graphsvc todo done todo-7""",
)
feedback = _group(
    "feedback",
    "What a user prefers or corrected: add, revoke, list.",
    """\
graphsvc feedback "Prices are written in cents." --kind correction
graphsvc feedback revoke feedback-5""",
)
candidate = _group(
    "candidate",
    "What may become a decision: add, promote, reject, list.",
    """\
graphsvc candidate "取餐码用四位数字。" --because src/pickup.py
graphsvc candidate promote candidate-30 --text "The corrected text."
graphsvc candidate reject candidate-31 --reason "Too slow."\
""",
)
asset = _group(
    "asset",
    "Files that are outputs: add, list.",
    """\
graphsvc asset docs/退款.md --title 退款规则
graphsvc asset list""",
)
GROUPS: Final = (decide, goal, todo, feedback, candidate, asset)


def _stating(command: F) -> F:
    """Add who states something, where it belongs, and how to say it once."""
    for option in (
        as_json,
        asking,
        click.option("--client-mutation-id", metavar="ID", help="Said again under the same id, it is done once."),
        click.option("--session-id", metavar="SESSION", help="File it under this session; default: graphsvc's own."),
    ):
        command = option(command)
    return command


def _because(command: F) -> F:
    return click.option(
        "--because", "evidence", multiple=True, metavar="ID|PATH", help="What it stands on; may be repeated."
    )(command)


def _reason(command: F) -> F:
    return click.option("--reason", metavar="TEXT", help="Why; kept with the change.")(command)


def _scope(command: F) -> F:
    return click.option(
        "--scope",
        type=click.Choice(SCOPES),
        help="How far it holds; default: in its project. global: in every one.",
    )(command)


def _version(command: F) -> F:
    return click.option(
        "--if-version",
        type=click.IntRange(1, 2**63 - 1),
        metavar="N",
        help="Only if it still has the version that was printed.",
    )(command)


@decide.command("add", short_help="Record a decision that holds from now on.")
@click.argument("text")
@_because
@_scope
@click.option("--propose", is_flag=True, help="Only propose it; `decide activate` makes it hold.")
@_reason
@_stating
def _decide_add(text: str, propose: bool, **given: object) -> None:
    """Record TEXT as a decision that holds from now on; with --propose it waits for `decide activate`.

    \b
    graphsvc decide "Orders are paid at the counter." --because event-40
    graphsvc decide add "取餐码用四位数字。" --propose
    """
    _state("decision_propose" if propose else "decision_record", given, text=text)


@decide.command("supersede", short_help="Replace a decision by another one.")
@click.argument("id")
@click.argument("text")
@_because
@_reason
@_version
@_stating
def _decide_supersede(**given: object) -> None:
    """Replace the decision ID by TEXT, which holds from now on; the old one is kept, and says what replaced it.

    \b
    graphsvc decide supersede decision-41 "改用到店付款。" --because event-60
    """
    _state("decision_supersede", given)


@candidate.command("add", short_help="Note what may become a decision.")
@click.argument("text")
@_because
@_stating
def _candidate_add(**given: object) -> None:
    """Note TEXT as what may become a decision; nothing is bound by it until it is promoted.

    \b
    graphsvc candidate "取餐码用四位数字。" --because src/pickup.py
    """
    _state("candidate_add", given)


@candidate.command("promote", short_help="Make a candidate a decision.")
@click.argument("id")
@click.option("--text", metavar="TEXT", help="The corrected text; default: the candidate's own.")
@_reason
@_version
@_stating
def _candidate_promote(**given: object) -> None:
    """Make the candidate ID a decision, with its evidence.

    \b
    graphsvc candidate promote candidate-30
    graphsvc candidate promote candidate-30 --text "Pickup codes have four digits."
    """
    _state("candidate_promote", given)


@goal.command("add", short_help="State what is to be reached.")
@click.argument("text")
@_because
@_scope
@_stating
def _goal_add(**given: object) -> None:
    """State TEXT as what is to be reached.

    \b
    graphsvc goal "Orders can be picked up without waiting."
    """
    _state("goal_add", given)


@todo.command("add", short_help="Note pending work.")
@click.argument("text")
@click.option("--basis", metavar="ID|PATH", help="The goal, decision or asset it follows from.")
@_stating
def _todo_add(**given: object) -> None:
    """Note TEXT as pending work.

    \b
    graphsvc todo "把押金写进说明牌" --basis decision-41
    """
    _state("todo_add", given)


@feedback.command("add", short_help="Keep what a user prefers or corrected.")
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice(FEEDBACK_KINDS),
    default=FEEDBACK_KINDS[0],
    show_default=True,
    help="A preference, or the correction of a mistake.",
)
@_because
@_scope
@_stating
def _feedback_add(**given: object) -> None:
    """Keep TEXT as what a user prefers or corrected.

    \b
    graphsvc feedback "给客人看的文字中英文都要写"
    graphsvc feedback "Prices are written in cents." --kind correction
    """
    _state("feedback_add", given)


@asset.command("add", short_help="Say that a file is an asset.")
@click.argument("path")
@click.option("--title", metavar="TEXT", help="Title of a file that is not known yet; default: its name.")
@click.option("--kind", type=click.Choice(ASSET_KINDS), help="Kind of a file that is not known yet; default: by name.")
@_stating
def _asset_add(**given: object) -> None:
    """Say that the file at PATH is an asset of the project. One that is known keeps what it holds.

    \b
    graphsvc asset docs/退款.md --title 退款规则
    """
    _state("asset_register", given)


def _step(group: Group, name: str, mutation: str, about: str) -> None:
    """Add a command that takes one step with one record."""

    @group.command(name, short_help=about, help=f"{about}\n\n\b\ngraphsvc {group.name} {name} {_EXAMPLES[group]}")
    @click.argument("id")
    @_reason
    @_version
    @_stating
    def step(**given: object) -> None:
        _state(mutation, given)


_SCOPED: Final = frozenset({"decisions", "goals", "feedback"})
_EXAMPLES: Final = {
    decide: "decision-41",
    goal: "goal-9",
    todo: "todo-7",
    feedback: "feedback-5",
    candidate: "candidate-30",
}
for _one in (
    (decide, "activate", "decision_activate", "Make a proposed decision hold."),
    (decide, "revoke", "decision_revoke", "End a decision without another one in its place."),
    (candidate, "reject", "candidate_reject", "Say that a candidate is no decision."),
    (goal, "complete", "goal_complete", "Say that a goal is reached."),
    (goal, "drop", "goal_drop", "Give a goal up."),
    (todo, "done", "todo_done", "Say that a todo is done."),
    (todo, "drop", "todo_drop", "Give a todo up."),
    (feedback, "revoke", "feedback_revoke", "Say that feedback holds no longer."),
):
    _step(*_one)


def _of_scopes(command: F) -> F:
    return click.option(
        "--scope", multiple=True, type=click.Choice(SCOPES), help="Only what holds that far; may be repeated."
    )(command)


def _of_all(command: F) -> F:
    return command


def _listing(group: Group, document: str, option: str, choices: Sequence[str], about: str) -> None:
    """Add the command that lists what a group records; `option` filters by status, or by kind."""

    @group.command("list", short_help=about, help=f"{about}\n\n\b\ngraphsvc {group.name} list --{option} {choices[0]}")
    @click.option(f"--{option}", multiple=True, type=click.Choice(choices), help="Only these; may be repeated.")
    @click.option("--query", metavar="WORDS", help="Only what holds all of these words.")
    @(_of_scopes if document in _SCOPED else _of_all)
    @lists.paged
    def list_(**given: object) -> None:
        files = ("id", "kind", "path", "versions")
        lists.show(document, given, files if document == "assets" else ("id", "status", "text", "version"), _row)


for _each in (
    (decide, "decisions", "status", states.statuses("decision"), "List decisions, newest first."),
    (goal, "goals", "status", states.statuses("goal"), "List goals, newest first."),
    (todo, "todos", "status", states.statuses("todo"), "List pending work, newest first."),
    (feedback, "feedback", "status", states.statuses("feedback"), "List feedback, newest first."),
    (candidate, "candidates", "status", states.statuses("candidate"), "List candidates, newest first."),
    (asset, "assets", "kind", ASSET_KINDS, "List assets, the newest version first."),
):
    _listing(*_each)


def _state(mutation: str, given: Mapping[str, object], **more: str) -> None:
    """Send a mutation as the local owner, and print what became of it."""
    about = {**given, **more}
    quiet = about.pop("as_json")
    got = send(f"record/{mutation}", about)
    if quiet:
        line(got)
        return
    from graphsvc import render

    render.table(("id", "status", "text", "version"), [_row(got[name]) for name in _CHANGED if name in got])
    if got["duplicate"]:
        render.say("note: it was there already; nothing was added")


def send(document: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Send the document of a mutation as who asks, and return what became of it; raise what was wrong."""
    about = dict(given)
    viewer, project = (str(name) if name else None for name in (about.pop("viewer"), about.pop("project", None)))
    variables = {name: value for name, value in about.items() if value not in (None, ())}
    got = lists.ask(document, viewer, project, variables)
    kind = str(got.pop("__typename"))
    if kind in _PROBLEMS:
        raise _PROBLEMS[kind](got)
    return got


def _row(node: Mapping[str, Any]) -> Sequence[object]:
    """Write a record or an asset as a row: what it is, where it stands, what it says, its version."""
    if "path" in node:
        return node["id"], node["kind"], f"{node['path']} · {node['title']}", node["version_count"]
    scope = node.get("scope", "project")
    status = node["status"] if scope == "project" else f"{node['status']}, {scope}"
    return node["id"], status, node["text"], node["version"]

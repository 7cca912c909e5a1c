"""The agent's tool `query_session_memory`: picks a document, has it executed, prints the outcome.

It knows GraphQL documents, not the store. The printed line is the one whose tokens were counted: the documents select
the fields in the order of the envelope, and both sides leave out what says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from graphsvc import resources
from graphsvc.errors import InvalidInput, ServiceError
from graphsvc.recall import budget, request

Executor = Callable[[str, Mapping[str, object]], Mapping[str, object]]  # document, variables → GraphQL response

FOUND: Final = 0
NOT_FOUND: Final = 1
INVALID: Final = InvalidInput.exit_code
_MAX_LONG: Final = 2**63 - 1


def call(arguments: Mapping[str, object], execute: Executor) -> tuple[str, int]:
    """Answer one call of the tool: the printed line and the exit code."""
    try:
        name, variables = choose(arguments)
    except InvalidInput as error:
        return refused(error.field, error.problem, error.allowed, str(error)), INVALID
    got = prune(outcome(execute(document(name), variables)))
    if "problem" in got:
        return refused(*(str(got[key]) for key in ("field", "problem", "allowed", "message"))), INVALID
    return budget.line(got), NOT_FOUND if got.get("status") == "not-found" else FOUND


def choose(arguments: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the document for these arguments and its variables; raise InvalidInput when they break the contract."""
    checked = request.check(arguments)
    if checked.nav is None and checked.target is not None:
        raise InvalidInput("target", "given without nav", "a target together with nav ls, cd or cat; query to search")
    given = {name: value for name, value in arguments.items() if not _says_nothing(value)}
    given.pop("nav", None)
    if "token_budget" in given:
        given["token_budget"] = min(checked.token_budget, _MAX_LONG)
    return checked.nav or "search", given


def document(name: str) -> str:
    """Return the text of a document of the tool."""
    return resources.text(f"queries/tool/{name}.graphql")


def refused(field: str, problem: str, allowed: str, message: str) -> str:
    """Print what was wrong with an argument."""
    return budget.line({"error": {"field": field, "problem": problem, "allowed": allowed, "message": message}})


def prune(value: object) -> dict[str, object]:
    """Return a JSON object without its nulls, at any depth, in the same order."""
    pruned = _pruned(value)
    if not isinstance(pruned, dict):
        raise ServiceError("the service answered with something that is no object")
    return pruned


def outcome(response: Mapping[str, object]) -> object:
    """Return the value of the one field that our documents ask for."""
    if problems := response.get("errors"):
        raise ServiceError(_first_message(problems))
    data = response.get("data")
    if not isinstance(data, Mapping) or len(data) != 1:
        raise ServiceError("the service answered without data")
    return next(iter(data.values()))


def _pruned(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _pruned(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_pruned(part) for part in value]
    return value


def _says_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _first_message(problems: object) -> str:
    first = problems[0] if isinstance(problems, list) and problems else None
    message = first.get("message") if isinstance(first, Mapping) else None
    return str(message or "the service answered with an error that says nothing")

"""The GraphQL schema as one: what can be read and written, bounded, with bugs masked.

`errors` of a response is left for syntax, validation, cost, access and bugs; all else is data.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import strawberry
from graphql import ExecutionResult, FieldNode, GraphQLError
from graphql import OperationType as Operation
from strawberry.extensions import MaskErrors, SchemaExtension
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.types import ExecutionContext
from strawberry.types.graphql import OperationType

from graphsvc import bugs, errors
from graphsvc.api import cost, limits, nodes
from graphsvc.api.context import Context
from graphsvc.api.live import Reader, Subscription
from graphsvc.api.mutations import Mutation
from graphsvc.api.queries import Query
from graphsvc.api.values import SCALARS
from graphsvc.model import TokenKind
from graphsvc.store.database import BusyError, interrupted

_CODES: Final = {BusyError: "BUSY", errors.Forbidden: "FORBIDDEN"}
_READS: Final = frozenset({OperationType.QUERY})
_ONCE: Final = frozenset({OperationType.QUERY, OperationType.MUTATION})
_AGAIN: Final = frozenset({OperationType.SUBSCRIPTION})


class MaskBugs(MaskErrors):
    """Replace the texts of unexpected errors of a request by an id, and log them under it; the end of the time is none.

    A bug at each row of a list is logged a few times only.
    """

    def __init__(self) -> None:
        super().__init__(should_mask_error=_unexpected)
        self.correlation = bugs.new_id()
        self.logged = 0

    def anonymise_error(self, error: GraphQLError) -> GraphQLError:
        if interrupted(error.original_error):
            extensions = {"code": "DEADLINE"}
            return GraphQLError(
                "not done in time; ask for less", nodes=error.nodes, path=error.path, extensions=extensions
            )
        # Names of the schema: the path of the error has aliases, which the asker chose.
        names = ", ".join(node.name.value for node in error.nodes or () if isinstance(node, FieldNode))
        self.logged += 1
        if self.logged <= limits.ERRORS:
            bugs.log(f"field {names}" if names else "a document", error.original_error, self.correlation)
        message = f"A bug of graphsvc. The log of the service tells more under {self.correlation}."
        extensions = {"code": "BUG", "correlation_id": self.correlation}
        return GraphQLError(message, nodes=error.nodes, path=error.path, extensions=extensions)


_CAPTURES: Final = frozenset({"capture", "whoami", "__typename"})  # what such a token may begin a document with
_SAYS: Final = {
    TokenKind.CAPTURE: ("a token that captures reads nothing", "the mutation capture, and whoami"),
    TokenKind.READ: ("a token that reads changes nothing", "queries and subscriptions"),
}


class Allowed(SchemaExtension):
    """Execute only what the asker's token allows, found before anything runs."""

    def on_execute(self) -> Iterator[None]:
        context = self.execution_context
        kind = context.context.asker.token.kind if context.context is not None else TokenKind.OWNER
        if kind is not TokenKind.OWNER and not _may(kind, context):
            error = errors.Forbidden(*_SAYS[kind])
            context.result = ExecutionResult(data=None, errors=[GraphQLError(str(error), original_error=error)])
        yield


class Schema(strawberry.Schema):
    """The schema; it does not log documents, as the library would."""

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        """Leave logging to `MaskBugs`."""


schema: Final = Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    types=nodes.TYPES,
    config=StrawberryConfig(auto_camel_case=False, scalar_map=SCALARS),
    extensions=[*limits.extensions(), Allowed, MaskBugs],
)


def print_sdl() -> str:
    """Print the schema as it is kept in `schema/graphsvc.graphql`."""
    return f"{schema.as_str()}\n"


class Subscribes(errors.GraphsvcError):
    """The document subscribes to something, so there is no one response."""


def known(document: str) -> bool:
    """Say whether a document was found valid and is kept."""
    return limits.known(schema._schema, document)


def check(
    document: str, variables: Mapping[str, object], operation: str | None, *, reads: bool = False, streams: bool = False
) -> dict[str, Any] | None:
    """Return the response to a document that would not be executed; None when it would. Nothing is executed here.

    With `streams`, a subscription is executed as well.
    """
    try:
        response = respond(document, variables, operation, None, reads=reads)
    except Subscribes:
        response = respond(document, variables, operation, None, reader=Reader()) if streams else {"data": None}
    return None if "data" in response else response


def respond(
    document: str,
    variables: Mapping[str, object],
    operation: str | None,
    context: Context | None,
    *,
    reads: bool = False,
    reader: Reader | None = None,
) -> dict[str, object]:
    """Execute a document and return the response as JSON values; `data` is left out when nothing was executed.

    With `reads`, only a query is executed; without a context nothing is, and `data` is empty. A subscription is
    executed once for each thing it delivers, by its `reader`; without one it raises Subscribes.
    """
    allowed = _READS if reads else _ONCE if reader is None else _AGAIN
    try:
        result = schema.execute_sync(document, dict(variables), context, reader, operation, allowed)
    except InvalidOperationTypeError as error:
        if not reads and error.operation_type is OperationType.SUBSCRIPTION:
            raise Subscribes("a subscription is answered by an event stream or a WebSocket") from None
        return {
            "errors": [
                {"message": "Only queries are answered here; send it by POST.", "extensions": {"code": "METHOD"}}
            ]
        }
    except CannotGetOperationTypeError:
        message = "The document has no operation of that name, or several and no name was given."
        return {"errors": [{"message": message, "extensions": {"code": "BAD_REQUEST"}}]}
    # Not every way to an error passes the extensions: one of their own bugs does not.
    mask = MaskBugs()
    problems = limits.bounded([mask.anonymise_error(one) if _unexpected(one) else one for one in result.errors or []])
    response: dict[str, object] = {}
    if problems:
        response["errors"] = [_formatted(error) for error in problems]
    if result.data is not None or not problems or any(error.path for error in problems):
        response["data"] = result.data
    return response


def _may(kind: TokenKind, context: ExecutionContext) -> bool:
    """Say whether a token of that kind may have this executed. A field that is new is the owner's to change with."""
    document = context.graphql_document
    operation = cost.operation_named(document, context.operation_name) if document is not None else None
    if document is None or operation is None:
        return False
    if kind is TokenKind.CAPTURE:
        return cost.begins(document, operation) <= _CAPTURES
    return operation.operation is not Operation.MUTATION


def _formatted(error: GraphQLError) -> dict[str, object]:
    """Return an error as JSON values; one that was raised on purpose says by a code which it is."""
    formatted = dict(error.formatted)
    if isinstance(error.original_error, errors.GraphsvcError) and "extensions" not in formatted:
        kind = type(error.original_error)
        formatted["extensions"] = {"code": _CODES.get(kind, kind.__name__)}
    return formatted


def _unexpected(error: GraphQLError) -> bool:
    """Say whether an error is a bug: neither GraphQL's own nor one that graphsvc raises on purpose."""
    return error.original_error is not None and not isinstance(
        error.original_error, errors.GraphsvcError | GraphQLError
    )

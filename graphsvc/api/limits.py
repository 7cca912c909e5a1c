"""What may be asked of the service at once, in one table, and the check of a document before anything runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    NoFragmentCyclesRule,
    get_variable_values,
    parse,
    specified_rules,
    validate,
)
from strawberry.extensions import SchemaExtension
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule
from strawberry.schema.validation_rules.one_of import OneOfInputValidationRule
from strawberry.types import ExecutionContext

from graphsvc.api import cost
from graphsvc.api.cost import Cost
from graphsvc.api.values import MAX_FIRST, MAX_IDS, MAX_LENGTH

CACHED: Final = 64  # documents
CACHED_TOKENS: Final = 1_000  # of each
CACHED_CHARACTERS: Final = 16_384
ERRORS: Final = 20  # that one answer tells
_COERCION_ERRORS: Final = 50  # after which execution stops as well
_MESSAGE: Final = 500  # characters of an error; it may quote what was sent
_SMALLER: Final = "ask in several smaller documents"
_LESS: Final = "ask for smaller pages (first) and shorter texts (length, token_budget), or for fewer things at once"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many of what; `advice` says what to do about more."""

    most: int
    what: str
    advice: str


LIMITS: Final = {
    "tokens": Limit(2_000, "tokens of a document", "use variables for values, or " + _SMALLER),
    "operations": Limit(50, "operations in a document", _SMALLER),
    "depth": Limit(12, "fields below each other", "start from the id of an inner node"),
    "introspection": Limit(16, "introspection fields below each other", "graphsvc schema prints the types"),
    "fields": Limit(500, "fields", _SMALLER),
    "aliases": Limit(30, "aliases", _SMALLER),
    "pairs": Limit(1_000, "pairs of fields of one name in one place", "ask for each once"),
    "nesting": Limit(cost.NESTING, "selections inside each other, through fragments", "write them flatter"),
    "nodes": Limit(10_000, "objects, or thousands of characters, of an answer", _LESS),
    "first": Limit(MAX_FIRST, "rows of a page", "go on with after"),
    "length": Limit(MAX_LENGTH, "characters of a part of a text", "go on with offset"),
    "ids": Limit(MAX_IDS, "ids of nodes", _SMALLER),
    "document": Limit(65_536, "characters of a document", "use variables for values"),
    "body": Limit(2**20, "bytes of a request", "ask with less"),
    "capture": Limit(2**24, "bytes of a request that captures", "send fewer events at a time"),
    "values": Limit(100, "JSON values inside each other", "send them flatter"),
    "seconds": Limit(5, "seconds of work for a request", "ask for less"),
    "capture_seconds": Limit(60, "seconds of work for a request that captures", "send fewer events at a time"),
    "waiting": Limit(64, "requests inside the service", "try again in a second"),
    "asker_waiting": Limit(16, "requests of one asker inside the service", "wait for one of yours to be answered"),
    "running": Limit(20, "operations on one WebSocket", "complete one first"),
    "subscriptions": Limit(100, "subscriptions in the service", "end one first"),
    "token_subscriptions": Limit(50, "subscriptions under one token", "end one first"),
    "token_connections": Limit(32, "WebSockets and event streams under one token", "close one first"),
}
_MORE: Final = f"There may be more errors than these {ERRORS}."
_RULES: Final = (*specified_rules, MaybeNullValidationRule, OneOfInputValidationRule)
_SHAPE: Final = ("depth", "introspection", "fields", "aliases", "nesting", "pairs")


class Limits(SchemaExtension):
    """Check the shape, then validity, both once a document; then what these variables may make of it.

    What is too expensive is not validated at all.
    """

    def on_parse(self) -> Iterator[None]:
        context = self.execution_context
        if context.query and context.graphql_document is None:
            known = _VALID.get((context.schema._schema, context.query))
            context.graphql_document = known or parse(context.query, max_tokens=LIMITS["tokens"].most)
        yield

    def on_validate(self) -> Iterator[None]:
        context = self.execution_context
        schema, document = context.schema._schema, context.graphql_document
        if document is not None:
            key = (schema, context.query or "")
            errors = [] if _VALID.get(key) is document else _checked(schema, document)
            if context.query and not errors:
                _VALID.keep(key, document)
            context.pre_execution_errors = errors or check_nodes(
                schema, document, context.operation_name, context.variables or {}
            )
        yield

    def on_execute(self) -> Iterator[None]:
        context = self.execution_context
        if context.context is None and context.graphql_document is not None:  # nothing to work with: only checked
            context.result = _checked_variables(context, context.graphql_document)
        yield


def known(schema: GraphQLSchema, document: str) -> bool:
    """Say whether a document was found valid and is kept."""
    return _VALID.get((schema, document)) is not None


class _Documents:
    """Valid documents by schema and text, those asked for last.

    Few and small ones: each is thousands of objects, and the more there are, the longer garbage collection stops all.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[GraphQLSchema, str], DocumentNode] = OrderedDict()

    def get(self, key: tuple[GraphQLSchema, str]) -> DocumentNode | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def keep(self, key: tuple[GraphQLSchema, str], document: DocumentNode) -> None:
        if document.token_count > CACHED_TOKENS or len(key[1]) > CACHED_CHARACTERS:
            return
        with self._lock:
            self._known[key] = document
            if len(self._known) > CACHED:
                self._known.popitem(last=False)


_VALID: Final = _Documents()


def extensions() -> list[type[SchemaExtension] | Callable[[], SchemaExtension]]:
    """List the extensions of the schema that bound a document before it runs."""
    return [Limits]


def check_nodes(
    schema: GraphQLSchema, document: DocumentNode, operation: str | None, variables: dict[str, object]
) -> list[GraphQLError]:
    """Return an error when the answer may hold more than it may."""
    node = cost.operation_named(document, operation)
    found = Cost(nodes=cost.nodes(schema, document, node, variables)) if node else Cost()
    error = _error("nodes", found)
    return [error] if error else []


def bounded(errors: list[GraphQLError]) -> list[GraphQLError]:
    """Return the first errors, and say that there are more when that is not all."""
    for error in errors:
        if len(error.message) > _MESSAGE:
            error.message = f"{error.message[:_MESSAGE]}…"
    if len(errors) <= ERRORS:
        return errors
    return [*errors[:ERRORS], GraphQLError(_MORE)]


def _checked(schema: GraphQLSchema, document: DocumentNode) -> list[GraphQLError]:
    if error := _error("operations", Cost(operations=cost.operations(document))):
        return [error]
    shape = cost.shape(document)
    if errors := exceeded(shape):
        return errors
    # What has no end was measured as if it had one, and other rules might not find the end soon.
    rules = (NoFragmentCyclesRule,) if shape.cyclic else _RULES
    return bounded(validate(schema, document, rules, max_errors=ERRORS))


def _checked_variables(context: ExecutionContext, document: DocumentNode) -> ExecutionResult:
    """Return the result of an operation that has no fields: only its variables may be wrong."""
    operation = cost.operation_named(document, context.operation_name)
    definitions = operation.variable_definitions or () if operation else ()
    found = get_variable_values(context.schema._schema, definitions, context.variables or {}, _COERCION_ERRORS)
    return ExecutionResult(data=None, errors=found) if isinstance(found, list) else ExecutionResult(data={})


def exceeded(shape: cost.Shape) -> list[GraphQLError]:
    """Return an error for every limit that the text of a document exceeds."""
    return [error for name in _SHAPE if (error := _error(name, shape.all))]


def _error(name: str, measured: Cost) -> GraphQLError | None:
    limit, costs = LIMITS[name], getattr(measured, name)
    if costs <= limit.most:
        return None
    many = f"{costs} or more" if costs == cost.MOST else str(costs)
    return GraphQLError(
        f"More than {limit.most} {limit.what}: this would be {many}; {limit.advice}.",
        extensions={"code": "TOO_EXPENSIVE", "limit": name, "most": limit.most, "cost": costs},
    )

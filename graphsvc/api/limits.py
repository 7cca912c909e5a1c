"""What a GraphQL document may cost, decided before anything runs.

One walk measures depth, fields and aliases, each fragment once: a rule that expands spreads as it meets them needs
exponential time for a chain of fragments that name each other twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    specified_rules,
)
from strawberry.extensions import MaxTokensLimiter, ParserCache, SchemaExtension
from strawberry.schema.schema import validate_document

TOKENS: Final = 2_000
DEPTH: Final = 12
INTROSPECTION_DEPTH: Final = 16
FIELDS: Final = 500
ALIASES: Final = 30
REPEATS: Final = 50  # of one field in one selection; graphql-core compares each with each
CACHED: Final = 128  # documents
_NESTING: Final = 100  # selection sets inside each other, through fragments; the walk recurses


@dataclass(frozen=True, slots=True)
class Cost:
    """What a selection costs. `depth` counts fields below each other, `meta` those from `__schema` or `__type` on."""

    depth: int = 0
    meta: int = 0
    fields: int = 0
    aliases: int = 0
    repeats: int = 0
    nesting: int = 0

    def beside(self, other: Cost) -> Cost:
        """Return the cost of both in one selection."""
        return Cost(
            depth=max(self.depth, other.depth),
            meta=max(self.meta, other.meta),
            fields=self.fields + other.fields,
            aliases=self.aliases + other.aliases,
            repeats=max(self.repeats, other.repeats),
            nesting=max(self.nesting, other.nesting),
        )


LIMITS: Final = {
    "depth": (DEPTH, "fields below each other"),
    "meta": (INTROSPECTION_DEPTH, "introspection fields below each other"),
    "fields": (FIELDS, "fields"),
    "aliases": (ALIASES, "aliases"),
    "repeats": (REPEATS, "repetitions of one field"),
    "nesting": (_NESTING, "selections inside each other"),
}


def check_cost(document: DocumentNode) -> list[GraphQLError]:
    """Return an error for every limit that an operation of the document exceeds."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    walk = _Walk(fragments)
    errors = []
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            cost = walk.selection(node.selection_set, 0)
            errors += [
                _error(node, limit, words) for name, (limit, words) in LIMITS.items() if getattr(cost, name) > limit
            ]
    return errors


class Limits(SchemaExtension):
    """Check cost, then validity; both once a document. What is too expensive is not validated at all."""

    def on_validate(self) -> Iterator[None]:
        context = self.execution_context
        if context.graphql_document is not None:
            context.pre_execution_errors = _checked(context.schema._schema, context.graphql_document)
        yield


def extensions() -> list[type[SchemaExtension] | Callable[[], SchemaExtension]]:
    """List the extensions of the schema that bound a document before it runs."""
    return [lambda: MaxTokensLimiter(TOKENS), lambda: ParserCache(CACHED), Limits]


@lru_cache(CACHED)
def _checked(schema: GraphQLSchema, document: DocumentNode) -> list[GraphQLError]:
    return check_cost(document) or validate_document(schema, document, tuple(specified_rules))


class _Walk:
    """The cost of selections, with the fragments already measured."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode]) -> None:
        self.fragments = fragments
        self.known: dict[str, Cost] = {}

    def selection(self, node: SelectionSetNode | None, level: int) -> Cost:
        if node is None:
            return Cost()
        if level > _NESTING:
            return Cost(nesting=level)
        total = Cost(repeats=_repeats(node), nesting=level)
        for child in node.selections:
            if isinstance(child, FieldNode):
                total = total.beside(self.field(child, level))
            elif isinstance(child, FragmentSpreadNode):
                total = total.beside(self.fragment(child.name.value, level))
            elif isinstance(child, InlineFragmentNode):
                total = total.beside(self.selection(child.selection_set, level + 1))
        return total

    def field(self, node: FieldNode, level: int) -> Cost:
        inside = self.selection(node.selection_set, level + 1)
        introspects = node.name.value in {"__schema", "__type"}
        return Cost(
            depth=0 if introspects else inside.depth + 1,
            meta=max(inside.depth, inside.meta) + 1 if introspects else inside.meta and inside.meta + 1,
            fields=inside.fields + 1,
            aliases=inside.aliases + (node.alias is not None),
            repeats=inside.repeats,
            nesting=inside.nesting,
        )

    def fragment(self, name: str, level: int) -> Cost:
        # An unknown name or a cycle costs nothing here: validation reports both.
        if name not in self.known:
            self.known[name] = Cost()
            if name in self.fragments:
                self.known[name] = self.selection(self.fragments[name].selection_set, level + 1)
        return self.known[name]


def _repeats(node: SelectionSetNode) -> int:
    names = sorted((child.alias or child.name).value for child in node.selections if isinstance(child, FieldNode))
    return max((len(list(same)) for _, same in groupby(names)), default=0)


def _error(node: OperationDefinitionNode, limit: int, words: str) -> GraphQLError:
    return GraphQLError(
        f"The document has more than {limit} {words}. Ask in several smaller documents.",
        nodes=node,
        extensions={"code": "TOO_EXPENSIVE"},
    )

"""What an operation costs: the shape of its text, and how many objects and characters its answer may hold at most.

Each fragment is measured once: a rule that expands spreads as it meets them needs exponential time for a chain of
fragments that name each other twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Final

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLArgument,
    GraphQLField,
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_list_type,
)

from graphsvc.api.values import MAX_FIRST, MAX_IDS, MAX_LENGTH

NESTING: Final = 100  # selection sets inside each other, through fragments; the walks recurse
MOST: Final = 10**9  # what is larger is written as this: a chain of fragments has numbers that no client reads
_INTROSPECTION: Final = frozenset({"__schema", "__type"})


@dataclass(frozen=True, slots=True)
class Argument:
    """How much an argument asks for: `default` when it is left out and the schema has none, `most` at most.

    `share` of it counts as one object. What is larger than `most` is refused by its scalar, or costs no more.
    """

    default: int
    most: int
    share: int = 1


ROWS: Final = {"first": Argument(20, MAX_FIRST), "ids": Argument(0, MAX_IDS)}
CHARACTERS: Final = {"length": Argument(4_000, MAX_LENGTH, 1_000), "token_budget": Argument(4_000, 500_000, 250)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a selection costs; `limits.LIMITS` says what each number counts."""

    tokens: int = 0
    operations: int = 0
    depth: int = 0
    introspection: int = 0
    fields: int = 0
    aliases: int = 0
    repeats: int = 0
    nesting: int = 0
    nodes: int = 0

    def beside(self, other: Cost) -> Cost:
        """Return the cost of both in one selection."""
        return Cost(**{one.name: _JOIN[one.name](getattr(self, one.name), getattr(other, one.name)) for one in _FIELDS})


def _sum(one: int, other: int) -> int:
    return min(one + other, MOST)


_FIELDS: Final = fields(Cost)
_JOIN: Final[Mapping[str, Callable[[int, int], int]]] = {
    "tokens": max,
    "operations": max,
    "depth": max,
    "introspection": max,
    "fields": _sum,
    "aliases": _sum,
    "repeats": max,
    "nesting": max,
    "nodes": _sum,
}


def measure(
    schema: GraphQLSchema, document: DocumentNode, operation: str | None = None, variables: Mapping[str, object] = {}
) -> Cost:
    """Return what the operation of that name costs with these variables; without a name, the first operation.

    What is nested too deeply to be walked holds any number of nodes, and a field that does not exist holds none.
    """
    chosen = operation_named(document, operation)
    if chosen is None:
        return Cost(tokens=document.token_count)
    cost = shapes(document)[chosen]
    within = cost.nesting <= NESTING
    return replace(cost, nodes=nodes(schema, document, chosen, variables) if within else MOST)


def operation_named(document: DocumentNode, name: str | None) -> OperationDefinitionNode | None:
    """Return the operation that will run; None when there is none of that name."""
    return next((node for node in _operations(document) if name in {None, node.name and node.name.value}), None)


def shapes(document: DocumentNode) -> dict[OperationDefinitionNode, Cost]:
    """Return what the text of each operation costs; nodes are not counted."""
    walk = _Shape(_fragments(document))
    found = _operations(document)
    about = {"tokens": document.token_count, "operations": len(found)}
    return {node: replace(walk.selection(node.selection_set, 0), **about) for node in found}


def nodes(
    schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, object]
) -> int:
    """Return how many objects an answer may hold at most; a thousand characters of a text count as one."""
    kind = schema.get_root_type(operation.operation)
    given = {
        one.variable.name.value: variables.get(one.variable.name.value, one.default_value)
        for one in operation.variable_definitions or ()
    }
    return _Nodes(schema, _fragments(document), given).selection(kind, operation.selection_set)


def _operations(document: DocumentNode) -> list[OperationDefinitionNode]:
    return [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]


def _fragments(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    return {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}


class _Shape:
    """The shape of selections, with the fragments already measured."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode]) -> None:
        self.fragments = fragments
        self.known: dict[str, Cost] = {}

    def selection(self, node: SelectionSetNode | None, level: int) -> Cost:
        if node is None:
            return Cost()
        if level > NESTING:
            return Cost(nesting=level)
        total = Cost(repeats=_repeats(node))
        for child in node.selections:
            if isinstance(child, FieldNode):
                total = total.beside(self.field(child, level))
            elif isinstance(child, FragmentSpreadNode):
                total = total.beside(self.fragment(child.name.value, level))
            elif isinstance(child, InlineFragmentNode):
                total = total.beside(self.selection(child.selection_set, level + 1))
        return replace(total, nesting=total.nesting + 1)

    def field(self, node: FieldNode, level: int) -> Cost:
        inside = self.selection(node.selection_set, level + 1)
        introspects = node.name.value in _INTROSPECTION
        below = max(inside.depth, inside.introspection) if introspects else inside.introspection
        return replace(
            inside,
            depth=0 if introspects else inside.depth + 1,
            introspection=below + 1 if introspects or below else 0,
            fields=_sum(inside.fields, 1),
            aliases=_sum(inside.aliases, node.alias is not None),
        )

    def fragment(self, name: str, level: int) -> Cost:
        # An unknown name or a cycle costs nothing here: validation reports both.
        if name not in self.known:
            self.known[name] = Cost()
            if name in self.fragments:
                self.known[name] = self.selection(self.fragments[name].selection_set, level + 1)
        return self.known[name]


class _Nodes:
    """The objects that selections may give, with the fragments already counted. The document is valid, or nearly."""

    def __init__(
        self,
        schema: GraphQLSchema,
        fragments: Mapping[str, FragmentDefinitionNode],
        variables: Mapping[str, object],
    ) -> None:
        self.schema = schema
        self.fragments = fragments
        self.variables = variables
        self.known: dict[str, int] = {}

    def selection(self, parent: GraphQLNamedType | None, node: SelectionSetNode | None) -> int:
        if node is None or parent is None or not is_composite_type(parent):
            return 0
        total = 0
        for child in node.selections:
            if isinstance(child, FieldNode):
                total += self.field(parent, child)
            elif isinstance(child, FragmentSpreadNode):
                total += self.fragment(child.name.value)
            elif isinstance(child, InlineFragmentNode):
                condition = child.type_condition
                kind = self.schema.get_type(condition.name.value) if condition else parent
                total += self.selection(kind, child.selection_set)
        return min(total, MOST)

    def field(self, parent: GraphQLNamedType, node: FieldNode) -> int:
        definition = self.schema.get_field(parent, node.name.value)  # type: ignore[arg-type]  # a composite type
        if definition is None:
            return 0
        kind = get_named_type(definition.type)
        own = int(is_composite_type(kind))
        below = self.selection(kind, node.selection_set)
        texts = self.asked(definition, node, CHARACTERS) or 0
        rows = self.asked(definition, node, ROWS)
        if rows is None:
            total = own + below
        elif is_list_type(get_nullable_type(definition.type)):
            total = rows * (own + below)
        else:
            total = own + rows * below
        return min(texts + total, MOST)

    def fragment(self, name: str) -> int:
        if name not in self.known:
            self.known[name] = 0
            if name in self.fragments:
                node = self.fragments[name]
                kind = self.schema.get_type(node.type_condition.name.value)
                self.known[name] = self.selection(kind, node.selection_set)
        return self.known[name]

    def asked(self, definition: GraphQLField, node: FieldNode, names: Mapping[str, Argument]) -> int | None:
        """Return how many objects an argument of these names asks for; None where the field has no such argument."""
        name = next((name for name in names if name in definition.args), None)
        if name is None:
            return None
        bounds = names[name]
        written = next((one.value for one in node.arguments or () if one.name.value == name), None)
        given = self.variables.get(written.name.value) if isinstance(written, VariableNode) else written
        value = _default(definition.args[name], bounds) if given is None else _number(given)
        within = value is not None and 0 <= value <= bounds.most
        return -(-(value if within and value is not None else bounds.most) // bounds.share)


def _default(argument: GraphQLArgument, bounds: Argument) -> int:
    value = argument.default_value if argument.default is None else argument.default.value
    return value if isinstance(value, int) else bounds.default


def _number(value: object) -> int | None:
    """Read a literal or the value of a variable, a list as its length; None where it is no number to be answered."""
    if isinstance(value, IntValueNode):
        return int(value.value) if len(value.value) < 10 else None
    if isinstance(value, ListValueNode):
        return len(value.values)
    if isinstance(value, list):
        return len(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _repeats(node: SelectionSetNode) -> int:
    names = sorted((child.alias or child.name).value for child in node.selections if isinstance(child, FieldNode))
    return max((len(list(same)) for _, same in groupby(names)), default=0)

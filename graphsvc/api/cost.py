"""What an operation costs: the shape of its text, and how many objects and characters its answer may hold at most.

Each fragment is measured once: a rule that expands spreads as it meets them needs exponential time for a chain of
fragments that name each other twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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

PAIRED: Final = 1_000  # expanded fields up to which pairs of them are counted
NESTING: Final = 100  # selection sets inside each other, through fragments; the walks recurse
MOST: Final = 10**9  # what is larger is written as this: a chain of fragments has numbers that no client reads
_NUMBERS: Final = ("depth", "introspection", "fields", "aliases", "nesting", "tokens", "operations")
_INTROSPECTION: Final = frozenset({"__schema", "__type"})


@dataclass(frozen=True, slots=True)
class Argument:
    """How much an argument asks for: `default` when it is left out and the schema has none, `most` at most.

    `share` of it counts as one object. What is larger than `most` is refused by its scalar, or costs no more.
    """

    default: int
    most: int
    share: int = 1


ROWS: Final = {"first": Argument(20, MAX_FIRST), "ids": Argument(0, MAX_IDS), "max_nodes": Argument(200, 2_000)}
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
    pairs: int = 0
    nesting: int = 0
    nodes: int = 0

    def beside(self, other: Cost) -> Cost:
        """Return the cost of both in one selection."""
        return Cost(
            tokens=max(self.tokens, other.tokens),
            operations=max(self.operations, other.operations),
            depth=max(self.depth, other.depth),
            introspection=max(self.introspection, other.introspection),
            fields=min(self.fields + other.fields, MOST),
            aliases=min(self.aliases + other.aliases, MOST),
            pairs=max(self.pairs, other.pairs),
            nesting=max(self.nesting, other.nesting),
            nodes=min(self.nodes + other.nodes, MOST),
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """What the text of a document costs: its operations in order, all of it, and whether its fragments have no end."""

    operations: Sequence[Cost]
    all: Cost
    cyclic: bool


def measure(
    schema: GraphQLSchema, document: DocumentNode, operation: str | None = None, variables: Mapping[str, object] = {}
) -> Cost:
    """Return what the operation of that name costs with these variables; without a name, the first operation.

    What is nested too deeply to be walked holds any number of nodes, and a field that does not exist holds none.
    """
    chosen = operation_named(document, operation)
    if chosen is None:
        return Cost(tokens=document.token_count)
    cost = shape(document).operations[next(i for i, node in enumerate(_operations(document)) if node is chosen)]
    within = cost.nesting <= NESTING
    return replace(cost, nodes=nodes(schema, document, chosen, variables) if within else MOST)


def operation_named(document: DocumentNode, name: str | None) -> OperationDefinitionNode | None:
    """Return the operation that will run; None when there is none of that name."""
    return next((node for node in _operations(document) if name in {None, node.name and node.name.value}), None)


def begins(document: DocumentNode, operation: OperationDefinitionNode) -> frozenset[str]:
    """Return the names of the fields that an operation begins with, also through fragments. The document is valid."""
    fragments, found, left = _fragments(document), set(), [operation.selection_set]
    while left:
        for node in left.pop().selections:
            if isinstance(node, FieldNode):
                found.add(node.name.value)
            elif isinstance(node, FragmentSpreadNode):
                left.append(fragments[node.name.value].selection_set)
            elif isinstance(node, InlineFragmentNode):
                left.append(node.selection_set)
    return frozenset(found)


def operations(document: DocumentNode) -> int:
    """Count the operations of a document."""
    return len(_operations(document))


def shape(document: DocumentNode) -> Shape:
    """Measure the text of a document; nodes are not counted."""
    fragments = _fragments(document)
    walk = _Shape(fragments)
    found = _operations(document)
    about = {"tokens": document.token_count, "operations": len(found)}
    costs = [replace(walk.selection(node.selection_set, 0), **about) for node in found]
    # What no operation uses is validated all the same.
    every = [*costs, *(walk.alone(node) for node in fragments.values())]
    widest = Cost(**{name: max(getattr(one, name) for one in every) for name in _NUMBERS}) if every else Cost()
    if not walk.cyclic and widest.fields <= PAIRED and widest.nesting <= NESTING:
        paired = [_pairs(fragments, [node.selection_set]) for node in (*found, *fragments.values())]
        costs = [replace(cost, pairs=pairs) for cost, pairs in zip(costs, paired, strict=False)]
        widest = replace(widest, pairs=max(paired, default=0))
    return Shape(operations=costs, all=widest, cyclic=walk.cyclic)


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
        self.inside: set[str] = set()
        self.cyclic = False

    def selection(self, node: SelectionSetNode | None, level: int) -> Cost:
        if node is None:
            return Cost()
        if level > NESTING:
            return Cost(nesting=level)
        total = Cost()
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
            fields=min(inside.fields + 1, MOST),
            aliases=min(inside.aliases + (node.alias is not None), MOST),
        )

    def fragment(self, name: str, level: int) -> Cost:
        # An unknown name or a cycle costs nothing here: validation reports both.
        if name in self.inside:
            self.cyclic = True
        elif name not in self.known:
            self.inside.add(name)
            node = self.fragments.get(name)
            self.known[name] = self.selection(node.selection_set, level + 1) if node else Cost()
            self.inside.remove(name)
        return self.known.get(name, Cost())

    def alone(self, node: FragmentDefinitionNode) -> Cost:
        """Return the cost of a fragment wherever it is used; one on a type of introspection is used below that only."""
        found = self.fragment(node.name.value, 0)
        if not node.type_condition.name.value.startswith("__"):
            return found
        return replace(found, depth=0, introspection=max(found.depth, found.introspection))


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


def _pairs(fragments: Mapping[str, FragmentDefinitionNode], sets: Sequence[SelectionSetNode]) -> int:
    """Count the pairs of fields of one name in selections that are merged: validation compares each with each."""
    groups: dict[str, list[SelectionSetNode | None]] = {}
    seen: set[str] = set()
    waiting = list(sets)
    while waiting:
        for child in waiting.pop().selections:
            if isinstance(child, FieldNode):
                groups.setdefault((child.alias or child.name).value, []).append(child.selection_set)
            elif isinstance(child, InlineFragmentNode):
                waiting.append(child.selection_set)
            elif isinstance(child, FragmentSpreadNode) and child.name.value not in seen:
                seen.add(child.name.value)
                waiting += [fragments[child.name.value].selection_set] if child.name.value in fragments else []
    below = ([inner for inner in group if inner is not None] for group in groups.values())
    own = sum(len(group) * (len(group) - 1) // 2 for group in groups.values())
    return own + sum(_pairs(fragments, inner) for inner in below if inner)

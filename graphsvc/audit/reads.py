"""Every read of the schema as calls with random arguments: what is added to the schema is asked from then on.

Fields and arguments are found in the SDL. An argument gets its value from VALUES, by its own name or by its type; one
that is in neither has none, and `unknown` names it: whoever adds it says here what can be asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    get_named_type,
    get_nullable_type,
    is_list_type,
    is_non_null_type,
)
from graphql.pyutils import Undefined

from graphsvc.api import schema as api
from graphsvc.model import ASKED_KINDS

ROWS: Final = 10  # of a page, at most
PAGES: Final = 3
ALL_PAGES: Final = 200  # of a call whose pages are walked to their end
ECHO: Final = frozenset({"LineOrigin.line"})  # what the asker sent
TIMING: Final = frozenset({"Freshness.elapsed_ms"})
_OFTEN: Final = 0.35  # how often an optional argument is given


class Sort(StrEnum):
    """How a call is asked: of the agent's tool, as a query, or as a subscription."""

    TOOL = "tool"
    QUERY = "query"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True)
class Call:
    """One question: the field it is about, its document (none for the tool) and variables, and how many pages."""

    sort: Sort
    field: str
    document: str
    variables: Mapping[str, object]
    pages: int = PAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What can be asked for, isolated or not: no part of it is empty. `texts` are of files, each with its path."""

    ids: tuple[str, ...]
    sessions: tuple[str, ...]
    projects: tuple[str, ...]
    moments: tuple[str, ...]
    paths: tuple[str, ...]
    words: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    position: int  # the newest of the ledger

    def some(self, ids: tuple[str, ...]) -> Pool:
        """Return the same with other ids."""
        return replace(self, ids=ids)


Value = Callable[[Pool, random.Random], object]


def _of(name: str) -> Value:
    return lambda pool, chance: chance.choice(getattr(pool, name))


def _one_of(*values: object) -> Value:
    return lambda _, chance: chance.choice(values)


def _moment(pool: Pool, chance: random.Random) -> object:
    return chance.choice((chance.choice(pool.moments), chance.choice(pool.ids), f"event-{_position(pool, chance)}"))


def _position(pool: Pool, chance: random.Random) -> int:
    return chance.randint(0, pool.position)


def _text(pool: Pool, chance: random.Random) -> object:
    text = chance.choice(pool.texts)[1]
    return {"text": chance.choice((text, f"# one\n\n{text}"))}


def _commit(pool: Pool, chance: random.Random) -> object:
    return {
        "hash": f"{chance.getrandbits(28):07x}",
        "committed_at": chance.choice(pool.moments),
        "path": chance.choice(pool.paths),
        "line": chance.randint(1, 4),
    }


def _cursor(_: Pool, chance: random.Random) -> object:
    return f"{chance.randint(63_000_000_000_000_000, 64_000_000_000_000_000)}.{chance.randint(1, 60)}"


def _edge_cursor(pool: Pool, chance: random.Random) -> object:
    return f"{chance.randint(0, 1)}.0.{_position(pool, chance)}.{chance.randint(0, 4)}.{chance.randint(0, 7)}.1"


# An argument of one field stands before one of any field, and that before one of a type.
VALUES: Final[Mapping[str, Value]] = {
    **dict.fromkeys(("root", "target", "node", "id"), _of("ids")),
    **dict.fromkeys(("from", "to", "as_of"), _moment),
    **dict.fromkeys(("path.from", "path.to"), _of("ids")),
    "ids": lambda pool, chance: chance.sample(pool.ids, min(len(pool.ids), 12)),
    **dict.fromkeys(("session_id", "viewer"), _of("sessions")),
    **dict.fromkeys(("since", "until", "updated_after"), _of("moments")),
    "query": _of("words"),
    "project": lambda pool, chance: chance.choice((*pool.projects, "all")),
    "path": _of("paths"),
    "line": lambda _, chance: chance.randint(1, 4),
    "FileText": _text,
    "LineCommit": _commit,
    "SearchKind": lambda _, chance: str(chance.choice(ASKED_KINDS)),
    "limit": _one_of(1, 2, 5, 8, 50),
    "token_budget": _one_of(100, 400, 4_000, 50_000),
    "depth": _one_of(1, 2, 4),
    "max_nodes": lambda _, chance: chance.randint(2, 9),
    "max_edges": lambda _, chance: chance.randint(2, 20),
    "max_length": lambda _, chance: chance.randint(1, 6),
    "fanout": lambda _, chance: chance.randint(1, 4),
    "deadline_ms": _one_of(4_000),  # the most: what ends early ends anywhere
    "impact.first": lambda _, chance: chance.randint(0, 3),
    "PageSize": lambda _, chance: chance.randint(1, ROWS),
    "TimeZone": _one_of("UTC", "Asia/Shanghai"),
    "Cursor": _cursor,
    "EdgeCursor": _edge_cursor,
    "offset": _one_of(0, 3, 20),
    "Length": _one_of(1, 10, 4_000),
    **{f"{name}.after": _position for name in ("events_captured", "status_changed", "lineage_changed")},
    "Boolean": _one_of(True, False),
}
FOLLOWS: Final = frozenset({"after", "cursor", "resume"})  # come from the page before
# What must be said although it need not: without it an answer could be too large to be given.
_ALWAYS: Final = {"first": ROWS, "order": "desc"}
_ENOUGH: Final = 3  # rows of a list inside a node


@lru_cache
def sdl() -> GraphQLSchema:
    """Return the schema that is served."""
    return build_schema(api.print_sdl())


def fields() -> list[tuple[Sort, str]]:
    """List every read: the fields of queries and of subscriptions."""
    query, subscription = sdl().query_type, sdl().subscription_type
    return [
        *((Sort.QUERY, name) for name in (query.fields if query else ())),
        *((Sort.SUBSCRIPTION, name) for name in (subscription.fields if subscription else ())),
    ]


def unknown() -> list[str]:
    """List the arguments of reads, as `field.argument` or `Type.field.argument`, that there is no value for."""
    outer = [
        f"{name}.{argument}"
        for sort, name in fields()
        for argument, one in _root(sort).fields[name].args.items()
        if argument not in FOLLOWS and _value(name, argument, one) is None
    ]
    inner = [
        f"{kind.name}.{name}.{argument}"
        for kind in _objects()
        for name, field in kind.fields.items()
        for argument, one in field.args.items()
        if _value(name, argument, one) is None
    ]
    return sorted(outer + inner)


def calls(pool: Pool, chance: random.Random, *, often: int = 3) -> Iterator[Call]:
    """Yield calls of every read; `often` says how many of each field, and a mandatory word is given every value."""
    yield from _tool(pool, chance)
    for sort, name in fields():
        if name == "node":
            yield from _nodes(pool, chance, often)
        else:
            yield from _of_field(sort, name, pool, chance, often)
    yield from _inside(pool, chance, often)
    yield from _refused(pool, chance)


def _of_field(sort: Sort, name: str, pool: Pool, chance: random.Random, often: int) -> Iterator[Call]:
    field = _root(sort).fields[name]
    if not field.args:
        yield Call(sort, name, _document(sort, name), {})
        return
    words = [
        (argument, list(kind.values))
        for argument, one in field.args.items()
        if _mandatory(one)
        if isinstance(kind := get_nullable_type(one.type), GraphQLEnumType)
    ]
    for number in range(max([often, *(len(values) for _, values in words)])):
        given = {argument: values[number % len(values)] for argument, values in words}
        for argument, one in field.args.items():
            value = _value(name, argument, one)
            # The first call of a field has nothing that narrows it, and a cursor is made up now and then only.
            often_ = 0.1 if argument in FOLLOWS and sort is Sort.QUERY else _OFTEN
            if argument in given or value is None:
                continue
            if (
                _mandatory(one)
                or (number and chance.random() < often_)
                or (argument == "after" and sort is not Sort.QUERY)
            ):
                given[argument] = value(pool, chance)
            elif argument in _ALWAYS and name != "impact":
                given.setdefault(argument, _ALWAYS[argument])
        if sort is Sort.SUBSCRIPTION and chance.random() < 0.7:
            given["after"] = 0
        yield Call(sort, name, _document(sort, name), {**given, **_inner(sort, name, pool, chance)}, _pages(chance))


def _pages(chance: random.Random) -> int:
    return ALL_PAGES if chance.random() < 0.15 else PAGES


def _nodes(pool: Pool, chance: random.Random, often: int) -> Iterator[Call]:
    for target in chance.sample(pool.ids, min(len(pool.ids), 4 * often)):
        document, arguments = _node(_kind(target))
        yield Call(Sort.QUERY, "node", document, {"id": target, **_chosen(arguments, pool, chance)})


def _inside(pool: Pool, chance: random.Random, often: int) -> Iterator[Call]:
    """Ask for the lists inside nodes, page by page."""
    for target in chance.sample(pool.ids, min(len(pool.ids), 2 * often)):
        kind = _kind(target)
        lists = [name for name, field in kind.fields.items() if "after" in field.args]
        for name in chance.sample(lists, min(len(lists), 2)):
            rows = _selection(kind.fields[name].type, 0, {})
            document = (
                f"query ($id: ID!, $first: PageSize!, $after: {kind.fields[name].args['after'].type})"
                f" {{ node(id: $id) {{ ... on {kind.name} {{ {name}(first: $first, after: $after) {rows} }} }} }}"
            )
            given = {"id": target, "first": chance.randint(1, 3)}
            yield Call(Sort.QUERY, "node", document, given, _pages(chance))


def _tool(pool: Pool, chance: random.Random) -> Iterator[Call]:
    """Ask the agent's tool: each id once, each way to walk and to search."""
    asked: list[dict[str, object]] = []
    for target in pool.ids:
        asked.append({"nav": "cd", "target": target, "limit": 50, "token_budget": 20_000})
        if chance.random() < 0.25:
            asked.append({"nav": chance.choice(("ls", "cat")), "target": target, "limit": 50})
    for session in pool.sessions:
        asked.append({"nav": "cat", "target": session, "token_budget": 50_000})
        asked.append({"nav": "ls", "session_id": session, "limit": 50, "token_budget": 20_000})
    asked += [{"nav": "ls"}, {"nav": "ls", "target": pool.sessions[0], "limit": 2}]
    for word in chance.sample(pool.words, min(len(pool.words), 6)):
        asked.append({"nav": "grep", "query": word, **_filters(pool, chance)})
        asked.append({"query": word, **_filters(pool, chance)})
        asked.append({"query": word, "count_only": True})
    asked += [{"kind": str(kind), "limit": 50, "token_budget": 20_000} for kind in ASKED_KINDS]
    asked.append({"limit": chance.randint(1, 9), **_filters(pool, chance)})
    asked.append({"limit": 50, "token_budget": 50_000, "project": "all"})
    asked.append({"count_only": True, "session_id": chance.choice(pool.sessions)})
    for given in asked:
        yield Call(Sort.TOOL, "nav" if "nav" in given else "search", "", given, _pages(chance))


def _filters(pool: Pool, chance: random.Random) -> dict[str, object]:
    names = ("kind", "session_id", "since", "until", "order", "limit")
    every = {"kind": str(chance.choice(ASKED_KINDS)), "order": chance.choice(("asc", "desc"))}
    chosen = {name: every.get(name) or VALUES[name](pool, chance) for name in names}
    return {name: value for name, value in chosen.items() if chance.random() < 0.25}


def _refused(pool: Pool, chance: random.Random) -> Iterator[Call]:
    """Ask what is wrong, with the id of something that may be isolated in it."""
    target, session = chance.choice(pool.ids), chance.choice(pool.sessions)
    yield Call(Sort.QUERY, "node", "query ($id: ID!) { node(id: $id) { nothing } }", {"id": target})
    yield Call(Sort.QUERY, "node", "query ($id: ID!) { node(id: $id) { id ", {"id": target})
    yield Call(Sort.QUERY, "events", "query ($after: Cursor) { events(after: $after) { notes } }", {"after": target})
    yield Call(
        Sort.QUERY, "events", "query ($s: String) { events(session_id: $s, first: 0) { notes } }", {"s": session}
    )
    yield Call(Sort.TOOL, "search", "", {"query": target, "limit": 51})
    yield Call(Sort.TOOL, "nav", "", {"nav": "cd", "target": f"{target}9"})
    changed = "subscription ($root: String!) { lineage_changed(root: $root, depth: 99) { position } }"
    yield Call(Sort.SUBSCRIPTION, "lineage_changed", changed, {"root": target})
    captured = "subscription ($s: String) { events_captured(after: 0, session_id: $s) { position } }"
    yield Call(Sort.SUBSCRIPTION, "events_captured", captured, {"s": f"{session}x"})


# What is asked of a field: everything, and of nodes further in than `depth` their ids. The arguments of fields inside
# are variables, so that a document is checked once.

_Arguments = dict[str, tuple[str, str, GraphQLArgument]]  # by variable: field, name, argument


def _document(sort: Sort, name: str) -> str:
    return _whole(sort, name)[0]


def _inner(sort: Sort, name: str, pool: Pool, chance: random.Random) -> dict[str, object]:
    return _chosen(_whole(sort, name)[1], pool, chance)


@lru_cache
def _whole(sort: Sort, name: str) -> tuple[str, _Arguments]:
    field = _root(sort).fields[name]
    inner: _Arguments = {}
    selection = _selection(field.type, 1, inner)
    outer = {argument: _declared(one) for argument, one in field.args.items()}
    declared = {**outer, **{variable: _declared(one) for variable, (_, _, one) in inner.items()}}
    head = ", ".join(f"${variable}: {kind}" for variable, kind in declared.items())
    arguments = ", ".join(f"{argument}: ${argument}" for argument in field.args)
    return (
        f"{sort} {f'({head}) ' if head else ''}{{ {name}{f'({arguments})' if arguments else ''} {selection} }}",
        inner,
    )


@lru_cache
def _node(kind: GraphQLObjectType) -> tuple[str, _Arguments]:
    inner: _Arguments = {}
    selection = _fields(kind, 1, inner)
    head = "".join(f", ${variable}: {_declared(one)}" for variable, (_, _, one) in inner.items())
    return f"query ($id: ID!{head}) {{ node(id: $id) {{ __typename id ... on {kind.name} {selection} }} }}", inner


def _declared(argument: GraphQLArgument) -> str:
    """Write the type of a variable; what has a default may be left out."""
    return str(argument.type if _mandatory(argument) else get_nullable_type(argument.type))


def _mandatory(argument: GraphQLArgument) -> bool:
    has_default = argument.default is not None or argument.default_value is not Undefined
    return is_non_null_type(argument.type) and not has_default


def _chosen(arguments: _Arguments, pool: Pool, chance: random.Random) -> dict[str, object]:
    chosen: dict[str, object] = {}
    for variable, (field, name, argument) in arguments.items():
        value = _value(field, name, argument)
        if name == "first":
            chosen[variable] = _ENOUGH
        elif value is not None and chance.random() < 0.1:
            chosen[variable] = value(pool, chance)
    return chosen


def _value(field: str, name: str, argument: GraphQLArgument) -> Value | None:
    kind = get_named_type(argument.type)
    found = VALUES.get(f"{field}.{name}") or VALUES.get(name) or VALUES.get(kind.name)
    if found is not None or not isinstance(kind, GraphQLEnumType):
        return found
    words = list(kind.values)
    if is_list_type(get_nullable_type(argument.type)):
        return lambda _, chance: chance.sample(words, min(len(words), 2))
    return _one_of(*words)


def _selection(kind: object, depth: int, arguments: _Arguments) -> str:
    named = get_named_type(kind)  # type: ignore[call-overload]  # of whatever kind the type is
    if isinstance(named, GraphQLObjectType):
        return _fields(named, depth, arguments)
    if isinstance(named, GraphQLInterfaceType):
        return "{ __typename id }"
    if isinstance(named, GraphQLUnionType):
        members = (f"... on {one.name} {_selection(one, depth, arguments)}" for one in named.types)
        return f"{{ __typename {' '.join(members)} }}"
    return ""


def _fields(kind: GraphQLObjectType, depth: int, arguments: _Arguments) -> str:
    inside = depth - any(one.name == "Node" for one in kind.interfaces)
    if inside < 0:
        return "{ id }"
    parts = []
    for name, field in kind.fields.items():
        if f"{kind.name}.{name}" in ECHO | TIMING:
            continue
        given = []
        for argument, one in field.args.items():
            variable = f"{kind.name}_{name}_{argument}"
            arguments[variable] = (name, argument, one)
            given.append(f"{argument}: ${variable}")
        parts.append(f"{name}{f'({chr(44).join(given)})' if given else ''} {_selection(field.type, inside, arguments)}")
    return f"{{ {' '.join(parts)} }}"


def _kind(target: str) -> GraphQLObjectType:
    """Return the type of the node that an id names."""
    kinds = {one.name.lower(): one for one in sdl().get_possible_types(_node_type())}
    return kinds.get(target.partition("-")[0], kinds["isolated"])


def _node_type() -> GraphQLInterfaceType:
    kind = sdl().type_map["Node"]
    if not isinstance(kind, GraphQLInterfaceType):
        raise TypeError("Node is an interface")
    return kind


def _objects() -> Iterator[GraphQLObjectType]:
    """Return the types of answers."""
    roots = {sdl().query_type, sdl().mutation_type, sdl().subscription_type}
    for kind in sdl().type_map.values():
        if isinstance(kind, GraphQLObjectType) and kind not in roots and not kind.name.startswith("__"):
            yield kind


def _root(sort: Sort) -> GraphQLObjectType:
    root = sdl().subscription_type if sort is Sort.SUBSCRIPTION else sdl().query_type
    if root is None:
        raise TypeError("the schema has queries and subscriptions")
    return root

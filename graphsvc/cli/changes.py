"""What changed between two GraphQL schemas: what graphql-core finds, and what it does not look for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    get_named_type,
)
from graphql.error import GraphQLError
from graphql.type import is_required_argument, is_required_input_field
from graphql.utilities import find_schema_changes

from graphsvc.errors import InvalidInput

CLASSES: Final = {"BreakingChangeType": "breaking", "DangerousChangeType": "dangerous", "SafeChangeType": "safe"}
_TOLD: Final = re.compile(r"@?\w+(?:\.\w+(?:\(\w+:\))?)?")  # Type, Type.field, Type.field(argument:)


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `deprecated`: what it takes away was marked as going, so nobody is surprised."""

    effect: str  # breaking, dangerous or safe
    change: str
    deprecated: bool = False

    @property
    def breaks(self) -> bool:
        return self.effect == "breaking" and not self.deprecated


def changes(old: str, new: str) -> list[Change]:
    """Return what changed from one SDL to another, the worst first; descriptions aside."""
    before, after = _read(old), _read(new)
    going = _going(before)
    found = [
        (CLASSES[type(one.type).__name__], one.description)
        for one in find_schema_changes(before, after)
        if one.type.name != "DESCRIPTION_CHANGED"
    ]
    found += _unseen(before, after)
    order = list(CLASSES.values())
    return sorted(
        (Change(effect, text, effect == "breaking" and _excused(text, going)) for effect, text in dict.fromkeys(found)),
        key=lambda one: (order.index(one.effect), one.deprecated, one.change),
    )


def _read(sdl: str) -> GraphQLSchema:
    try:
        return build_schema(sdl)
    except (GraphQLError, TypeError, ValueError) as error:
        raise InvalidInput("diff", f"no schema: {str(error).splitlines()[0][:200]}", "a file of SDL") from None


def _unseen(before: GraphQLSchema, after: GraphQLSchema) -> Iterator[tuple[str, str]]:
    """Yield what graphql-core passes over."""
    for name in ("query", "mutation", "subscription"):
        old, new = getattr(before, f"{name}_type"), getattr(after, f"{name}_type")
        if old is not None and (new is None or new.name != old.name):
            yield "breaking", f"{old.name} is not the root of {name} any more."
    for name, new in after.type_map.items():
        old = before.type_map.get(name)
        if old is None:
            interfaces = new.interfaces if isinstance(new, GraphQLObjectType) else ()
            for interface in interfaces:
                if interface.name in before.type_map:
                    yield "dangerous", f"{name} is a new type of interface {interface.name}."
        else:
            yield from _required(old, new)
    was, will = dict(_deprecated(before)), dict(_deprecated(after))
    for place, reason in will.items():
        if place not in was:
            yield "safe", f"{place} is deprecated: {reason}"
    for place in was:
        if place not in will and _exists(after, place):
            yield "safe", f"{place} is not deprecated any more."


def _required(old: GraphQLNamedType, new: GraphQLNamedType) -> Iterator[tuple[str, str]]:
    """Yield what may not be left out any more, because it lost its default value."""
    if isinstance(old, GraphQLInputObjectType) and isinstance(new, GraphQLInputObjectType):
        for name, given in old.fields.items():
            now = new.fields.get(name)
            if now is not None and is_required_input_field(now) and not is_required_input_field(given):
                yield "breaking", f"Field {new.name}.{name} became required."
    elif isinstance(old, GraphQLObjectType | GraphQLInterfaceType) and type(old) is type(new):
        for name, field in old.fields.items():
            args = new.fields[name].args if name in new.fields else {}
            for argument, given in field.args.items():
                if argument in args and is_required_argument(args[argument]) and not is_required_argument(given):
                    yield "breaking", f"Argument {new.name}.{name}({argument}:) became required."


def _deprecated(schema: GraphQLSchema) -> Iterator[tuple[str, str]]:
    """Yield the place of everything marked as deprecated, and the reason."""
    for kind in schema.type_map.values():
        if isinstance(kind, GraphQLEnumType):
            parts = {f"{kind.name}.{name}": value for name, value in kind.values.items()}
        elif isinstance(kind, GraphQLObjectType | GraphQLInterfaceType | GraphQLInputObjectType):
            parts = {f"{kind.name}.{name}": field for name, field in kind.fields.items()}
            for place, field in list(parts.items()):
                parts |= {f"{place}({name}:)": argument for name, argument in getattr(field, "args", {}).items()}
        else:
            continue
        yield from ((place, part.deprecation_reason) for place, part in parts.items() if part.deprecation_reason)


def _exists(schema: GraphQLSchema, place: str) -> bool:
    name, field, argument = re.fullmatch(r"(\w+)\.(\w+)(?:\((\w+):\))?", place).groups()  # type: ignore[union-attr]  # _deprecated wrote it
    kind = schema.type_map.get(name)
    parts = getattr(kind, "values", None) or getattr(kind, "fields", {})
    return field in parts and (argument is None or argument in parts[field].args)


def _going(schema: GraphQLSchema) -> set[str]:
    """Return the places that are deprecated, and the types that nothing else leads to."""
    places = dict(_deprecated(schema))
    reached: set[str] = set()
    waiting = [kind for kind in (schema.query_type, schema.mutation_type, schema.subscription_type) if kind]
    stack: list[GraphQLNamedType] = [
        *waiting,
        *(get_named_type(arg.type) for one in schema.directives for arg in one.args.values()),
    ]
    while stack:
        kind = stack.pop()
        if kind.name in reached:
            continue
        reached.add(kind.name)
        if isinstance(kind, GraphQLUnionType | GraphQLInterfaceType):
            stack += schema.get_possible_types(kind)
        stack += getattr(kind, "interfaces", ())
        for name, field in getattr(kind, "fields", {}).items():
            if f"{kind.name}.{name}" in places:
                continue
            stack.append(get_named_type(field.type))
            stack += [
                get_named_type(argument.type)
                for label, argument in getattr(field, "args", {}).items()
                if f"{kind.name}.{name}({label}:)" not in places
            ]
    return places.keys() | (schema.type_map.keys() - reached)


def _excused(text: str, going: set[str]) -> bool:
    """Say whether the sentence is about something that was deprecated: the first place it names, or what holds it."""
    told = [place for place in _TOLD.findall(text) if "." in place]
    place = told[0] if told else text.split()[0]
    return bool({place, place.partition("(")[0], place.partition(".")[0]} & going)

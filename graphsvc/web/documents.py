"""The project's own GraphQL documents, each with a name, its text and variables to try it with.

A document says which variables in a comment before its first line of GraphQL: `# variables: {"first": 5}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from graphsvc import resources

_MARK: Final = "# variables:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file below `queries/`. Its name is the path there: `tool/search`."""

    name: str
    text: str
    variables: Mapping[str, object] | None


def documents() -> list[Document]:
    """Return every document below `queries/`, by name."""
    return [
        Document(
            name=name.removeprefix("queries/").removesuffix(".graphql"), text=text, variables=variables(name, text)
        )
        for name in resources.names("queries", ".graphql")
        for text in [resources.text(name)]
    ]


def variables(name: str, text: str) -> Mapping[str, object] | None:
    """Return the example variables of a document, None when it gives none."""
    comments = takewhile(lambda line: line.startswith("#"), text.splitlines())
    given = [line.removeprefix(_MARK) for line in comments if line.startswith(_MARK)]
    if not given:
        return None
    if len(given) > 1:
        raise ValueError(f"{name} gives its variables twice")
    try:
        value = json.loads(given[0])
    except ValueError as error:
        raise ValueError(f"{name}: its variables are no JSON on one line: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{name}: its variables are no JSON object")  # noqa: TRY004 # what a file says, not a type
    return value

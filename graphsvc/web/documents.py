"""The project's own GraphQL documents, each with a name, what it is for, and variables to try it with.

A document says both in the comment it begins with: a sentence, and `# variables: {"first": 5}`.
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
    about: str
    text: str
    variables: Mapping[str, object] | None


def documents() -> list[Document]:
    """Return every document below `queries/`, by name; those of earlier releases are kept to be tested."""
    names = [name for name in resources.names("queries", ".graphql") if not name.startswith("queries/released/")]
    return [read(name.removeprefix("queries/").removesuffix(".graphql"), resources.text(name)) for name in names]


def read(name: str, text: str) -> Document:
    """Read what a document says about itself; raise ValueError for variables that are none."""
    comment = list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
    about = [line.removeprefix("#").strip() for line in comment if not line.startswith(_MARK)]
    given = [line.removeprefix(_MARK) for line in comment if line.startswith(_MARK)]
    if len(given) > 1:
        raise ValueError(f"{name} gives its variables twice")
    variables = _variables(name, given[0]) if given else None
    return Document(name=name, about=" ".join(about), text=text, variables=variables)


def _variables(name: str, given: str) -> Mapping[str, object]:
    try:
        value = json.loads(given)
    except ValueError as error:
        raise ValueError(f"{name}: its variables are no JSON on one line: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{name}: its variables are no JSON object")  # noqa: TRY004 # what a file says, not a type
    return value

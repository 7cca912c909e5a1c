"""What resolvers work with: who asks, over which connection; and how nodes beside each other read at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Generic, TypeVar, cast

import strawberry
from strawberry.types.arguments import StrawberryArgumentAnnotation

from graphsvc import errors
from graphsvc.clock import Clock
from graphsvc.graph.mirror import Mirror
from graphsvc.recall import scope
from graphsvc.recall.scope import Asker
from graphsvc.store.database import Connection
from graphsvc.store.visibility import NO_VIEWER, Viewer

NOBODY: Final = Viewer(project=0)  # of a project that is none: sees nothing
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a resolver works with: a connection of this thread, who asks, and the time."""

    db: Connection
    asker: Asker
    clock: Clock
    catch_up: bool = False  # index before a search; a service does that on its own
    mirror: Mirror | None = None  # of the graph; only a service keeps one
    begin_mirror: Callable[[], AbstractContextManager[Mirror]] | None = None  # for one answer, where none is kept


Info = strawberry.Info[Context, None]


@dataclass(frozen=True, slots=True)
class Sight:
    """What one viewer sees over one connection, and what to tell about it."""

    db: Connection
    viewer: Viewer
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beside(Generic[R]):
    """Rows that stand beside each other in an answer: what one of them asks for is read for all, in one statement."""

    sight: Sight
    rows: Sequence[R]
    _read: dict[Hashable, object] = field(default_factory=dict)

    def read(self, name: Hashable, load: Callable[[Sequence[R]], T]) -> T:
        """Return what `load` gives for all rows; it is called once a name."""
        if name not in self._read:
            self._read[name] = load(self.rows)
        return cast(T, self._read[name])


def argument(description: str, name: str | None = None) -> StrawberryArgumentAnnotation:
    """Describe an argument of a field; `name` when Python, or the library, means something else by it."""
    return strawberry.argument(description=description, name=name)


Project = Annotated[str | None, argument("Key of a project, or all. Only who is bound to no project may choose.")]


def sight(info: Info, project: str | None = None) -> Sight:
    """Resolve who asks about which project. What cannot be resolved sees nothing, and a note says why."""
    context = info.context
    try:
        viewer, notes = scope.resolve(context.db, context.asker, project or None)
    except scope.UnknownViewer:
        return Sight(context.db, NOBODY, (NO_VIEWER,))
    except errors.InvalidInput as error:
        return Sight(context.db, NOBODY, (str(error),))
    return Sight(context.db, viewer, tuple(notes))


def given(value: Any) -> Any:  # noqa: ANN401 # of whatever type the argument has
    """Return the value of an argument, None when it was left out."""
    return None if value is strawberry.UNSET else value

"""Pages of lists as Relay names them, and parts of texts."""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Generic, TypeVar

import strawberry
from strawberry import Private

from graphsvc.api.context import Sight, argument
from graphsvc.api.values import Cursor, Length, PageSize, write
from graphsvc.envelope import Long, Order
from graphsvc.store import lists

T = TypeVar("T")
R = TypeVar("R")


@strawberry.type(description="Whether a list goes on.")
class PageInfo:
    hasNextPage: bool = strawberry.field(description="Whether there are more.")  # noqa: N815 # Relay's name
    endCursor: Cursor | None = strawberry.field(description="Pass it as `after`.")  # noqa: N815


@strawberry.type(description="A node and its place in a list.")
class Edge(Generic[T]):
    node: T = strawberry.field(description="The node.")
    cursor: Cursor = strawberry.field(description="Pass it as `after` to go on behind this one.")


@strawberry.type(description="A page of a list.")
class Connection(Generic[T]):
    edges: list[Edge[T]] = strawberry.field(description="The nodes of this page.")
    pageInfo: PageInfo = strawberry.field(description="Whether and where the list goes on.")  # noqa: N815 # Relay's name
    notes: list[str] | None = strawberry.field(default=None, description="What the reader should know about the list.")
    counted: Private[Callable[[], int]] = lambda: 0

    @strawberry.field(description=f"How many there are in all, counted up to {lists.MOST_COUNTED}.")
    def totalCount(self) -> Long:  # noqa: N802 # Relay's name
        return Long(min(self.counted(), lists.MOST_COUNTED))

    @strawberry.field(description="Whether there are more than were counted.")
    def total_capped(self) -> bool:
        return self.counted() > lists.MOST_COUNTED


@strawberry.type(description="A part of a text, in characters.")
class Text:
    text: str = strawberry.field(description="The part that was asked for.")
    offset: Long = strawberry.field(description="Where it begins.")
    total: Long = strawberry.field(description="Characters of the whole text.")
    next_offset: Long | None = strawberry.field(description="Where the next part begins; null at the end.")


First = Annotated[PageSize, argument("Rows a page, 1 to 100.")]
After = Annotated[Cursor | None, argument("The endCursor of the page before.")]
ByTime = Annotated[Order, argument("By time.")]
Offset = Annotated[Long, argument("Where the part begins, in characters.")]
Characters = Annotated[Length, argument("Most characters of the part.")]
TWENTY: Final = PageSize(20)
FOUR_THOUSAND: Final = Length(4000)
START: Final = Long(0)


def connection(
    sight: Sight,
    rows: Sequence[tuple[lists.Place, R]],
    first: int,
    make: Callable[[Sight, Sequence[R]], Sequence[T]],
    counted: Callable[[], int],
    notes: Sequence[str] = (),
) -> Connection[T]:
    """Return a page of at most `first` of the rows, of which one more was read; `counted` is asked once at most."""
    made = make(sight, [row for _, row in rows[:first]])
    found = [Edge(node=node, cursor=write(at)) for node, (at, _) in zip(made, rows, strict=False)]
    return Connection(
        edges=found, pageInfo=page_info(found, len(rows) > first), notes=[*notes] or None, counted=_once(counted)
    )


def cut(text: str, offset: int, length: int) -> Text:
    """Return a part of a text; an offset outside of it gives an empty part."""
    start = min(max(offset, 0), len(text))
    end = min(start + length, len(text))
    return Text(
        text=text[start:end],
        offset=Long(start),
        total=Long(len(text)),
        next_offset=Long(end) if end < len(text) else None,
    )


def page_info(found: Sequence[Edge[T]], more: bool) -> PageInfo:
    return PageInfo(hasNextPage=more, endCursor=found[-1].cursor if found else None)


def _once(counted: Callable[[], int]) -> Callable[[], int]:
    known: list[int] = []

    def once() -> int:
        if not known:
            known.append(counted())
        return known[0]

    return once

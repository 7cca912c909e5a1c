"""Which nodes reach each other: Tarjan's algorithm, without recursion.

R. Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1 (1972).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def strongly_connected(after: Mapping[T, Iterable[T]], nodes: Sequence[T]) -> Iterator[list[T]]:
    """Yield the groups of two and more nodes that all lead to each other over `after`, in the order of `nodes`."""
    order = {node: place for place, node in enumerate(nodes)}
    groups = [sorted(group, key=order.__getitem__) for group in _components(after, nodes) if len(group) > 1]
    yield from sorted(groups, key=lambda group: order[group[0]])


def _components(after: Mapping[T, Iterable[T]], nodes: Iterable[T]) -> Iterator[list[T]]:
    number: dict[T, int] = {}
    low: dict[T, int] = {}
    path: list[T] = []
    on_path: set[T] = set()
    for root in nodes:
        if root in number:
            continue
        work = [(root, iter(after.get(root, ())))]
        number[root] = low[root] = len(number)
        path.append(root)
        on_path.add(root)
        while work:
            node, following = work[-1]
            for one in following:
                if one not in number:
                    number[one] = low[one] = len(number)
                    path.append(one)
                    on_path.add(one)
                    work.append((one, iter(after.get(one, ()))))
                    break
                if one in on_path:
                    low[node] = min(low[node], number[one])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    group: list[T] = []
                    while not group or group[-1] != node:
                        group.append(path.pop())
                        on_path.discard(group[-1])
                    yield group

"""`lineage_diff`: two walks at two moments, and what one has that the other has not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from strawberry import ID

from graphsvc.envelope import DateTime, Long
from graphsvc.errors import InvalidInput
from graphsvc.lineage.answer import Freshness, LineageDiff, Link, Reached, Reason, StatusStep, Truncation, Vertex
from graphsvc.lineage.walk import HARD, Asked, lineage, moment
from graphsvc.model import Direction, NodeType
from graphsvc.store import events, records
from graphsvc.store.database import Connection, snapshot
from graphsvc.store.edges.ends import there
from graphsvc.store.edges.walk import Filter, Key, latest
from graphsvc.store.visibility import Viewer

_NO_STATUS = frozenset({NodeType.SESSION, NodeType.EVENT, NodeType.ASSET})


def lineage_diff(
    db: Connection,
    viewer: Viewer,
    root: Key,
    *,
    before: str,
    after: str | None,
    direction: Direction = Direction.BOTH,
    depth: int = 3,
    chosen: Filter,
) -> LineageDiff:
    """Compare how things stood around a node; `after` left out means now. Raise InvalidInput, or NotFoundError."""
    begun = time.monotonic()
    with snapshot(db):
        since, until = moment(db, before, "from"), moment(db, after, "to")
        pairs = (since.position, until.position), (since.at, until.at)
        if any(early is not None and late is not None and early > late for early, late in pairs):  # type: ignore[operator]
            raise InvalidInput("from", f"{before} is behind {after}", "the earlier moment first")
        asked = Asked(direction=direction, depth=depth, chosen=chosen, budget=HARD)
        new = lineage(db, viewer, root, replace(asked, as_of=after))
        # What was not there yet had no lineage.
        was_there = there(db, viewer, root, since)
        old = lineage(db, viewer, root, replace(asked, as_of=before)) if was_there else None
        were, are = ({one.id: one for one in answer.nodes} if answer else {} for answer in (old, new))
        stood, stand = ({_key(one): one for one in answer.edges} if answer else {} for answer in (old, new))
        return LineageDiff(
            root=new.root,
            added_nodes=[_reached(one) for name, one in are.items() if name not in were],
            removed_nodes=[_reached(one) for name, one in were.items() if name not in are],
            added_edges=[one for key, one in stand.items() if key not in stood],
            removed_edges=[one for key, one in stood.items() if key not in stand],
            statuses=_steps(db, viewer, were | are, latest(since), latest(until)),
            partial=any(_cut(answer.truncation) for answer in (old, new) if answer),
            freshness=Freshness(
                engine="sqlite",
                ledger=Long(events.position(db)),
                graph=Long(events.position(db)),
                as_of=f"{before} to {after or 'now'}",
                elapsed_ms=round(1000 * (time.monotonic() - begun), 3),
            ),
        )


def _steps(
    db: Connection, viewer: Viewer, vertices: Mapping[ID, Vertex], since: tuple[int, str], until: tuple[int, str]
) -> list[StatusStep]:
    """List the status changes of records between the moments."""
    names = {int(name.rpartition("-")[2]): name for name, one in vertices.items() if one.type not in _NO_STATUS}
    steps: list[StatusStep] = []
    status: dict[int, str] = {}
    for number, event, at, to in records.steps(db, viewer, names):
        if (event > since[0] or at > since[1]) and event <= until[0] and at <= until[1]:
            name, by = ID(names[number]), ID(f"event-{event}")
            steps.append(StatusStep(id=name, before=status.get(number), to=to, at=DateTime(at), event=by))
        status[number] = to
    return steps


def _cut(truncation: Truncation) -> bool:
    return any(one is not Reason.DEPTH for one in truncation.reasons)


def _key(one: Link) -> tuple[str, str, str, int]:
    return one.type, one.source, one.target, one.begin_event


def _reached(one: Vertex) -> Reached:
    return Reached(id=one.id, type=one.type, label=one.label, status=one.status, at=one.at, depth=one.depth)

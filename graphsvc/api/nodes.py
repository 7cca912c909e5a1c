"""The nodes of the GraphQL API: sessions, events, assets, records and the edges between them.

A nested field is read for all nodes beside each other at once (`context.Beside`), so a page costs a fixed number of
statements. What the viewer may not see of a node's surroundings is left out, and `hidden` says that something was.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, TypeVar

import strawberry
from strawberry import UNSET, Private
from strawberry.scalars import JSON

from graphsvc import model
from graphsvc.api.context import Beside, Sight, argument, given
from graphsvc.api.pages import (
    FOUR_THOUSAND,
    START,
    TWENTY,
    After,
    ByTime,
    Characters,
    Connection,
    Edge,
    First,
    Offset,
    Text,
    cut,
    page_info,
)
from graphsvc.api.values import (
    EDGE_TYPES,
    NODE_TYPES,
    AssetKind,
    CandidateStatus,
    Cursor,
    DateTime,
    DecisionStatus,
    EdgeCursor,
    FeedbackKind,
    FeedbackStatus,
    GoalStatus,
    TodoStatus,
    place,
    words,
    write,
)
from graphsvc.envelope import Long, Order
from graphsvc.model import Direction, EdgeType, EventKind, NodeType, Record, Stored, Version
from graphsvc.recall.targets import HIDDEN
from graphsvc.store import assets, events, lists, records, sessions
from graphsvc.store.assets import AssetRow
from graphsvc.store.edges import hop
from graphsvc.store.events import EventRow
from graphsvc.store.lists import Filter, Listed
from graphsvc.store.sessions import SessionRow

T = TypeVar("T")
R = TypeVar("R")


@strawberry.interface(description="Whatever has an id: a target of nav, and of every field that takes an id.")
class Node:
    id: strawberry.ID = strawberry.field(description="The id.")


@strawberry.type(description="Something that exists and that the asker may not see.")
class Isolated(Node):
    marker: str = strawberry.field(default=HIDDEN, description="The text that stands in its place.")


@strawberry.type(description="A relation between two nodes, with its beginning and its end.")
class LineageEdge:
    type: EdgeType = strawberry.field(description="What it says.")
    source: Node = strawberry.field(description="The node it is written from.")
    target: Node = strawberry.field(description="The node it is written to.")
    rule: str = strawberry.field(description="Why it was written.")
    confidence: str = strawberry.field(description="stated by a host or a person, or inferred.")
    begin_position: Long = strawberry.field(description="Ledger position of the event that began it.")
    begin_at: DateTime = strawberry.field(description="Time of that event.")
    end_position: Long | None = strawberry.field(description="Ledger position of the event that ended it.")
    end_at: DateTime | None = strawberry.field(description="Time of that event.")


@strawberry.type(description="A page of the edges of one node: standing ones first, ends that are events last.")
class LineageConnection(Connection[LineageEdge]):
    hides: Private[Callable[[], bool]] = lambda: False

    @strawberry.field(description="Whether there are edges whose other end the asker may not see.")
    def hidden(self) -> bool:
        return self.hides()


@strawberry.interface(description="A node that edges begin or end at.")
class Linked(Node):
    beside: Private[Beside[Any]]
    key: Private[tuple[NodeType, int]]

    @strawberry.field(description="The edges that begin or end here.")
    def lineage(
        self,
        direction: Annotated[Direction, argument("Towards causes, towards results, or both.")] = Direction.BOTH,
        types: Annotated[list[EdgeType] | None, argument("Only edges of these types.")] = UNSET,
        first: First = TWENTY,
        after: Annotated[EdgeCursor | None, argument("The endCursor of the page before.")] = UNSET,
    ) -> LineageConnection:
        chosen = hop.Filter(direction=direction, types=tuple(given(types) or ()), after=_edge_place(given(after)))
        return _lineage(self, chosen, first)


@strawberry.type(description="One conversation of an agent.")
class Session(Linked):
    row: Private[SessionRow]
    session_id: str = strawberry.field(description="The host's own id.")
    project: str = strawberry.field(description="Key of the project it belongs to.")
    host: str | None = strawberry.field(description="The agent's program.")
    title: str | None = strawberry.field(description="Title, when the host gave one, else the first words of its user.")
    parent: str | None = strawberry.field(description="The host's id of the session it came from.")
    relation: str | None = strawberry.field(description="How it came from it: resume, fork or delegation.")
    started_at: DateTime = strawberry.field(description="Time of its first event.")
    last_at: DateTime = strawberry.field(description="Time of its last event.")
    position: Long = strawberry.field(description="Ledger position of its last event.")
    ended: bool = strawberry.field(description="Whether the host said that it ended.")
    isolated: bool = strawberry.field(description="Whether what it captures now is isolated.")

    @strawberry.field(description="Its own events, newest first.")
    def events(
        self,
        kind: Annotated[list[EventKind] | None, argument("Only these kinds.")] = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
    ) -> Connection[Event]:
        return _of_session(self, lists.EVENTS, event_nodes, tuple(given(kind) or ()), (), order, first, given(after))

    @strawberry.field(description="The files it wrote, the newest version first.")
    def assets(
        self,
        kind: Annotated[list[AssetKind] | None, argument("Only these kinds of files.")] = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
    ) -> Connection[Asset]:
        listed = lists.assets_of(self.beside.sight.viewer, by_session=True)
        return _of_session(self, listed, asset_nodes, words(kind), (), order, first, given(after))

    @strawberry.field(description="The decisions recorded in it, newest first.")
    def decisions(
        self,
        status: Annotated[list[DecisionStatus] | None, argument("Only those that stand like this.")] = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
    ) -> Connection[Decision]:
        types = (NodeType.DECISION,)
        return _of_session(self, lists.RECORDS, decision_nodes, types, words(status), order, first, given(after))

    @strawberry.field(description="Its goals, newest first.")
    def goals(
        self,
        status: Annotated[list[GoalStatus] | None, argument("Only those that stand like this.")] = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
    ) -> Connection[Goal]:
        types = (NodeType.GOAL,)
        return _of_session(self, lists.RECORDS, goal_nodes, types, words(status), order, first, given(after))

    @strawberry.field(description="Its todos, newest first.")
    def todos(
        self,
        status: Annotated[list[TodoStatus] | None, argument("Only those that stand like this.")] = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
    ) -> Connection[Todo]:
        types = (NodeType.TODO,)
        return _of_session(self, lists.RECORDS, todo_nodes, types, words(status), order, first, given(after))


@strawberry.type(description="One row of the ledger: what was said, done or changed.")
class Event(Linked):
    row: Private[EventRow]
    position: Long = strawberry.field(description="Its place in the ledger: the number of its id.")
    project: str = strawberry.field(description="Key of the project.")
    session_id: str = strawberry.field(description="The host's id of the session.")
    seq: Long = strawberry.field(description="Its place in the session.")
    kind: EventKind = strawberry.field(description="What it is.")
    origin: str = strawberry.field(description="The host's own id of it.")
    ts: DateTime | None = strawberry.field(description="Time as the host gave it; null when it gave none.")
    at: DateTime = strawberry.field(description="The time it is ordered by.")
    received_at: DateTime = strawberry.field(description="When it was stored.")
    actor: str | None = strawberry.field(description="Agent or sub-agent.")
    isolated: bool = strawberry.field(description="Whether it was captured in isolation.")

    @strawberry.field(description="Its session.")
    def session(self) -> Session:
        return sessions_beside(self.beside)[self.row.session]

    @strawberry.field(description="Its text, or a part of it.")
    def body(self, offset: Offset = START, length: Characters = FOUR_THOUSAND) -> Text:
        return cut(_texts(self.beside)[self.row.id][0], offset, length)

    @strawberry.field(description="What the host said beside the text.")
    def meta(self) -> JSON:
        meta = _texts(self.beside)[self.row.id][1]
        if "title" in meta:
            meta = sessions_beside(self.beside)[self.row.session].row.tells(self.beside.sight.viewer, meta)
        return JSON(dict(meta))


@strawberry.type(description="A file that agents wrote, as its newest visible version stands.")
class Asset(Linked):
    row: Private[AssetRow]
    asset_id: Long = strawberry.field(description="The number of its id.")
    project: str = strawberry.field(description="Key of the project.")
    path: str = strawberry.field(description="Relative to the project, absolute elsewhere.")
    title: str = strawberry.field(description="First heading, else the file's name.")
    kind: AssetKind = strawberry.field(description="What sort of file it is.")
    updated_at: DateTime = strawberry.field(description="Time of its newest version.")
    ref: str | None = strawberry.field(description="Commit or pull request that covers that version.")
    version_count: Long = strawberry.field(description="How many versions there are.")

    @strawberry.field(description="What was written, newest first.")
    def versions(
        self, order: ByTime = Order.DESC, first: First = TWENTY, after: After = UNSET
    ) -> Connection[AssetVersion]:
        chosen = Filter(viewer=self.beside.sight.viewer, ascending=order is Order.ASC, after=place(given(after)))
        return _below(
            self.beside, self.row.key, lists.VERSIONS, version_nodes, chosen, "v.asset", lambda row: row.key, first
        )

    @strawberry.field(description="Its newest text that was captured whole, or a part of it; null when there is none.")
    def content(self, offset: Offset = START, length: Characters = FOUR_THOUSAND) -> Text | None:
        found = self.beside.read("content", self._contents).get(self.row.key)
        return None if found is None else cut(found, offset, length)

    def _contents(self, rows: Sequence[AssetRow]) -> Mapping[int, str]:
        return assets.contents(self.beside.sight.db, self.beside.sight.viewer, [row.key for row in rows])


@strawberry.type(description="One write of an asset.")
class AssetVersion(Node):
    row: Private[Version]
    beside: Private[Beside[Version]]
    at: DateTime = strawberry.field(description="When it was written.")
    title: str = strawberry.field(description="The file's title then.")
    hash: str | None = strawberry.field(description="SHA-256 of the whole text; null when only a part is known.")
    partial: bool = strawberry.field(description="Whether the events do not tell the whole text.")
    ref: str | None = strawberry.field(description="Commit or pull request that covers it.")

    @strawberry.field(description="The session that wrote it.")
    def session(self) -> Session:
        return sessions_beside(self.beside)[self.row.session]

    @strawberry.field(description="The tool call that wrote it.")
    def call(self) -> Event | None:
        calls = self.beside.read("calls", lambda rows: _events(self.beside.sight, [row.call for row in rows]))
        return calls.get(self.row.call) if self.row.call is not None else None

    @strawberry.field(description="Its text, or a part of it; null when only a part is known.")
    def content(self, offset: Offset = START, length: Characters = FOUR_THOUSAND) -> Text | None:
        db = self.beside.sight.db
        found = self.beside.read("content", lambda rows: assets.texts(db, [row.event for row in rows]))
        text = found.get(self.row.event)
        return None if text is None else cut(text, offset, length)


@strawberry.interface(description="A goal, decision, todo, candidate or piece of feedback.")
class Recorded(Linked):
    row: Private[Record]
    text: str = strawberry.field(description="What it says.")
    scope: str = strawberry.field(description="How far it holds: session, project or global.")
    at: DateTime = strawberry.field(description="When it was recorded.")
    version: Long = strawberry.field(
        description="Ledger position of its last change: pass it as if_version to change only what you saw."
    )

    @strawberry.field(description="When it was changed last.")
    def updated_at(self) -> DateTime:
        db = self.beside.sight.db
        changed = self.beside.read("changed", lambda rows: events.times(db, [row.changed_event for row in rows]))
        return DateTime(changed[self.row.changed_event])

    @strawberry.field(
        description="The session it was recorded in; null when that is of a project which is closed to who asks."
    )
    def session(self) -> Session | None:
        return sessions_beside(self.beside)[self.row.session] if self._open else None

    @strawberry.field(
        description="The event that recorded it; null when that is of a project which is closed to who asks."
    )
    def event(self) -> Event | None:
        if not self._open:
            return None
        sight = self.beside.sight
        return self.beside.read("event", lambda rows: _events(sight, [row.id for row in rows]))[self.row.id]

    @strawberry.field(description="How many events it stands on, whoever may see them.")
    def evidence_count(self) -> Long:
        return Long(len(self.row.evidence))

    @strawberry.field(description="The events it stands on, the first ones.")
    def evidence(self, first: First = TWENTY) -> list[Event]:
        sight = self.beside.sight
        found = self.beside.read(
            "evidence", lambda rows: _events(sight, [number for row in rows for number in row.evidence])
        )
        return [found[number] for number in self.row.evidence if number in found and self._open][:first]

    @property
    def _open(self) -> bool:
        """Whether more is shown than that it holds everywhere: of its project, or to whom all projects are open."""
        return self.beside.sight.viewer.reaches(self.row.project)


@strawberry.type(description="What was decided, and whether it still holds.")
class Decision(Recorded):
    status: DecisionStatus = strawberry.field(description="Where it stands.")

    @strawberry.field(description="The decision that replaced it.")
    def superseded_by(self) -> Decision | None:
        sight = self.beside.sight
        found = self.beside.read("by", lambda rows: _records(sight, [row.superseded_by for row in rows]))
        node = found.get(self.row.superseded_by) if self.row.superseded_by is not None else None
        return node if isinstance(node, Decision) else None

    @strawberry.field(description="The decisions that it replaced.")
    def supersedes(self) -> list[Decision]:
        found = self.beside.read("supersedes", self._replaced)
        return [node for node in found if node.row.superseded_by == self.row.id]

    def _replaced(self, rows: Sequence[Record]) -> list[Decision]:
        sight = self.beside.sight
        return decision_nodes(sight, records.superseded_by(sight.db, sight.viewer, [row.id for row in rows]))


@strawberry.type(description="What is to be reached.")
class Goal(Recorded):
    status: GoalStatus = strawberry.field(description="Where it stands.")


@strawberry.type(description="Pending work.")
class Todo(Recorded):
    status: TodoStatus = strawberry.field(description="Where it stands.")


@strawberry.type(description="What was said and may become a decision: binding only when it is promoted.")
class Candidate(Recorded):
    status: CandidateStatus = strawberry.field(description="Where it stands.")

    @strawberry.field(description="The decision it was promoted to.")
    def promoted_to(self) -> Decision | None:
        sight = self.beside.sight
        found = self.beside.read("to", lambda rows: _records(sight, [row.promoted_to for row in rows]))
        node = found.get(self.row.promoted_to) if self.row.promoted_to is not None else None
        return node if isinstance(node, Decision) else None


@strawberry.type(description="What a user prefers or corrected.")
class Feedback(Recorded):
    status: FeedbackStatus = strawberry.field(description="Whether it still holds.")
    kind: FeedbackKind | None = strawberry.field(description="What it is; null when the host did not say.")


def session_nodes(sight: Sight, rows: Sequence[SessionRow]) -> list[Session]:
    """Return sessions as nodes beside each other."""
    beside = Beside(sight, rows)
    return [
        Session(
            id=strawberry.ID(f"session-{row.session_id}"),
            beside=beside,
            key=(NodeType.SESSION, row.number),
            row=row,
            session_id=row.session_id,
            project=row.project_key,
            host=row.host,
            title=row.known_as(sight.viewer),
            parent=row.parent,
            relation=row.relation,
            started_at=DateTime(row.started_at),
            last_at=DateTime(row.last_at),
            position=Long(row.last_event),
            ended=row.ended,
            isolated=row.isolated,
        )
        for row in rows
    ]


def event_nodes(sight: Sight, rows: Sequence[EventRow]) -> list[Event]:
    """Return events as nodes beside each other."""
    beside = Beside(sight, rows)
    return [
        Event(
            id=strawberry.ID(f"event-{row.id}"),
            beside=beside,
            key=(NodeType.EVENT, row.id),
            row=row,
            position=Long(row.id),
            project=row.project_key,
            session_id=row.session_id,
            seq=Long(row.seq),
            kind=row.kind,
            origin=row.origin,
            ts=DateTime(row.ts) if row.ts else None,
            at=DateTime(row.at),
            received_at=DateTime(row.received_at),
            actor=row.actor,
            isolated=row.isolated,
        )
        for row in rows
    ]


def asset_nodes(sight: Sight, rows: Sequence[AssetRow]) -> list[Asset]:
    """Return assets as nodes beside each other."""
    beside = Beside(sight, rows)
    return [
        Asset(
            id=strawberry.ID(f"asset-{row.id}"),
            beside=beside,
            key=(NodeType.ASSET, row.key),
            row=row,
            asset_id=Long(row.id),
            project=row.project_key,
            path=row.path,
            title=row.title,
            kind=AssetKind(row.kind),
            updated_at=DateTime(row.at),
            ref=row.ref,
            version_count=Long(row.versions),
        )
        for row in rows
    ]


def version_nodes(sight: Sight, rows: Sequence[Version]) -> list[AssetVersion]:
    """Return versions as nodes beside each other."""
    beside = Beside(sight, rows)
    return [
        AssetVersion(
            id=strawberry.ID(f"event-{row.event}"),
            row=row,
            beside=beside,
            at=DateTime(row.at),
            title=row.title,
            hash=row.hash,
            partial=row.hash is None,
            ref=row.ref,
        )
        for row in rows
    ]


def decision_nodes(sight: Sight, rows: Sequence[Record]) -> list[Decision]:
    """Return decisions as nodes beside each other."""
    return [Decision(status=DecisionStatus(row.status), **common) for row, common in _common(sight, rows)]


def goal_nodes(sight: Sight, rows: Sequence[Record]) -> list[Goal]:
    """Return goals as nodes beside each other."""
    return [Goal(status=GoalStatus(row.status), **common) for row, common in _common(sight, rows)]


def todo_nodes(sight: Sight, rows: Sequence[Record]) -> list[Todo]:
    """Return todos as nodes beside each other."""
    return [Todo(status=TodoStatus(row.status), **common) for row, common in _common(sight, rows)]


def candidate_nodes(sight: Sight, rows: Sequence[Record]) -> list[Candidate]:
    """Return candidates as nodes beside each other."""
    return [Candidate(status=CandidateStatus(row.status), **common) for row, common in _common(sight, rows)]


def feedback_nodes(sight: Sight, rows: Sequence[Record]) -> list[Feedback]:
    """Return feedback as nodes beside each other."""
    return [
        Feedback(status=FeedbackStatus(row.status), kind=FeedbackKind(row.kind) if row.kind else None, **common)
        for row, common in _common(sight, rows)
    ]


RECORD_NODES: Final[Mapping[NodeType, Callable[[Sight, Sequence[Record]], Sequence[Recorded]]]] = {
    NodeType.DECISION: decision_nodes,
    NodeType.GOAL: goal_nodes,
    NodeType.TODO: todo_nodes,
    NodeType.CANDIDATE: candidate_nodes,
    NodeType.FEEDBACK: feedback_nodes,
}
TYPES: Final = (Session, Event, Asset, Decision, Goal, Todo, Candidate, Feedback, AssetVersion, Isolated)


def nodes(sight: Sight, keys: Iterable[tuple[NodeType, int]]) -> dict[tuple[NodeType, int], Node]:
    """Return the visible ones of these nodes by the store's keys, with one statement for each type."""
    wanted: dict[NodeType, list[int]] = {}
    for kind, number in keys:
        wanted.setdefault(kind, []).append(number)
    found: dict[tuple[NodeType, int], Node] = {}
    for kind, numbers in wanted.items():
        read: Mapping[int, Node]
        if kind is NodeType.SESSION:
            read = _sessions(sight, numbers)
        elif kind is NodeType.EVENT:
            read = _events(sight, numbers)
        elif kind is NodeType.ASSET:
            rows = assets.by_keys(sight.db, sight.viewer, numbers)
            read = {node.row.key: node for node in asset_nodes(sight, rows)}
        else:
            continue
        found |= {(kind, number): node for number, node in read.items()}
    numbers = [number for kind, several in wanted.items() if kind in RECORD_NODES for number in several]
    found |= {node.key: node for node in _records(sight, numbers).values()} if numbers else {}
    return found


def edge_node(edge: model.Edge, known: Mapping[tuple[NodeType, int], Node]) -> LineageEdge:
    """Return an edge as a node between two that are known."""
    source, target = _ends(edge)
    return LineageEdge(
        type=edge.type,
        source=known[source],
        target=known[target],
        rule=edge.rule,
        confidence=edge.confidence,
        begin_position=Long(edge.begin_event),
        begin_at=DateTime(edge.begin_at),
        end_position=Long(edge.end_event) if edge.end_event is not None else None,
        end_at=DateTime(edge.end_at) if edge.end_at is not None else None,
    )


def key_of(row: SessionRow | AssetRow | Record | Stored) -> tuple[NodeType, int]:
    """Return the store's key of what a target names."""
    if isinstance(row, SessionRow):
        return NodeType.SESSION, row.number
    if isinstance(row, AssetRow):
        return NodeType.ASSET, row.key
    return (row.type, row.id) if isinstance(row, Record) else (NodeType.EVENT, row.id)


def sessions_beside(beside: Beside[Any]) -> Mapping[int, Session]:
    """Return the sessions of all rows beside each other, by the store's numbers."""
    return beside.read("sessions", lambda rows: _sessions(beside.sight, {row.session for row in rows}))


def _common(sight: Sight, rows: Sequence[Record]) -> list[tuple[Record, dict[str, Any]]]:
    """Return what all records have in common, as the fields of `Recorded`."""
    beside = Beside(sight, rows)
    return [
        (
            row,
            {
                "id": strawberry.ID(f"{row.type}-{row.id}"),
                "beside": beside,
                "key": (row.type, row.id),
                "row": row,
                "text": row.text,
                "scope": row.scope,
                "at": DateTime(row.at),
                "version": Long(row.changed_event),
            },
        )
        for row in rows
    ]


def _sessions(sight: Sight, numbers: Iterable[int]) -> dict[int, Session]:
    return {node.row.number: node for node in session_nodes(sight, [*sessions.by_numbers(sight.db, numbers).values()])}


def _events(sight: Sight, numbers: Iterable[int | None]) -> dict[int, Event]:
    found = events.rows(sight.db, sight.viewer, [number for number in numbers if number is not None])
    return {node.row.id: node for node in event_nodes(sight, [*found.values()])}


def _records(sight: Sight, numbers: Iterable[int | None]) -> dict[int, Recorded]:
    rows = records.many(sight.db, sight.viewer, [number for number in numbers if number is not None])
    return {
        node.row.id: node
        for kind, make in RECORD_NODES.items()
        for node in make(sight, [row for row in rows if row.type is kind])
    }


def _texts(beside: Beside[EventRow]) -> Mapping[int, tuple[str, Mapping[str, object]]]:
    return beside.read("texts", lambda rows: events.texts(beside.sight.db, [row.id for row in rows]))


def _of_session(
    session: Session,
    listed: Listed[R],
    make: Callable[[Sight, Sequence[R]], Sequence[T]],
    types: tuple[str, ...],
    statuses: tuple[str, ...],
    order: Order,
    first: int,
    after: str | None,
) -> Connection[T]:
    """Return a list of a session; it is read for all sessions beside it."""
    chosen = Filter(
        viewer=session.beside.sight.viewer,
        types=types,
        statuses=statuses,
        ascending=order is Order.ASC,
        after=place(after),
    )
    return _below(
        session.beside, session.row.number, listed, make, chosen, listed.session, lambda row: row.number, first
    )


def _below(
    beside: Beside[Any],
    own: int,
    listed: Listed[R],
    make: Callable[[Sight, Sequence[R]], Sequence[T]],
    chosen: Filter,
    parent: str | None,
    key: Callable[[Any], int],
    first: int,
) -> Connection[T]:
    """Return what is listed below one of the rows beside each other: read, and made nodes, for all of them at once."""
    db, column = beside.sight.db, str(parent)
    # What is below a node that the viewer reached is of that node's project, whichever one lists are about.
    chosen = replace(chosen, viewer=replace(chosen.viewer, project=None))

    def load(rows: Sequence[Any]) -> Mapping[int, list[tuple[lists.Place, T]]]:
        found = lists.beside(db, listed, chosen, column, [key(row) for row in rows], first + 1)
        made = iter(make(beside.sight, [row for several in found.values() for _, row in several]))
        return {number: [(at, next(made)) for at, _ in several] for number, several in found.items()}

    def count(rows: Sequence[Any]) -> Mapping[int, int]:
        return lists.counts_beside(db, listed, chosen, column, [key(row) for row in rows])

    name = (listed.tables, chosen, first)
    rows = beside.read(name, load).get(own, [])
    counted = lambda: beside.read(("count", *name), count).get(own, 0)  # noqa: E731 # as short as its only use
    found = [Edge(node=node, cursor=write(at)) for at, node in rows[:first]]
    return Connection(edges=found, pageInfo=page_info(found, len(rows) > first), counted=counted)


def _lineage(node: Linked, chosen: hop.Filter, first: int) -> LineageConnection:
    """Return the edges of a node; they and their other ends are read for all nodes beside it."""
    beside, (kind, own) = node.beside, node.key
    sight = beside.sight

    def load(rows: Sequence[Any]) -> Mapping[int, list[tuple[hop.Place, LineageEdge]]]:
        found = hop.beside(sight.db, sight.viewer, kind, map(_number, rows), chosen, first + 1)
        ends = {end for several in found.values() for _, edge in several for end in _ends(edge)}
        known = nodes(sight, ends)
        return {
            number: [(at, edge_node(edge, known)) for at, edge in several if all(end in known for end in _ends(edge))]
            for number, several in found.items()
        }

    def count(rows: Sequence[Any]) -> Mapping[int, tuple[int, bool]]:
        return hop.counts_beside(sight.db, sight.viewer, kind, map(_number, rows), chosen)

    rows = beside.read(("lineage", chosen, first), load).get(own, [])

    def counted() -> tuple[int, bool]:
        return beside.read(("lineage count", chosen), count).get(own, (0, False))

    listed = [Edge(node=edge, cursor=_edge_cursor(at)) for at, edge in rows[:first]]
    return LineageConnection(
        edges=listed,
        pageInfo=page_info(listed, len(rows) > first),
        counted=lambda: counted()[0],
        hides=lambda: counted()[1],
    )


def _ends(edge: model.Edge) -> tuple[tuple[NodeType, int], tuple[NodeType, int]]:
    return (edge.src_type, edge.src), (edge.dst_type, edge.dst)


def _number(row: SessionRow | EventRow | AssetRow | Record) -> int:
    """Return the key that edges name a row by."""
    if isinstance(row, SessionRow):
        return row.number
    return row.key if isinstance(row, AssetRow) else row.id


def _edge_cursor(at: hop.Place) -> Cursor:
    is_event, ended, begin, kind, other_type, other = at
    names = EDGE_TYPES.index(EdgeType(kind)), NODE_TYPES.index(NodeType(other_type))
    return Cursor(".".join(map(str, (is_event, ended, begin, *names, other))))


def _edge_place(cursor: str | None) -> hop.Place | None:
    if cursor is None:
        return None
    is_event, ended, begin, kind, other_type, other = map(int, cursor.split("."))
    return is_event, ended, begin, EDGE_TYPES[kind], NODE_TYPES[other_type], other

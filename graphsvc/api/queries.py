"""What can be read over GraphQL: the tool's answers, lists, sums.

Names are the protocol's, in snake_case. An argument of the tool outside the contract is an `InvalidInput` of the union
and nothing found is an ordinary answer. Arguments of lists are checked by their scalars.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC as UTC_ZONE
from datetime import tzinfo
from enum import Enum
from typing import Annotated, Any, Final, TypeVar
from zoneinfo import ZoneInfo

import strawberry
from graphql import GraphQLError, parse
from strawberry import UNSET

from graphsvc import clock, errors
from graphsvc.api import cost, nodes, timeline
from graphsvc.api.context import Info, Project, Sight, argument, given, sight
from graphsvc.api.limits import LIMITS
from graphsvc.api.lineage.insights import InsightQuery
from graphsvc.api.lineage.origins import Origins
from graphsvc.api.lineage.walks import LineageQuery
from graphsvc.api.nodes import Asset, Candidate, Decision, Event, Feedback, Goal, Isolated, Node, Session, Todo
from graphsvc.api.pages import TWENTY, After, ByTime, Connection, First, connection
from graphsvc.api.privacy.sight import VisibilityQuery
from graphsvc.api.values import (
    MAX_IDS,
    AssetKind,
    CandidateStatus,
    Count,
    DateTime,
    DecisionStatus,
    Dimension,
    FeedbackStatus,
    GoalStatus,
    InvalidInput,
    Measure,
    Scope,
    SessionStatus,
    TimeZone,
    TodoStatus,
    count_list,
    place,
    words,
)
from graphsvc.envelope import Long, NavResult, NavVerb, Order, SearchKind, SearchResult
from graphsvc.graph import mirror as graph_mirror
from graphsvc.graph.mirror import Mirror
from graphsvc.model import EventKind, NodeType, Record, TokenKind
from graphsvc.recall import answer, index, search, targets
from graphsvc.recall.scope import Asker
from graphsvc.store import assets, counts, lists, sessions
from graphsvc.store.access.tokens import OWN
from graphsvc.store.lists import Filter, Listed
from graphsvc.store.visibility import Viewer

T = TypeVar("T", NavResult, SearchResult)
N = TypeVar("N")
R = TypeVar("R")

UTC: Final = TimeZone("UTC")
_MOST_WORDS: Final = 16

NavOutcome = Annotated[
    NavResult | InvalidInput,
    strawberry.union(
        "NavOutcome", description="The envelope, also of nothing found; or what is wrong with an argument."
    ),
]
SearchOutcome = Annotated[
    SearchResult | InvalidInput,
    strawberry.union("SearchOutcome", description="The results; or what is wrong with an argument."),
]


@strawberry.enum(graphql_name_from="value", description="How the mirror of the graph is.")
class GraphStatus(Enum):
    OK = "ok"
    BUILDING = "building"
    ABSENT = "absent"


@strawberry.type(description="The mirror that answers questions about the whole graph; the service keeps it.")
class GraphMirror:
    status: GraphStatus = strawberry.field(description="How it is.")
    position: Long = strawberry.field(description="Position of the ledger that it stands at; 0 while it is not ok.")
    lag: Long = strawberry.field(description="How many positions it is behind the ledger.")


strawberry.enum(
    TokenKind,
    graphql_name_from="value",
    description="What a token allows.\n\n| value | meaning |\n| --- | --- |\n| owner | everything |\n"
    "| capture | handing over events, and nothing that reads |\n| read | queries and subscriptions |",
)


@strawberry.type(description="Who asks, as the transport says: which token, and what it and the request are bound to.")
class Identity:
    kind: TokenKind = strawberry.field(description="What the token allows.")
    token: strawberry.ID | None = strawberry.field(
        description="Its id, such as token-3; null for the owner's own and where none was needed."
    )
    name: str | None = strawberry.field(description="What it is called.")
    project: str | None = strawberry.field(description="Key of the only project that is asked about; null for any.")
    session_id: str | None = strawberry.field(description="The session that asks; null when none does.")
    agent: str | None = strawberry.field(description="The agent it was given to.")
    expires_at: DateTime | None = strawberry.field(description="When it ends by itself.")


@strawberry.type(description="How much is kept, as far as the asker may see it.")
class Stats:
    projects: Long = strawberry.field(description="Projects.")
    sessions: Long = strawberry.field(description="Sessions.")
    events: Long = strawberry.field(description="Events in the ledger.")
    kinds: list[Count] = strawberry.field(description="Events by kind.")
    records: list[Count] = strawberry.field(description="Records by type and status, such as `decision active`.")
    assets: Long = strawberry.field(description="Files that agents wrote.")
    versions: Long = strawberry.field(description="Writes of those files.")
    edges: list[Count] = strawberry.field(description="Edges by type.")
    gaps: Long | None = strawberry.field(
        description="Lines of imported files that could not be read, in all projects; null to whom they are not open."
    )
    position: Long = strawberry.field(description="Position of the newest event, whoever may see it.")
    indexed: Long = strawberry.field(description="Position up to which the search index holds events.")
    graph: GraphMirror | None = strawberry.field(description="The mirror of the graph; null where no service runs.")
    notes: list[str] | None = strawberry.field(description="What the reader should know about it.")


@strawberry.type(description="A group of a sum.")
class Group:
    keys: list[str] = strawberry.field(description="What the group is, in the order of `by`; days and weeks as dates.")
    value: Long = strawberry.field(description="The sum over the group.")


@strawberry.type(description="A measure summed by groups.")
class Aggregate:
    groups: list[Group] = strawberry.field(description="The groups in order of their keys.")
    total: Long = strawberry.field(description="The sum over all of it, whatever is listed.")
    capped: bool = strawberry.field(description=f"Whether there are more than {counts.MOST_GROUPS} groups.")
    notes: list[str] | None = strawberry.field(description="What the reader should know about it.")


@strawberry.type(description="The most of something that may be asked for at once.")
class Limit:
    name: str = strawberry.field(description="Its name, as errors tell it.")
    most: Long = strawberry.field(description="How many.")
    what: str = strawberry.field(description="Of what.")
    advice: str = strawberry.field(description="What to do about more.")


@strawberry.type(description="What the document that asks for it costs; `limits` tells how much of each it may.")
class Cost:
    tokens: Long = strawberry.field(description="Tokens of the document.")
    depth: Long = strawberry.field(description="Fields below each other.")
    fields: Long = strawberry.field(description="Fields, with what fragments add.")
    aliases: Long = strawberry.field(description="Aliases.")
    nodes: Long = strawberry.field(description="Objects and thousands of characters that the answer may hold at most.")


Target = Annotated[str | None, argument("Node id, session id, number or document path; an id from an answer works.")]
Words = Annotated[str | None, argument("Words, an identifier, a path or a phrase.")]
OfKind = Annotated[SearchKind | None, argument("Only this kind of event or record.")]
OfSession = Annotated[str | None, argument("Only this session.")]
From = Annotated[str | None, argument("ISO 8601 time or date, inclusive.")]
To = Annotated[str | None, argument("ISO 8601 time or date, inclusive.")]
Sorted = Annotated[Order | None, argument("By time. Left out, a query is ordered by score, a listing newest first.")]
Rows = Annotated[int | None, argument("Most rows, 1 to 50; 20 when left out.")]
Budget = Annotated[Long | None, argument("Most tokens of the printed answer, 60 or more; 4000 when left out.")]
Resume = Annotated[str | None, argument("The cursor of the previous answer, with the same other arguments.")]


Status = "Only those that stand like this."
Query_ = Annotated[
    str | None, argument("Only what a search finds by every one of these words: talk, records and files.")
]
Since = Annotated[DateTime | None, argument("From this time or day on, inclusive; a day is one of UTC, or of `zone`.")]
Until = Annotated[DateTime | None, argument("Up to this time or day, inclusive; a day is one of UTC, or of `zone`.")]
UpdatedAfter = Annotated[
    DateTime | None, argument("Only what was stored or changed after this time, whenever its host says it was.")
]
InScope = Annotated[
    list[Scope] | None,
    argument("Only what holds that far; left out, without what holds in another session than the asker's only."),
]
SessionId = Annotated[str | None, argument("Only this session.")]


@strawberry.type(description="What can be read. Who asks comes from the transport, never from an argument.")
class Query(LineageQuery, InsightQuery, Origins, VisibilityQuery):
    @strawberry.field(description="Walk sessions, assets, events and records: ls, cd, cat, grep.")
    def nav(
        self,
        info: Info,
        verb: Annotated[NavVerb, argument("What to do at the target.")],
        target: Target = UNSET,
        query: Words = UNSET,
        session_id: OfSession = UNSET,
        kind: OfKind = UNSET,
        since: From = UNSET,
        until: To = UNSET,
        order: Sorted = UNSET,
        limit: Rows = UNSET,
        token_budget: Budget = UNSET,
        cursor: Resume = UNSET,
        project: Project = UNSET,
    ) -> NavOutcome:
        arguments = {
            "nav": verb, "target": target, "query": query, "session_id": session_id, "kind": kind, "since": since,
            "until": until, "order": order, "limit": limit, "token_budget": token_budget, "cursor": cursor,
            "project": project,
        }  # fmt: skip
        return _answer(info, NavResult, arguments)

    @strawberry.field(description="Find events and records by words and filters; without words, list what passes them.")
    def search(
        self,
        info: Info,
        query: Words = UNSET,
        kind: OfKind = UNSET,
        session_id: OfSession = UNSET,
        limit: Rows = UNSET,
        since: From = UNSET,
        until: To = UNSET,
        order: Sorted = UNSET,
        count_only: Annotated[bool | None, argument("The number of hits, no rows.")] = UNSET,
        token_budget: Budget = UNSET,
        cursor: Resume = UNSET,
        project: Project = UNSET,
    ) -> SearchOutcome:
        arguments = {
            "query": query, "kind": kind, "session_id": session_id, "limit": limit, "since": since, "until": until,
            "order": order, "count_only": count_only, "token_budget": token_budget, "cursor": cursor,
            "project": project,
        }  # fmt: skip
        return _answer(info, SearchResult, arguments)

    @strawberry.field(description="One node by its id; null when nothing is there, a marker when it is isolated.")
    def node(self, info: Info, id: Annotated[strawberry.ID, argument("A node id.")]) -> Node | None:  # noqa: A002 # Relay's name
        return _nodes(sight(info), [str(id)])[0]

    @strawberry.field(description="Nodes by their ids, in that order; null where nothing is.")
    def nodes(
        self, info: Info, ids: Annotated[list[strawberry.ID], argument(f"Node ids, at most {MAX_IDS}.")]
    ) -> list[Node | None]:
        if len(ids) > MAX_IDS:
            advice = f"More than {MAX_IDS} ids of nodes: ask in several smaller documents."
            raise GraphQLError(advice, extensions={"code": "TOO_EXPENSIVE", "limit": "ids", "most": MAX_IDS})
        return _nodes(sight(info), [str(one) for one in ids])

    @strawberry.field(description="Sessions, the most recently active first; `query` looks into titles and ids.")
    def sessions(
        self,
        info: Info,
        status: Annotated[list[SessionStatus] | None, argument(Status)] = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Session]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _list(info, asked, lists.SESSIONS, nodes.session_nodes, types=(), statuses=words(status))

    @strawberry.field(description="Events of the ledger, newest first.")
    def events(
        self,
        info: Info,
        kind: Annotated[list[EventKind] | None, argument("Only these kinds.")] = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Event]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _list(info, asked, lists.EVENTS, nodes.event_nodes, types=tuple(given(kind) or ()), statuses=())

    @strawberry.field(description="Files that agents wrote, the newest version first.")
    def assets(
        self,
        info: Info,
        kind: Annotated[list[AssetKind] | None, argument("Only these kinds of files.")] = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Asset]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _list(info, asked, _assets_of, nodes.asset_nodes, types=words(kind), statuses=())

    @strawberry.field(description="Decisions, newest first.")
    def decisions(
        self,
        info: Info,
        status: Annotated[list[DecisionStatus] | None, argument(Status)] = UNSET,
        scope: InScope = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Decision]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _records(info, asked, NodeType.DECISION, nodes.decision_nodes, status, scope)

    @strawberry.field(description="Goals, newest first.")
    def goals(
        self,
        info: Info,
        status: Annotated[list[GoalStatus] | None, argument(Status)] = UNSET,
        scope: InScope = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Goal]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _records(info, asked, NodeType.GOAL, nodes.goal_nodes, status, scope)

    @strawberry.field(description="Todos, newest first.")
    def todos(
        self,
        info: Info,
        status: Annotated[list[TodoStatus] | None, argument(Status)] = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Todo]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _records(info, asked, NodeType.TODO, nodes.todo_nodes, status)

    @strawberry.field(description="Candidates, newest first: what was said and may become a decision.")
    def candidates(
        self,
        info: Info,
        status: Annotated[list[CandidateStatus] | None, argument(Status)] = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Candidate]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _records(info, asked, NodeType.CANDIDATE, nodes.candidate_nodes, status)

    @strawberry.field(description="What users prefer and corrected, newest first.")
    def feedback(
        self,
        info: Info,
        status: Annotated[list[FeedbackStatus] | None, argument(Status)] = UNSET,
        scope: InScope = UNSET,
        query: Query_ = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        updated_after: UpdatedAfter = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[Feedback]:
        asked = _Asked(query, session_id, since, until, updated_after, order, first, after, project)
        return _records(info, asked, NodeType.FEEDBACK, nodes.feedback_nodes, status, scope)

    @strawberry.field(description="What happened, newest first: sessions, files, decisions, goals, todos, compactions.")
    def timeline(
        self,
        info: Info,
        about: Annotated[
            strawberry.ID | None, argument("Only what happened to this, or in this session: any target of nav.", "root")
        ] = UNSET,
        types: Annotated[list[NodeType] | None, argument("Only what happened to nodes of these types.")] = UNSET,
        session_id: SessionId = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        order: ByTime = Order.DESC,
        first: First = TWENTY,
        after: After = UNSET,
        project: Project = UNSET,
    ) -> Connection[timeline.TimelineEntry]:
        asked = _Asked(UNSET, session_id, since, until, UNSET, order, first, after, project)
        seen, chosen = _filter(info, asked)
        return timeline.page(seen, chosen, first, given(about), given(types))

    @strawberry.field(description="A measure summed by day, week, kind, host, session or tool.")
    def aggregate(
        self,
        info: Info,
        measure: Annotated[Measure, argument("What is summed.")],
        by: Annotated[list[Dimension] | None, argument("What to group by, in this order.")] = UNSET,
        since: Since = UNSET,
        until: Until = UNSET,
        zone: Annotated[TimeZone, argument("Whose days and weeks.")] = UTC,
        session_id: SessionId = UNSET,
        project: Project = UNSET,
    ) -> Aggregate:
        asked = _Asked(UNSET, session_id, since, until, UNSET, Order.ASC, TWENTY, UNSET, project)
        return _aggregate(info, asked, measure, list(dict.fromkeys(words(by))), zone)

    @strawberry.field(description="How much may be asked for at once.")
    def limits(self) -> list[Limit]:
        return [Limit(name=name, most=Long(one.most), what=one.what, advice=one.advice) for name, one in LIMITS.items()]

    @strawberry.field(description="Who asks. Any token may ask for this.")
    def whoami(self, info: Info) -> Identity:
        return _identity(info.context.asker)

    @strawberry.field(description="What this document costs.")
    def cost(self, info: Info) -> Cost:
        return _cost(info)

    @strawberry.field(description="How much is kept, as far as the asker may see it.")
    def stats(self, info: Info, project: Project = UNSET) -> Stats:
        return _stats(sight(info, given(project)), info.context.mirror)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all lists can be asked for."""

    query: str | None
    session_id: str | None
    since: str | None
    until: str | None
    updated_after: str | None
    order: Order
    first: int
    after: str | None
    project: str | None


def _answer(info: Info, kind: type[T], arguments: Mapping[str, object]) -> T | InvalidInput:
    wanted = {
        name: value.value if isinstance(value, Enum) else value
        for name, value in arguments.items()
        if given(value) is not None
    }
    context = info.context
    try:
        found = answer.answer(context.db, context.asker, wanted, catch_up=context.catch_up)
    except errors.InvalidInput as error:
        return InvalidInput(field=error.field, problem=error.problem, allowed=error.allowed, message=str(error))
    if not isinstance(found, kind):
        raise TypeError(f"{type(found).__name__} in place of {kind.__name__}")
    return found


def _filter(info: Info, asked: _Asked, zone: tzinfo = UTC_ZONE) -> tuple[Sight, Filter]:
    """Resolve what a list was asked for: whose it is, and which rows; a day is one of the zone."""
    seen = sight(info, given(asked.project))
    viewer = seen.viewer
    name, session = given(asked.session_id), None
    if name is not None:
        found = sessions.find(seen.db, viewer, name)
        if found is None:
            seen = replace(seen, notes=(*seen.notes, f"no session is known as {name[:200]!r}"))
        else:
            viewer = replace(viewer, project=found.project)
        session = found.number if found else 0
    since, until, updated = given(asked.since), given(asked.until), given(asked.updated_after)
    return replace(seen, viewer=viewer), Filter(
        viewer=viewer,
        after=place(given(asked.after)),
        ascending=asked.order is Order.ASC,
        since=clock.bound("since", since, end=False, zone=zone) if since else None,
        until=clock.bound("until", until, end=True, zone=zone) if until else None,
        updated_after=clock.bound("updated_after", updated, end=True) if updated else None,
        session=session,
    )


def _list(
    info: Info,
    asked: _Asked,
    listed: Listed[R] | Callable[[Viewer, Filter], Listed[R]],
    make: Callable[[Sight, Sequence[R]], Sequence[N]],
    *,
    types: tuple[str, ...],
    statuses: tuple[str, ...],
    scopes: tuple[str, ...] = (),
) -> Connection[N]:
    seen, chosen = _filter(info, asked)
    of = listed if isinstance(listed, Listed) else listed(seen.viewer, chosen)
    notes = seen.notes
    query = given(asked.query)
    if query is not None and query.strip():
        if of is lists.SESSIONS:
            asked_for = query.casefold().split()
            chosen = replace(chosen, words=tuple(asked_for[:_MOST_WORDS]))
            if len(asked_for) > _MOST_WORDS:
                notes = (*notes, f"only the first {_MOST_WORDS} words were looked for")
        else:
            if info.context.catch_up:
                index.catch_up(seen.db)
            among, bounded = search.matching(seen.db, seen.viewer, query)
            chosen, notes = replace(chosen, among=among), (*notes, *bounded)
    chosen = replace(chosen, types=types, statuses=statuses, scopes=scopes, holding=chosen.session is None)
    rows = lists.page(seen.db, of, chosen, asked.first + 1)
    return connection(seen, rows, asked.first, make, lambda: lists.count(seen.db, of, chosen), notes)


def _records(
    info: Info,
    asked: _Asked,
    kind: NodeType,
    make: Callable[[Sight, Sequence[Record]], Sequence[N]],
    status: object,
    scope: object = UNSET,
) -> Connection[N]:
    return _list(info, asked, lists.RECORDS, make, types=(kind,), statuses=words(status), scopes=words(scope))


def _nodes(seen: Sight, ids: Sequence[str]) -> list[Node | None]:
    """Find nodes by their ids; what is no id finds nothing."""
    # Events and records are read together; what is left may be isolated, of another project, or of another type.
    numbered = {name: key for name in ids if (key := targets.numbered(name)) is not None}
    read = nodes.nodes(seen, dict.fromkeys(numbered.values()))
    found: dict[str, Node] = {}
    for name, key in numbered.items():
        node = read.get(key)
        if isinstance(node, Event | nodes.Recorded) and seen.viewer.reaches(node.row.project):
            found[name] = node
    keys: dict[str, tuple[NodeType, int]] = {}
    for name in dict.fromkeys(one for one in ids if one not in found):
        target = targets.typed(seen.db, seen.viewer, name)
        if target is None:
            continue
        if target.node is None:
            found[name] = Isolated(id=strawberry.ID(name))
        else:
            keys[name] = nodes.key_of(target.node)
    read = nodes.nodes(seen, keys.values())
    found |= {name: read[key] for name, key in keys.items() if key in read}
    return [found.get(name) for name in ids]


def _aggregate(info: Info, asked: _Asked, measure: Measure, by: Sequence[str], zone: str) -> Aggregate:
    seen, chosen = _filter(info, asked, ZoneInfo(zone))
    summed = counts.aggregate(
        seen.db, seen.viewer, measure.value, by,
        since=chosen.since, until=chosen.until, zone=zone, session=chosen.session,
    )  # fmt: skip
    return Aggregate(
        groups=[Group(keys=[*keys], value=Long(value)) for keys, value in summed.groups],
        total=Long(summed.total),
        capped=summed.capped,
        notes=[*seen.notes] or None,
    )


def _identity(asker: Asker) -> Identity:
    token = asker.token
    return Identity(
        kind=token.kind,
        token=strawberry.ID(f"token-{token.id}") if token != OWN else None,
        name=token.name,
        project=asker.project if asker.project != "all" else None,
        session_id=asker.session_id,
        agent=token.agent,
        expires_at=DateTime(token.expires_at) if token.expires_at is not None else None,
    )


def _cost(info: Info) -> Cost:
    asked = info._raw_info  # the library's own has no document
    name = asked.operation.name.value if asked.operation.name else None
    source = asked.operation.loc.source if asked.operation.loc else ""
    spent = cost.measure(asked.schema, parse(source), name, info.variable_values)
    return Cost(**{field: Long(getattr(spent, field)) for field in ("tokens", "depth", "fields", "aliases", "nodes")})


def _stats(seen: Sight, mirror: Mirror | None) -> Stats:
    # Asked before the ledger is, which may go on meanwhile.
    status = mirror.status() if mirror is not None else None
    counted = asdict(counts.stats(seen.db, seen.viewer))
    fields: dict[str, Any] = {
        name: count_list(value) if isinstance(value, dict) else value for name, value in counted.items()
    }
    graph = _mirror(status, counted["position"]) if status is not None else None
    return Stats(**fields, graph=graph, notes=[*seen.notes] or None)


def _mirror(status: graph_mirror.Status, newest: int) -> GraphMirror:
    lag = Long(max(0, newest - status.position))
    return GraphMirror(status=GraphStatus(status.state), position=Long(status.position), lag=lag)


def _assets_of(viewer: Viewer, chosen: Filter) -> Listed[assets.AssetRow]:
    return lists.assets_of(viewer, by_session=chosen.session is not None)

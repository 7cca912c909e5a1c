"""What can be changed: each mutation is one statement of `memory.record`, or a batch of events.

Who states it comes from the transport. What can be wrong is a member of the outcome's union, never an error.
"""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import strawberry
from strawberry import UNSET

from graphsvc import errors, model
from graphsvc.api import batch
from graphsvc.api.context import Context, Info, Sight, argument, given
from graphsvc.api.nodes import (
    Asset,
    Candidate,
    Decision,
    Feedback,
    Goal,
    LineageEdge,
    Node,
    Session,
    Todo,
    edge_node,
    nodes,
)
from graphsvc.api.privacy.forget import ForgetMutation
from graphsvc.api.values import (
    AcrossIsolation,
    AssetKind,
    Conflict,
    FeedbackKind,
    InvalidInput,
    InvalidTransition,
    NotFound,
    Problem,
    Scope,
    problem,
)
from graphsvc.clock import Clock
from graphsvc.envelope import Long
from graphsvc.memory import named, paths, record
from graphsvc.memory.named import Named
from graphsvc.memory.record import Author, Change, Done
from graphsvc.model import NodeType
from graphsvc.recall import scope
from graphsvc.store import events
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

T = TypeVar("T")
N = TypeVar("N", bound=Node)


@strawberry.interface(description="A change that was made, or had been made before under the same client_mutation_id.")
class Changed:
    client_mutation_id: str | None = strawberry.field(description="As it was given.")
    position: Long = strawberry.field(description="Ledger position of the change.")
    duplicate: bool = strawberry.field(description="Whether it was there already, so that nothing was added.")


@strawberry.type(description="What became of a decision.")
class DecisionChanged(Changed):
    decision: Decision = strawberry.field(description="The decision as it stands now; of supersede, the new one.")
    superseded: Decision | None = strawberry.field(description="The decision that it replaced.")


@strawberry.type(description="What became of a candidate.")
class CandidateChanged(Changed):
    candidate: Candidate = strawberry.field(description="The candidate as it stands now.")
    decision: Decision | None = strawberry.field(description="The decision it was promoted to.")


@strawberry.type(description="What became of a goal.")
class GoalChanged(Changed):
    goal: Goal = strawberry.field(description="The goal as it stands now.")


@strawberry.type(description="What became of a todo.")
class TodoChanged(Changed):
    todo: Todo = strawberry.field(description="The todo as it stands now.")


@strawberry.type(description="What became of a piece of feedback.")
class FeedbackChanged(Changed):
    feedback: Feedback = strawberry.field(description="The feedback as it stands now.")


@strawberry.type(description="A file that is an asset now.")
class AssetRegistered(Changed):
    asset: Asset = strawberry.field(description="The asset.")


@strawberry.type(description="What became of an edge.")
class EdgeChanged(Changed):
    edge: LineageEdge = strawberry.field(description="The edge as it stands now.")
    closes_cycle: bool | None = strawberry.field(
        description="Of edge_add: whether its result leads back to its cause; null when there was too much to look at."
    )


@strawberry.type(description="What a session published of what it holds in isolation.")
class Published(Changed):
    events: list[strawberry.ID] = strawberry.field(description="The events that others see from now on.")
    shared: list[strawberry.ID] = strawberry.field(description="What was named and was seen by others before.")


@strawberry.type(description="A session whose isolation is as it was asked for.")
class IsolationSwitched(Changed):
    session: Session = strawberry.field(description="The session as it stands now.")


DecisionOutcome = Annotated[
    DecisionChanged | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("DecisionOutcome", description="What became of a decision, or why nothing was done."),
]
CandidateOutcome = Annotated[
    CandidateChanged | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("CandidateOutcome", description="What became of a candidate, or why nothing was done."),
]
GoalOutcome = Annotated[
    GoalChanged | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("GoalOutcome", description="What became of a goal, or why nothing was done."),
]
TodoOutcome = Annotated[
    TodoChanged | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("TodoOutcome", description="What became of a todo, or why nothing was done."),
]
FeedbackOutcome = Annotated[
    FeedbackChanged | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("FeedbackOutcome", description="What became of a piece of feedback, or why nothing was done."),
]
AssetOutcome = Annotated[
    AssetRegistered | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("AssetOutcome", description="The asset, or why nothing was done."),
]
EdgeOutcome = Annotated[
    EdgeChanged | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("EdgeOutcome", description="What became of an edge, or why nothing was done."),
]
PublishOutcome = Annotated[
    Published | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("PublishOutcome", description="What was published, or why nothing was."),
]
IsolationOutcome = Annotated[
    IsolationSwitched | InvalidInput | InvalidTransition | Conflict | AcrossIsolation | NotFound,
    strawberry.union("IsolationOutcome", description="The session, or why nothing was done."),
]


Words = Annotated[str, argument("What it says, in any language.")]
Evidence = Annotated[
    list[strawberry.ID] | None,
    argument("What it stands on: ids of events, assets or records, or paths. Left out, the event that records it."),
]
Reason = Annotated[str | None, argument("Why; kept with the event.")]
Version = Annotated[
    Long | None, argument("The version that was read: when the record has another one by now, nothing is done.")
]
HowFar = Annotated[
    Scope | None,
    argument("How far it holds: the project when left out; the session it is filed under; or, by the owner, all."),
]
InProject = Annotated[
    str | None, argument("Key of the project of what is new; left out, the viewer's, else the folder's.")
]
InSession = Annotated[
    str | None, argument("The session to file it under; left out, the viewer's, else one of graphsvc's own.")
]
Once = Annotated[
    str | None, argument("An id of the caller's: the same change under the same id, in the same session, is made once.")
]
ADecision = Annotated[strawberry.ID, argument("The decision, such as decision-41.")]
ACandidate = Annotated[strawberry.ID, argument("The candidate, such as candidate-30.")]
AGoal = Annotated[strawberry.ID, argument("The goal, such as goal-9.")]
ATodo = Annotated[strawberry.ID, argument("The todo, such as todo-7.")]
SomeFeedback = Annotated[strawberry.ID, argument("The feedback, such as feedback-5.")]
EdgeType = Annotated[model.EdgeType, argument("What the edge says.")]
Source = Annotated[strawberry.ID, argument("The node it leads from: an id, or the path of a document.")]
Target = Annotated[strawberry.ID, argument("The node it leads to: an id, or the path of a document.")]


# Each outcome may be null: what fails in one field must not hide what the others of the document have done.
@strawberry.type(description="What can be written. Who writes comes from the transport, never from an argument.")
class Mutation(ForgetMutation):
    @strawberry.mutation(
        description="Store events in one transaction. Replaying them adds nothing. A viewer hands over its own only."
    )
    def capture(
        self, info: Info, events: Annotated[list[batch.EventInput], argument("The events, oldest first.")]
    ) -> batch.CaptureOutcome | None:
        return batch.store(info.context, events)

    @strawberry.mutation(description="Record a decision that holds from now on.")
    def decision_record(
        self,
        info: Info,
        text: Words,
        evidence: Evidence = UNSET,
        reason: Reason = UNSET,
        scope: HowFar = UNSET,
        project: InProject = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> DecisionOutcome | None:
        said = {"text": text, "evidence": evidence, "reason": reason, "scope": scope}
        return _decision(info, "record", said, _By(project, session_id, client_mutation_id))

    @strawberry.mutation(description="Record a decision that is only proposed: decision_activate makes it hold.")
    def decision_propose(
        self,
        info: Info,
        text: Words,
        evidence: Evidence = UNSET,
        reason: Reason = UNSET,
        scope: HowFar = UNSET,
        project: InProject = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> DecisionOutcome | None:
        said = {"text": text, "evidence": evidence, "reason": reason, "scope": scope}
        return _decision(info, "propose", said, _By(project, session_id, client_mutation_id))

    @strawberry.mutation(description="Make a proposed decision hold.")
    def decision_activate(
        self,
        info: Info,
        id: ADecision,  # noqa: A002 # Relay's name
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> DecisionOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _decision(info, "activate", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="Replace a decision by another one, which holds from now on; the old one is kept.")
    def decision_supersede(
        self,
        info: Info,
        id: ADecision,  # noqa: A002
        text: Words,
        evidence: Evidence = UNSET,
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> DecisionOutcome | None:
        said = {"target": id, "text": text, "evidence": evidence, "reason": reason, "if_version": if_version}
        return _decision(info, "supersede", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="End a decision without another one in its place.")
    def decision_revoke(
        self,
        info: Info,
        id: ADecision,  # noqa: A002
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> DecisionOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _decision(info, "revoke", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="Note what may become a decision; nothing is bound by it until it is promoted.")
    def candidate_add(
        self,
        info: Info,
        text: Words,
        evidence: Evidence = UNSET,
        project: InProject = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> CandidateOutcome | None:
        said = {"text": text, "evidence": evidence}
        return _candidate(info, "record", said, _By(project, session_id, client_mutation_id))

    @strawberry.mutation(description="Make a candidate a decision, with its evidence.")
    def candidate_promote(
        self,
        info: Info,
        id: ACandidate,  # noqa: A002
        text: Annotated[str | None, argument("The corrected text; left out, the candidate's own.")] = UNSET,
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> CandidateOutcome | None:
        said = {"target": id, "text": text, "reason": reason, "if_version": if_version}
        return _candidate(info, "promote", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="Say that a candidate is no decision.")
    def candidate_reject(
        self,
        info: Info,
        id: ACandidate,  # noqa: A002
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> CandidateOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _candidate(info, "reject", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="State what is to be reached.")
    def goal_add(
        self,
        info: Info,
        text: Words,
        evidence: Evidence = UNSET,
        scope: HowFar = UNSET,
        project: InProject = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> GoalOutcome | None:
        said = {"text": text, "evidence": evidence, "scope": scope}
        return _goal(info, "record", said, _By(project, session_id, client_mutation_id))

    @strawberry.mutation(description="Say that a goal is reached.")
    def goal_complete(
        self,
        info: Info,
        id: AGoal,  # noqa: A002
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> GoalOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _goal(info, "complete", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="Give a goal up.")
    def goal_drop(
        self,
        info: Info,
        id: AGoal,  # noqa: A002
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> GoalOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _goal(info, "drop", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="Note pending work.")
    def todo_add(
        self,
        info: Info,
        text: Words,
        basis: Annotated[strawberry.ID | None, argument("The goal, decision or asset it follows from.")] = UNSET,
        project: InProject = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> TodoOutcome | None:
        return _todo(info, "record", {"text": text, "basis": basis}, _By(project, session_id, client_mutation_id))

    @strawberry.mutation(description="Say that a todo is done.")
    def todo_done(
        self,
        info: Info,
        id: ATodo,  # noqa: A002
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> TodoOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _todo(info, "finish", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="Give a todo up.")
    def todo_drop(
        self,
        info: Info,
        id: ATodo,  # noqa: A002
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> TodoOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _todo(info, "drop", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(description="Keep what a user prefers or corrected.")
    def feedback_add(
        self,
        info: Info,
        text: Words,
        kind: Annotated[
            FeedbackKind, argument("A preference, or the correction of a mistake.")
        ] = FeedbackKind.PREFERENCE,
        evidence: Evidence = UNSET,
        scope: HowFar = UNSET,
        project: InProject = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> FeedbackOutcome | None:
        said = {"text": text, "kind": kind, "evidence": evidence, "scope": scope}
        return _feedback(info, "record", said, _By(project, session_id, client_mutation_id))

    @strawberry.mutation(description="Say that feedback holds no longer.")
    def feedback_revoke(
        self,
        info: Info,
        id: SomeFeedback,  # noqa: A002
        reason: Reason = UNSET,
        if_version: Version = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> FeedbackOutcome | None:
        said = {"target": id, "reason": reason, "if_version": if_version}
        return _feedback(info, "revoke", said, _By(None, session_id, client_mutation_id))

    @strawberry.mutation(
        description="Say that a file is an asset. One that is known keeps what it holds; the session produces it too."
    )
    def asset_register(
        self,
        info: Info,
        path: Annotated[str, argument("Path of the file: absolute, or relative to the folder or the project.")],
        title: Annotated[str | None, argument("Title of a file that is not known yet.")] = UNSET,
        kind: Annotated[
            AssetKind | None, argument("Kind of a file that is not known yet; left out, by the path.")
        ] = UNSET,
        project: InProject = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> AssetOutcome | None:
        return _asset(info, path, given(title), given(kind), _By(project, session_id, client_mutation_id))

    @strawberry.mutation(description="Draw an edge between two nodes of one project; one that stands is left as it is.")
    def edge_add(
        self,
        info: Info,
        type: EdgeType,  # noqa: A002 # the word of the protocol
        source: Source,
        target: Target,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> EdgeOutcome | None:
        ends = record.Link(type=type, source=source, target=target)
        return _edge(
            info, _By(None, session_id, client_mutation_id), lambda db, by, now: record.link(db, by, ends, now=now)
        )

    @strawberry.mutation(description="End an edge. It stays, with its beginning and its end, until it is drawn again.")
    def edge_retract(
        self,
        info: Info,
        type: EdgeType,  # noqa: A002
        source: Source,
        target: Target,
        reason: Reason = UNSET,
        session_id: InSession = UNSET,
        client_mutation_id: Once = UNSET,
    ) -> EdgeOutcome | None:
        ends = record.Link(type=type, source=source, target=target)
        why = given(reason)
        return _edge(
            info,
            _By(None, session_id, client_mutation_id),
            lambda db, by, now: record.unlink(db, by, ends, reason=why, now=now),
        )

    @strawberry.mutation(
        description="Show others what the viewer's session holds in isolation: what is named, and nothing beside it."
    )
    def publish(
        self,
        info: Info,
        ids: Annotated[
            list[strawberry.ID],
            argument(f"Events, records, or assets for the versions it wrote; at most {record.MAX_PUBLISHED}."),
        ],
        client_mutation_id: Once = UNSET,
    ) -> PublishOutcome | None:
        return _publish(info, ids, _By(None, None, client_mutation_id))

    @strawberry.mutation(description="Isolate what a session says from now on, or share it. What it said before stays.")
    def isolate(
        self,
        info: Info,
        session_id: Annotated[strawberry.ID, argument("The session; a viewer switches itself only.")],
        on: Annotated[bool, argument("Whether it is isolated.")],
        client_mutation_id: Once = UNSET,
    ) -> IsolationOutcome | None:
        return _isolate(info, session_id, on, _By(None, None, client_mutation_id))


@dataclass(frozen=True, slots=True)
class _By:
    """What a mutation says of who states it, as it was given."""

    project: str | None
    session_id: str | None
    mutation_id: str | None


def _decision(info: Info, action: str, said: Mapping[str, Any], by: _By) -> DecisionOutcome:
    return _change(
        info, NodeType.DECISION, action, said, by, lambda made: DecisionChanged(
            **made.common, decision=made.node(Decision), superseded=made.other(Decision)
        )
    )  # fmt: skip


def _candidate(info: Info, action: str, said: Mapping[str, Any], by: _By) -> CandidateOutcome:
    return _change(
        info, NodeType.CANDIDATE, action, said, by, lambda made: CandidateChanged(
            **made.common, candidate=made.node(Candidate), decision=made.other(Decision)
        )
    )  # fmt: skip


def _goal(info: Info, action: str, said: Mapping[str, Any], by: _By) -> GoalOutcome:
    return _change(info, NodeType.GOAL, action, said, by, lambda made: GoalChanged(**made.common, goal=made.node(Goal)))


def _todo(info: Info, action: str, said: Mapping[str, Any], by: _By) -> TodoOutcome:
    return _change(info, NodeType.TODO, action, said, by, lambda made: TodoChanged(**made.common, todo=made.node(Todo)))


def _feedback(info: Info, action: str, said: Mapping[str, Any], by: _By) -> FeedbackOutcome:
    return _change(
        info, NodeType.FEEDBACK, action, said, by, lambda made: FeedbackChanged(
            **made.common, feedback=made.node(Feedback)
        )
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Made:
    """What was done, and the nodes to show of it."""

    sight: Sight
    done: Done
    common: Mapping[str, Any]

    def node(self, kind: type[N]) -> N:
        """Return the node that was changed."""
        return _shown(self.sight, kind, self.done.node)

    def other(self, kind: type[N]) -> N | None:
        """Return the other node that took part, if there is one."""
        return _shown(self.sight, kind, self.done.other) if self.done.other is not None else None


def _change(
    info: Info, kind: NodeType, action: str, said: Mapping[str, Any], by: _By, payload: Callable[[_Made], T]
) -> T | Problem:
    """Take one step with a record, and return its payload or the problem."""
    found = {name: given(value) for name, value in said.items()}
    known = {
        name: value.value if isinstance(value, Enum) else value for name, value in found.items() if value is not None
    }

    def state(author: Author) -> T:
        step = Change(type=kind, action=action, **known)
        done = record.change(info.context.db, author, step, now=info.context.clock)
        return payload(_made(info, author, done))

    return _stated(info, by, state)


def _asset(info: Info, path: str, title: str | None, kind: AssetKind | None, by: _By) -> AssetOutcome:
    context = info.context

    def state(author: Author) -> AssetRegistered:
        done = record.register(
            context.db,
            author,
            path,
            cwd=context.asker.cwd,
            title=title,
            kind=kind.value if kind is not None else None,
            now=context.clock,
        )
        made = _made(info, author, done)
        return AssetRegistered(**made.common, asset=made.node(Asset))

    return _stated(info, by, state)


def _edge(info: Info, by: _By, draw: Callable[[Connection, Author, Clock], record.Linked]) -> EdgeOutcome:
    context = info.context

    def state(author: Author) -> EdgeChanged:
        done = draw(context.db, author, context.clock)
        ends = nodes(Sight(context.db, author.viewer), [(end.type, end.key) for end in (done.source, done.target)])
        common = _common(author, done.position, duplicate=done.duplicate)
        return EdgeChanged(**common, edge=edge_node(done.edge, ends), closes_cycle=done.closes_cycle)

    return _stated(info, by, state)


def _publish(info: Info, ids: Sequence[strawberry.ID], by: _By) -> PublishOutcome:
    context = info.context

    def state(author: Author) -> Published:
        done = record.publish(context.db, author, [str(one) for one in ids], now=context.clock)
        common = _common(author, done.position, duplicate=done.duplicate)
        shown = [strawberry.ID(f"event-{number}") for number in done.events]
        return Published(**common, events=shown, shared=[strawberry.ID(one) for one in done.shared])

    return _stated(info, by, state)


def _isolate(info: Info, session_id: strawberry.ID, on: bool, by: _By) -> IsolationOutcome:
    context = info.context

    def state(author: Author) -> IsolationSwitched:
        done = record.isolate(context.db, author, str(session_id), on=on, now=context.clock)
        common = _common(author, done.position, duplicate=done.duplicate)
        return IsolationSwitched(**common, session=_shown(Sight(context.db, author.viewer), Session, done.session))

    return _stated(info, by, state)


def _stated(info: Info, by: _By, state: Callable[[Author], T]) -> T | Problem:
    """State something as who asks; what is wrong with it is an answer."""
    try:
        return state(_author(info.context, by))
    except errors.GraphsvcError as error:
        return problem(error)


def _author(context: Context, by: _By) -> Author:
    """Say who states something: the viewer, and where it belongs when the viewer does not tell."""
    asker, project = context.asker, given(by.project) or None
    chosen = project or asker.project
    if chosen:
        named.check_text("project", chosen, model.MAX_PATH)
    folder = paths.project_of(asker.cwd) if asker.cwd else None
    key: str | None = None
    try:
        viewer, _ = scope.resolve(context.db, asker, project)
    except errors.InvalidInput:
        # A folder that nothing was recorded in yet is a project as good as any; a key that is misspelt is not.
        if chosen is None or asker.session_id is not None or not asker.owner or not _folder(chosen):
            raise
        viewer, key = Viewer(everywhere=True), paths.project_of(chosen)
    if chosen not in {None, "all"} and viewer.project is not None:
        key = events.project_key(context.db, viewer.project)
    return Author(
        viewer=viewer,
        session_id=given(by.session_id) or None,
        project=key,
        folder=folder,
        mutation_id=given(by.mutation_id),
    )


def _folder(name: str) -> bool:
    return Path(name).is_absolute() and os.path.isdir(name)  # noqa: PTH112 # Path's raises for what it may not look at


def _made(info: Info, author: Author, done: Done) -> _Made:
    sight = Sight(info.context.db, author.viewer)
    return _Made(sight, done, _common(author, done.position, duplicate=done.duplicate))


def _common(author: Author, position: int, *, duplicate: bool) -> dict[str, Any]:
    return {"client_mutation_id": author.mutation_id, "position": Long(position), "duplicate": duplicate}


def _shown(sight: Sight, kind: type[N], found: Named) -> N:
    node = nodes(sight, [(found.type, found.key)]).get((found.type, found.key))
    if not isinstance(node, kind):
        raise TypeError(f"{found.id} is {type(node).__name__} in place of {kind.__name__}")
    return node

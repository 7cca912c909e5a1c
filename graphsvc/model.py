"""The words of the protocol as types: what is captured, and what follows from it.

An `Event` is what a host hands over. A `Stored` event is its place in the ledger. Everything else is a row that
`memory.apply` computes from stored events: dropping all of them and applying the ledger again gives them back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class EventKind(StrEnum):
    """What an event is. The first five are talk, the next three are records the protocol names."""

    USER_MESSAGE = "user_message"
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    COMPACT_CHECKPOINT = "compact_checkpoint"
    GOAL = "goal"
    DECISION = "decision"
    FEEDBACK = "feedback"
    SESSION_START = "session_start"
    SESSION_END = "session_end"
    ASSET = "asset"
    TODO = "todo"
    CANDIDATE = "candidate"
    EDGE = "edge"
    ISOLATION = "isolation"
    PUBLISH = "publish"
    INJECTION = "injection"
    RAW = "raw"  # an unknown record or a thinking block: kept, never searched
    FORGET = "forget"


class TokenKind(StrEnum):
    """What a token allows: everything; handing over events, and nothing that reads; or reading, and nothing else."""

    OWNER = "owner"
    CAPTURE = "capture"
    READ = "read"


# The cursor of a list: the place of a row as (microseconds since the year 1, event).
CURSOR: Final = re.compile(r"[0-9]{1,18}\.[0-9]{1,18}")
# Characters of what names an event: ids and origins, and paths.
MAX_NAME: Final = 1024
MAX_PATH: Final = 4096
MAX_OURS: Final = 4 * MAX_NAME  # an origin of ours holds a session id and an origin

# The values of the tool's `kind` parameter (protocol §2.1).
PROTOCOL_KINDS: Final = (
    EventKind.USER_MESSAGE,
    EventKind.ASSISTANT_MESSAGE,
    EventKind.TOOL_CALL,
    EventKind.TOOL_RESULT,
    EventKind.COMPACT_CHECKPOINT,
    EventKind.GOAL,
    EventKind.DECISION,
    EventKind.FEEDBACK,
)
# What `kind` takes beyond them: the other things an answer shows.
ASKED_KINDS: Final = (*PROTOCOL_KINDS, EventKind.CANDIDATE, EventKind.TODO, EventKind.ASSET)
TALK_KINDS: Final = PROTOCOL_KINDS[:5]
RECORD_KINDS: Final = (
    EventKind.GOAL,
    EventKind.DECISION,
    EventKind.FEEDBACK,
    EventKind.CANDIDATE,
    EventKind.TODO,
)


class EdgeType(StrEnum):
    """The five relations of the protocol (§3). Upstream means towards causes."""

    PRODUCES = "produces"
    REFERENCES = "references"
    EVIDENCE = "evidence"
    PRECEDES = "precedes"
    NEXT_STEP = "next_step"


# These run from cause to result; the others are written from what depends to what it depends on.
CAUSE_FIRST: Final = frozenset({EdgeType.PRODUCES, EdgeType.PRECEDES, EdgeType.NEXT_STEP})


class Direction(StrEnum):
    """Where a walk goes: upstream to causes, downstream to what came of something."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    BOTH = "both"


class NodeType(StrEnum):
    """What an id can name: `decision-41`, `asset-12`, `session-<host id>`."""

    SESSION = "session"
    EVENT = "event"
    ASSET = "asset"
    GOAL = "goal"
    DECISION = "decision"
    FEEDBACK = "feedback"
    CANDIDATE = "candidate"
    TODO = "todo"


# Which ends an edge of a type may have, whether a rule or a person draws it (source, target).
EDGES: Final[dict[EdgeType, frozenset[tuple[NodeType, NodeType]]]] = {
    EdgeType.PRODUCES: frozenset({(NodeType.SESSION, NodeType.ASSET)}),
    EdgeType.REFERENCES: frozenset(
        {(NodeType.ASSET, NodeType.EVENT), (NodeType.ASSET, NodeType.ASSET), (NodeType.EVENT, NodeType.ASSET)}
    ),
    EdgeType.EVIDENCE: frozenset(
        {(NodeType.DECISION, NodeType.EVENT), (NodeType.DECISION, NodeType.ASSET), (NodeType.EVENT, NodeType.EVENT)}
    ),
    EdgeType.PRECEDES: frozenset(
        {
            (NodeType.DECISION, NodeType.DECISION),
            (NodeType.SESSION, NodeType.SESSION),
            (NodeType.EVENT, NodeType.EVENT),
        }
    ),
    EdgeType.NEXT_STEP: frozenset(
        {(NodeType.GOAL, NodeType.TODO), (NodeType.DECISION, NodeType.TODO), (NodeType.ASSET, NodeType.TODO)}
    ),
}
FEEDBACK_KINDS: Final = ("preference", "correction")
ASSET_KINDS: Final = ("document", "report", "code", "other")
OWN_HOST: Final = "graphsvc"  # the host of what is recorded outside of any agent's session


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What only a ledger knows of an event that it holds. Everything that followed from that event is an entry too."""

    received_at: str
    isolated: bool
    at: str | None = None  # the time it is ordered by, when the host gave none


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One conversation event as a host or an importer hands it over, before it has a place in the ledger.

    `meta` holds JSON values only. What derivation reads from it, by kind:
    tool_call: `tool_name`, `tool_use_id`, `file_path`; tool_result: the same, `is_error`, and `original_file` (the text
    before an edit, whole, when the host says it); compact_checkpoint: `trigger`, `replaces` (origins); session_start:
    `host`, `parent` (session id), `relation` (resume, fork, delegation); any kind: `host`, `title` (of the session),
    `message_id`.
    """

    session_id: str
    kind: EventKind
    origin: str  # stable across replays: the host's own id for this message
    body: str
    ts: str | None = None  # UTC, `2026-11-30T09:26:36.611000Z`; None when the host gave none
    project: str | None = None  # the project's key, when the sender states it
    cwd: str | None = None
    actor: str | None = None  # agent or sub-agent
    meta: Mapping[str, object] = field(default_factory=dict)
    ledger: Entry | None = None  # its place in a ledger that held it before


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An event in the ledger. `session` and `project` are the store's integer keys."""

    id: int
    project: int
    session: int
    session_id: str
    seq: int
    kind: EventKind
    origin: str
    body: str
    ts: str | None
    at: str  # `ts`, or the time the event is ordered by when the host gave none
    received_at: str
    actor: str | None
    meta: Mapping[str, object]
    isolated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What is known of a session: the switch, its host, where it came from."""

    session: int
    host: str | None = None
    title: str | None = None
    cwd: str | None = None
    parent: str | None = None  # the host's id; that session may arrive later, or never
    relation: str | None = None
    started_at: str | None = None  # by the host's times
    last_at: str | None = None
    last_event: int = 0
    ended: bool = False
    isolated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """An event of one session that another one contains too (resume and fork copies)."""

    session: int
    event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """An event that only the sessions containing it may see. Publishing removes the row."""

    event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An event that stopped being hidden."""

    event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A version that a commit or a pull request took."""

    event: int
    ref: str
    ref_event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """Which event a `tool_use_id` of a session names, so that a result finds its call."""

    session: int
    tool_use_id: str
    event: int
    result: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A goal, decision, feedback, candidate or todo. Its number is the id of the event that created it."""

    id: int
    type: NodeType
    project: int
    session: int
    status: str
    text: str
    scope: str = "project"
    key: str | None = None  # the host's own id of it
    basis: str | None = None  # for a todo: the origin of what it came from
    kind: str | None = None  # of feedback: preference or correction, when it was said
    evidence: tuple[int, ...] = ()  # event ids
    superseded_by: int | None = None
    promoted_to: int | None = None  # the decision a candidate became
    at: str
    changed_event: int  # the event that set the present status
    changed_ts: str | None  # the host's time of it


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A status that a record has had, from the event that gave it on."""

    record: int
    event: int
    at: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file an agent wrote, one per project and path. Its number is the id of the event that registered it."""

    id: int
    project: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One write of an asset. Its number is the id of the asset event; order is by (at, event)."""

    event: int
    asset: int
    project: int
    session: int
    call: int | None  # the tool call that wrote it
    result: int | None  # what the host answered
    at: str
    kind: str  # one of ASSET_KINDS: of the asset, as the readers of this write know it
    title: str
    content: str | None  # whole text after this write; None when the events do not determine it
    hash: str | None  # sha256 of content
    ref: str | None = None  # commit or pull request that covers it
    ref_event: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A path that a node's text names or reads. It becomes an edge as soon as the path is registered."""

    project: int
    path: str
    src_type: NodeType
    src: int
    rule: str
    event: int
    at: str
    live: bool = True  # False: the newest text no longer names it


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A deterministic relation. Retraction sets its end; nothing deletes it."""

    type: EdgeType
    src_type: NodeType
    src: int
    dst_type: NodeType
    dst: int
    rule: str
    confidence: str = "stated"  # stated by the host, or inferred from shared records
    begin_event: int
    begin_at: str
    end_event: int | None = None
    end_at: str | None = None
    changed_event: int = 0  # the event that wrote it, which may be later than the one it begins with


Row = Session | Membership | Hidden | Published | Covered | ToolCall | Record | State | Asset | Version | Mention | Edge


@dataclass(frozen=True, slots=True)
class NodeId:
    """A parsed id. `key` is the number, or the host's id of a session."""

    type: NodeType
    key: str

    def __str__(self) -> str:
        return f"{self.type}-{self.key}"

    @property
    def number(self) -> int:
        return int(self.key)

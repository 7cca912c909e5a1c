"""Where a line of a file comes from: the edit, the words that asked for it, what was decided, the session."""

# A decorator of strawberry has no type:
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeVar

import strawberry
from strawberry import UNSET

from graphsvc import clock, errors
from graphsvc.api import nodes
from graphsvc.api.context import Info, Project, Sight, argument, given, sight
from graphsvc.api.nodes import Asset, AssetVersion, Candidate, Decision, Event, Session
from graphsvc.api.values import DateTime, InvalidInput
from graphsvc.envelope import Long
from graphsvc.lineage import blame, lines
from graphsvc.lineage.blame import Basis, Behind, Commit, Origin, Part
from graphsvc.model import MAX_PATH, NodeType, Record
from graphsvc.store import assets

N = TypeVar("N")

MAX_TEXT: Final = 500_000  # characters of a text that is sent
_HASH: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

strawberry.enum(
    blame.Confidence,
    name="LineConfidence",
    graphql_name_from="value",
    description="""How a line was found, the best first.

| value | meaning |
| --- | --- |
| content | the text is a captured version, byte for byte |
| commit | the line stands in a version that a session committed with this commit |
| text | the line stands in the captured version that the text was made from; white space aside |
| moved | the lines around it are the same as elsewhere: in another place of the file, or in another file |""",
)
strawberry.enum(
    Basis,
    name="LineBasis",
    graphql_name_from="value",
    description="What a record is to a line: it stands on the words that asked for it, on the edit,"
    " or it was decided before in the session.",
)


@strawberry.input(description=f"The text of a file, or a part of it around the line: at most {MAX_TEXT} characters.")
class FileText:
    text: str = strawberry.field(description="The text, with its line ends.")
    first_line: Long = strawberry.field(default=Long(1), description="The number of its first line in the file.")
    sha256: str | None = strawberry.field(
        default=UNSET, description="SHA-256 of the whole text in UTF-8, when this is a part of it."
    )


@strawberry.input(description="The commit that a line is from, as `git blame` tells it.")
class LineCommit:
    hash: str = strawberry.field(description="Its hash, whole.")
    committed_at: DateTime = strawberry.field(description="When it was committed: what was written later is not it.")
    path: str = strawberry.field(description="What the file was called in it, from the root of the repository.")
    line: Long = strawberry.field(description="The number of the line in it, from 1.")
    text: FileText | None = strawberry.field(default=UNSET, description="The file as it was committed.")


@strawberry.type(description="A decision behind a line.")
class LineDecision:
    basis: Basis = strawberry.field(description="What it is to the line.")
    decision: Decision = strawberry.field(description="The decision.")


@strawberry.type(description="A candidate behind a line: it was said, and binds nobody before it is promoted.")
class LineCandidate:
    basis: Basis = strawberry.field(description="What it is to the line.")
    candidate: Candidate = strawberry.field(description="The candidate.")


@strawberry.type(
    description="Where a line comes from, step by step. Without a version, no captured edit that the asker may see is"
    " known to have written it; what a shell command wrote is not captured."
)
class LineOrigin:
    line: str = strawberry.field(description="The line that was asked about.")
    confidence: blame.Confidence | None = strawberry.field(description="How it was found; null when it was not.")
    asset: Asset | None = strawberry.field(description="The file that the edit wrote.")
    version: AssetVersion | None = strawberry.field(description="The version of it that has the line first.")
    call: Event | None = strawberry.field(description="The tool call that wrote that version.")
    prompt: Event | None = strawberry.field(
        description="The words of the user before it; null when they are not known."
    )
    task: Event | None = strawberry.field(description="What a sub-agent was told, when it wrote the line.")
    decisions: list[LineDecision] = strawberry.field(
        description="What was decided, nearest first; at most 10 of a session."
    )
    candidates: list[LineCandidate] = strawberry.field(description="What was said and may become a decision.")
    session: Session | None = strawberry.field(description="The session that wrote it.")
    notes: list[str] | None = strawberry.field(description="What the reader should know about it.")


LineOutcome = Annotated[
    LineOrigin | InvalidInput,
    strawberry.union("LineOutcome", description="Where the line comes from; or what is wrong with an argument."),
]


@strawberry.type
class Origins:
    """The part of `Query` that asks about lines."""

    @strawberry.field(
        description="Where a line of a file comes from. Nothing is read from disk: the asker sends texts."
    )
    def line_origin(
        self,
        info: Info,
        path: Annotated[str, argument("Path of the file from the root of its repository.")],
        line: Annotated[Long, argument("The number of the line, from 1.")],
        text: Annotated[
            FileText | None, argument("The file as it is; left out, its newest text that was captured whole.")
        ] = UNSET,
        commit: Annotated[LineCommit | None, argument("The commit that the line is from.")] = UNSET,
        project: Project = UNSET,
    ) -> LineOutcome:
        seen = sight(info, given(project))
        try:
            stated = _sent("text", given(text))
            part = _part("text", path, line, stated) if stated is not None else _newest(seen, path, line)
            if part is None:
                note = f"no text of {path[:200]} was captured whole: send the text of the file"
                return _node(seen, Origin(line="", notes=(note,)))
            found = blame.origin(seen.db, seen.viewer, part, _commit(given(commit)))
        except errors.InvalidInput as error:
            return InvalidInput(field=error.field, problem=error.problem, allowed=error.allowed, message=str(error))
        return _node(seen, found)


def _sent(field: str, text: FileText | None) -> FileText | None:
    """Check the length of a text that was sent."""
    if text is not None and len(text.text) > MAX_TEXT:
        raise errors.InvalidInput(field, "is too long", f"at most {MAX_TEXT} characters around the line")
    return text


def _part(field: str, path: str, line: int, text: FileText) -> Part:
    """Check a text that was sent."""
    if not path or len(path) > MAX_PATH:
        raise errors.InvalidInput("path", "is none", f"1 to {MAX_PATH} characters")
    sha256 = given(text.sha256)
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise errors.InvalidInput(f"{field}.sha256", "is none", "64 digits, 0 to 9 and a to f")
    part = Part(path=path, line=line, text=text.text, first_line=text.first_line, sha256=sha256)
    count = len(lines.split(part.text))
    if part.first_line < 1 or not 0 <= part.place < count:
        last = part.first_line + count - 1
        raise errors.InvalidInput("line", f"the text has no line {line}", f"{part.first_line} to {last}")
    if part.first_line > 1 and sha256 is None:
        raise errors.InvalidInput(f"{field}.sha256", "is left out", "that of the whole text, with a part of it")
    return part


def _newest(seen: Sight, path: str, line: int) -> Part | None:
    """Return the newest captured text of the only file of that path."""
    named = assets.of_path(seen.db, seen.viewer, path)
    whole = assets.contents(seen.db, seen.viewer, [one.key for one in named])
    if len(whole) > 1:
        several = ", ".join(f"{one.project_key}: {one.path}" for one in named[:5])
        raise errors.InvalidInput("path", "several files go by it", f"with a project: {several}")
    return next((_part("line", path, line, FileText(text=text)) for text in whole.values()), None)


def _commit(stated: LineCommit | None) -> Commit | None:
    if stated is None:
        return None
    if not _HASH.fullmatch(stated.hash):
        raise errors.InvalidInput("commit.hash", "is none", "40 or 64 digits, 0 to 9 and a to f")
    text = _sent("commit.text", given(stated.text))
    part = _part("commit.text", stated.path, stated.line, text) if text is not None else None
    return Commit(hash=stated.hash, at=clock.bound("commit.committed_at", stated.committed_at, end=True), part=part)


def _node(seen: Sight, found: Origin) -> LineOrigin:
    """Return what was found as nodes."""
    version = found.version
    numbers = [version.call if version is not None else None, found.prompt, found.task]
    known = nodes.nodes(seen, [(NodeType.EVENT, number) for number in numbers if number is not None])
    call, prompt, task = (known.get((NodeType.EVENT, number)) if number is not None else None for number in numbers)
    [made] = nodes.version_nodes(seen, [version]) if version is not None else [None]
    return LineOrigin(
        line=found.line,
        confidence=found.confidence,
        asset=nodes.asset_nodes(seen, [found.asset])[0] if found.asset is not None else None,
        version=made,
        call=call if isinstance(call, Event) else None,
        prompt=prompt if isinstance(prompt, Event) else None,
        task=task if isinstance(task, Event) else None,
        decisions=[
            LineDecision(basis=basis, decision=node)
            for basis, node in zip(*_records(found.records, NodeType.DECISION, seen, nodes.decision_nodes), strict=True)
        ],
        candidates=[
            LineCandidate(basis=basis, candidate=node)
            for basis, node in zip(
                *_records(found.records, NodeType.CANDIDATE, seen, nodes.candidate_nodes), strict=True
            )
        ],
        session=nodes.sessions_beside(made.beside)[made.row.session] if made is not None else None,
        notes=[*seen.notes, *found.notes] or None,
    )


def _records(
    behind: Sequence[Behind], kind: NodeType, seen: Sight, make: Callable[[Sight, Sequence[Record]], Sequence[N]]
) -> tuple[list[Basis], Sequence[N]]:
    """Return the records of a type with what they are to the line."""
    rows = [one for one in behind if one.record.type is kind]
    return [one.basis for one in rows], make(seen, [one.record for one in rows])

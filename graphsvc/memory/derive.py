"""Pure rules from one event to the events it causes: `derive(event, view)`.

Used at capture only. What it returns is written behind its cause with the origin `rule:<cause origin>:<n>`; a replay of
the ledger meets those events again and derives nothing. The rules speak both languages; a decision never comes from a
rule, a stated one becomes a candidate (protocol §3).
"""

from __future__ import annotations

import fnmatch
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from graphsvc.memory import commits, paths, tools
from graphsvc.memory.apply import may_change
from graphsvc.model import Event, EventKind, NodeType, Record, Stored
from graphsvc.store.database import storable
from graphsvc.store.view import View

MAX_GOAL: Final = 200
MAX_TEXT: Final = 2000  # characters of a candidate, goal or todo by rule

# Whole messages, as `_command` writes them.
ISOLATE: Final = frozenset(
    {"/thread-iso", "隔离", "开始隔离", "进入隔离", "临时隔离", "静默", "免打扰", "别打扰", "isolate", "go private"}
)
SHARE: Final = frozenset({"/thread-uniso", "解除隔离", "退出隔离", "恢复共享", "unisolate", "go public"})
_MAX_PHRASE: Final = 40
# `/thread-pub dec 41,42`, `/thread-pub ast all`, `/thread-pub event-12 todo-7`.
_PUBLISH: Final = "/thread-pub"
_MAX_COMMAND: Final = 4_000
_MOST_PUBLISHED: Final = 1_000  # rows by one message; said again, it publishes the next ones
_SHORT: Final = {
    "ast": NodeType.ASSET,
    "dec": NodeType.DECISION,
    "fdb": NodeType.FEEDBACK,
    "gol": NodeType.GOAL,
    "evt": NodeType.EVENT,
    "tod": NodeType.TODO,
    "cnd": NodeType.CANDIDATE,
}
_ID: Final = re.compile(r"(?:([a-z]{1,9})-)?([0-9]{1,18})")

# A decision stated in the user's words. Questions, negations and what is decided by others or later are left out.
_DECIDED: Final = re.compile(
    r"\b(?:we(?:['’]ve| have)? (?:now )?decided|i(?:['’]ve| have)? decided|decision:"
    r"|(?:let['’]?s|let us|we(?:['’]ll| will)) (?:go|stick) with|we(?:['’]re| are) going with|go with option|settled on"
    r"|we agreed (?:on|to))"
    r"|决定(?![权性论书因者吗]|了吗|没)|(?<!成)就用(?!户)|就这么定|敲定|定下来|拍板|选定(?!的)|最终采用|确定用|确定采用|改为采用",
    re.IGNORECASE,
)
_UNDECIDED: Final = re.compile(
    r"(?:\b(?:not|never|before we|until we|once we|if we|whether|did we|have we|what|which|who|when|why|how)"
    r"|n['’]t)\b[^.!?。！？,，;；]{0,60}\b(?:decided|settled|agreed)\b"
    r"|n['’]t (?:go|stick) with|not (?:go|stick) with|\bno decision\b"
    r"|(?:没有?|尚未|未|待|等|由|谁|是否|如果|怎么|怎样|如何|什么时候|为什么|取|需要?|[你我他她]来|帮我|替我|做个?|这个|那个|该)"
    r"(?:再|去|最终|先|做|一起){0,2}(?:决定|敲定|定下来|拍板|选定)|(?:不|别)(?:要)?就用|不(?:要|用|能|想|会)?决定"
    r"|(?:决定|选定)[是不]",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[^.!?。！？\n]+(?:\.(?=\S)[^.!?。！？\n]+)*[.!?。！？]?")

# Imperatives that open a goal, in both languages.
_GOAL: Final = re.compile(
    r"^(?:(?:please|pls|now|then|also|next|ok(?:ay)?|let['’]?s|(?:can|could) you|help me(?: to)?"
    r"|请|麻烦|帮我|再帮我|接着|然后|再|现在|你来)[,，:：\s]*){0,3}"
    r"(?:(?:implement|fix|refactor|add|complete|finish|build|create|delete|remove|optimi[sz]e|upgrade|integrate|verify"
    r"|design|plan|develop|set up|write|tidy|clean up|deploy|migrate|split|merge|install|configure|generate|convert"
    r"|port|rename|replace|support|document|update|make|test)\b(?!\s*[:=(])"
    r"|(?:实现|修复|修正|重构|添加|新增|增加|完成|构建|创建|新建|删除|移除|优化|升级|集成|接入|验证(?!码)|设计(?!文档|图)"
    r"|规划|开发|搭建|编写|写[一个份段篇]|整理|部署|迁移|拆分|合并|安装|配置|生成|补充|更新|改造)"
    r"|把.{1,80}(?:实现|改成|改为|换成|移到|写到|拆|合并|删|加)|给.{1,60}(?:加上?|添加|补|写))",
    re.IGNORECASE,
)
# A sentence that begins like one and tells how things are.
_STATEMENT: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|fails?|failed|looks?|seems?|arrived|works?|worked|breaks?|broke)\b"
    r"|已(?:经)?完成|完成了|搞定了|做完了|修复了|失败|报错|出错|收不到|不见了|在哪|有问题|不行|不对|不了",
    re.IGNORECASE,
)
_OPENING: Final = 60  # characters in which a statement shows
_PULL: Final = re.compile(r"https?://[^\s\"'<>()]{3,300}/(?:pull|merge_requests)/\d{1,9}")

Derived = Iterator[Event]
# From an event, the call it answers without an error, and what was before.
Rule = Callable[[Stored, Stored | None, View], Derived]
TODO_STATES: Final = {
    "pending": "pending",
    "todo": "pending",
    "in_progress": "pending",
    "in-progress": "pending",
    "inprogress": "pending",
    "completed": "done",
    "complete": "done",
    "done": "done",
    "cancelled": "dropped",
    "canceled": "dropped",
    "deleted": "dropped",
    "dropped": "dropped",
}


def toggle(event: Event | Stored) -> str | None:
    """Return "on" or "off" when a user's whole message is an isolation phrase; it takes effect before it is stored."""
    text = _command(event, _MAX_PHRASE)
    if text in ISOLATE:
        return "on"
    return "off" if text in SHARE else None


def _command(event: Event | Stored, most: int) -> str:
    """Return a user's whole message as commands and phrases are compared; empty when it is longer than `most`.

    Case, full-width forms and the white space around and between words are no difference.
    """
    if event.kind is not EventKind.USER_MESSAGE or event.actor is not None:
        return ""
    text = event.body.strip()
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()) if len(text) <= most else ""


def derive(event: Stored, view: View) -> list[Event]:
    """Return the events that follow from this one, in order."""
    rules = _RULES.get(event.kind, ())
    answers = event.kind is EventKind.TOOL_RESULT and event.meta.get("is_error") is not True
    call = view.call_of(event) if answers else None
    return [
        Event(
            session_id=event.session_id,
            kind=made.kind,
            origin=f"rule:{event.origin}:{number}",
            body=made.body,
            ts=event.ts,
            actor=event.actor,
            meta={**made.meta, "cause": event.origin},
        )
        for number, made in enumerate(made for rule in rules for made in rule(event, call, view))
    ]


def _stated(event: Stored, _: Stored | None, __: View) -> Derived:
    """A decision in the user's words is a candidate with that message as its evidence."""
    if event.actor is not None:
        return
    seen = set()
    for match in _SENTENCE.finditer(event.body[:20_000]):
        sentence = match[0].strip()
        if sentence in seen or not _DECIDED.search(sentence) or _asks(sentence) or _UNDECIDED.search(sentence):
            continue
        seen.add(sentence)
        yield _made(event, EventKind.CANDIDATE, sentence[:MAX_TEXT], action="record", evidence=[event.origin])


def _asks(sentence: str) -> bool:
    """Say whether a sentence is a question, in either language."""
    text = sentence.rstrip()
    return text.endswith(("?", "？")) or text.rstrip("。.").rstrip().endswith(("吗", "呢", "么"))


def _goal(event: Stored, _: Stored | None, __: View) -> Derived:
    """A short imperative of the user is a goal."""
    text = event.body.strip()
    if event.actor is not None or len(text) > MAX_GOAL or "\n" in text or text.startswith(("/", "<", "[")):
        return
    if _GOAL.match(text) and not _asks(text) and not _STATEMENT.search(text[:_OPENING]):
        yield _made(event, EventKind.GOAL, text, action="record", evidence=[event.origin])


def _published(event: Stored, _: Stored | None, view: View) -> Derived:
    """`/thread-pub` with names publishes what the session holds in isolation, and nothing else."""
    command, *words = re.split(r"[\s,、]+", _command(event, _MAX_COMMAND).rstrip(" ,、"))
    if command != _PUBLISH or not words:
        return
    numbers = dict.fromkeys(number for number in _asked(event, view, words) if view.hidden(number))
    sources = [source for number in numbers if (source := view.event(number)) and source.session == event.session]
    if sources:
        origins = [source.origin for source in sources[:_MOST_PUBLISHED]]
        yield _made(event, EventKind.PUBLISH, "", action="publish", of=origins)


def _asked(event: Stored, view: View, words: list[str]) -> Iterator[int]:
    """Yield the events that the words behind `/thread-pub` name: ids, or of one type its numbers or all."""
    kind = _SHORT.get(words[0])
    if kind is not None and words[1:] == ["all"]:
        yield from view.isolated(event, kind)
        return
    for word in words[1:] if kind else words:
        match = _ID.fullmatch(word)
        if match and (match[1] is None or match[1] in list(NodeType)):
            of = NodeType(match[1]) if match[1] else kind or NodeType.EVENT
            yield from view.rows_of(event.session, of, int(match[2]))


def _assets(event: Stored, call: Stored | None, view: View) -> Derived:
    """A write tool that succeeded leaves a version of each file it wrote."""
    if call is None:
        return
    project = view.project_key(event.project)
    cwd = next((value for value in (call.meta.get("cwd"), event.meta.get("cwd")) if isinstance(value, str)), None)
    for path in tools.written(call, event):
        key = paths.key(project, cwd, path)
        action = "write" if view.written(event, key) else "register"
        yield _made(event, EventKind.ASSET, key, action=action, call=call.origin, path=path)


def _commits(event: Stored, call: Stored | None, view: View) -> Derived:
    """A `git commit` that succeeded covers the versions it took: those of its paths, or all that were not committed."""
    command = tools.command(call) if call else ""
    commit = commits.read(command, event.body) if "commit" in command else None
    if call is None or commit is None:
        return
    project, cwd = view.project_key(event.project), call.meta.get("cwd")
    folder = cwd if isinstance(cwd, str) else None
    versions = [path for _, path in view.uncommitted(event, everyone=not commit.staged)]
    if commit.paths is not None and not commit.staged:
        names = [paths.key(project, folder, name) for name in commit.paths]
        versions = [path for path in versions if any(_under(path, name) for name in names)]
    if covered := list(dict.fromkeys(versions)):
        said = f"commit {commit.hash} {commit.subject}"
        yield _made(event, EventKind.ASSET, said, action="commit", ref=commit.hash, paths=covered)


def _under(path: str, name: str) -> bool:
    """Say whether `git add NAME` takes a path: the file, a folder, or a pattern."""
    return path == name or path.startswith(f"{name}/") or fnmatch.fnmatchcase(path, name)


def _pull_requests(event: Stored, call: Stored | None, _: View) -> Derived:
    """A pull-request link that the host or the tool which opened it states covers the session's versions."""
    link = event.meta.get("pull_request")
    if not isinstance(link, str):
        if call is None or not re.search(r"\b(?:gh\s+pr\s+create|glab\s+mr\s+create)\b", tools.command(call)):
            return
        match = _PULL.search(event.body)
        if match is None:
            return
        link = match[0]
    yield _made(event, EventKind.ASSET, f"pull request {link}", action="pull_request", ref=link)


def _todo_calls(event: Stored, call: Stored | None, view: View) -> Derived:
    """A todo list that a tool wrote is compared with the session's todos."""
    if call is None:
        return
    name, arguments = tools.name_of(call), tools.input_of(call)
    if name in tools.TODO_LISTS:
        lists = (arguments.get(field) for field in ("todos", "plan", "items"))
        yield from _todo_changes(event, view, next((listed for listed in lists if isinstance(listed, list)), None))
    elif name in tools.TASKS:
        yield from _task(event, view, name, arguments)


def _todo_snapshot(event: Stored, _: Stored | None, view: View) -> Derived:
    """A todo list that the host wrote itself is compared with the session's todos."""
    if event.meta.get("action") == "snapshot":
        yield from _todo_changes(event, view, event.meta.get("todos"))


def _todo(value: object) -> tuple[str, str] | None:
    """Read one entry of a host's list as (text, status of our machine); a status we do not know is not finished."""
    if not isinstance(value, dict):
        return None
    texts = (value.get(field) for field in ("content", "text", "step", "title", "description"))
    text = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    status = TODO_STATES.get(str(value.get("status", "pending")).lower(), "pending")
    return (storable(text.strip()[:MAX_TEXT]), status) if text else None


def _todo_changes(event: Stored, view: View, listed: object) -> Derived:
    """Yield what changed: new entries, finished ones, and pending ones that the list no longer holds."""
    if not isinstance(listed, list):
        return
    entries = dict(entry for entry in map(_todo, listed) if entry)
    key = f"list:{event.actor or ''}"  # a sub-agent keeps a list of its own
    ours = {todo.text: todo for todo in view.todos(event) if todo.key == key}
    for text, status in entries.items():
        todo = ours.get(text)
        if todo is None or (todo.status != "pending" and status == "pending"):
            yield _made(event, EventKind.TODO, text, action="record", status=status, key=key)
        elif todo.status == "pending" and status != "pending":
            yield from _move(event, view, todo, "finish" if status == "done" else "drop")
    if all(map(_todo, listed)):
        for todo in ours.values():
            if todo.status == "pending" and todo.text not in entries:
                yield from _move(event, view, todo, "drop")


def _task(event: Stored, view: View, name: str, arguments: Mapping[str, object]) -> Derived:
    """TaskCreate makes a todo under the number in its result, TaskUpdate moves it."""
    if name == "taskcreate":
        text = next(
            (value for field in ("subject", "title", "description") if isinstance(value := arguments.get(field), str)),
            "",
        )
        number = re.search(r"#(\d{1,9})", event.body)
        if text.strip():
            yield _made(
                event,
                EventKind.TODO,
                text.strip()[:MAX_TEXT],
                action="record",
                key=f"task:{number[1] if number else event.id}",
            )
        return
    key = f"task:{arguments.get('taskId') or arguments.get('task_id') or ''}"
    todo = view.record_by_key(event.session, NodeType.TODO, key)
    status = TODO_STATES.get(str(arguments.get("status", "")).lower())
    if todo is None or status is None:
        return
    if todo.status == "pending" and status != "pending":
        yield from _move(event, view, todo, "finish" if status == "done" else "drop")
    elif todo.status != "pending" and status == "pending":
        yield _made(event, EventKind.TODO, todo.text, action="record", key=key)


def _approved(event: Stored, call: Stored | None, _: View) -> Derived:
    """An approved plan and an answered question are candidates; a rejected plan is an error result and nothing."""
    if call is None or event.actor is not None:
        return
    name, arguments = tools.name_of(call), tools.input_of(call)
    plan = arguments.get("plan")
    if name in tools.PLANS and isinstance(plan, str) and plan.strip():
        yield _made(
            event, EventKind.CANDIDATE, plan.strip()[:MAX_TEXT], action="record", evidence=[call.origin, event.origin]
        )
    elif name in tools.QUESTIONS and event.body.strip():
        yield _made(
            event,
            EventKind.CANDIDATE,
            event.body.strip()[:MAX_TEXT],
            action="record",
            evidence=[call.origin, event.origin],
        )


def _recorded(event: Stored, call: Stored | None, view: View) -> Derived:
    """The tool `record_decision` is the explicit channel: its text becomes a decision with the call as evidence."""
    if call is None or tools.name_of(call) != "record_decision":
        return
    arguments = tools.input_of(call)
    text, old = arguments.get("text"), arguments.get("supersedes_id")
    if not isinstance(text, str) or not text.strip():
        return
    record = view.record_by_id(str(old)) if old is not None else None
    source = view.event(record.id) if record else None
    evidence = [call.origin]
    if (
        record is not None
        and source is not None
        and record.type is NodeType.DECISION
        and record.status in {"active", "proposed"}
        and record.scope != "global"  # which only the owner changes
        and may_change(event, record, view)
    ):
        yield _made(event, EventKind.DECISION, text.strip(), action="supersede", of=source.origin, evidence=evidence)
    else:
        yield _made(event, EventKind.DECISION, text.strip(), action="record", evidence=evidence)


def _promoted(event: Stored, _: Stored | None, view: View) -> Derived:
    """Promoting a candidate makes the decision, with the candidate's evidence."""
    of = event.meta.get("of")
    if event.meta.get("action") != "promote" or not isinstance(of, str):
        return
    source = view.by_origin(event, of)
    record = view.record(source.id) if source else None
    if record is None or record.changed_event != event.id:
        return
    evidence = [found.origin for number in record.evidence if (found := view.event(number))]
    yield _made(event, EventKind.DECISION, event.body.strip() or record.text, action="record", evidence=[*evidence, of])


def _move(event: Stored, view: View, record: Record, action: str) -> Derived:
    source = view.event(record.id)
    if source is not None and may_change(event, record, view):
        yield _made(event, EventKind(record.type), record.text, action=action, of=source.origin)


def _made(event: Stored, kind: EventKind, body: str, **meta: object) -> Event:
    return Event(session_id=event.session_id, kind=kind, origin="", body=body, meta=json.loads(json.dumps(meta)))


_RULES: Final[dict[EventKind, tuple[Rule, ...]]] = {
    EventKind.USER_MESSAGE: (_stated, _goal, _published),
    EventKind.TOOL_RESULT: (_assets, _commits, _pull_requests, _todo_calls, _approved, _recorded),
    EventKind.TODO: (_todo_snapshot,),
    EventKind.CANDIDATE: (_promoted,),
    EventKind.RAW: (_pull_requests,),
}

"""Pure rules from one event to the events it causes: `derive(event, view)`.

Used at capture only. What it returns is written behind its cause with the origin `rule:<cause origin>:<n>`; a replay of
the ledger meets those events again and derives nothing. The rules speak both languages; a decision never comes from a
rule, a stated one becomes a candidate (protocol §3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from graphsvc.memory import paths, tools
from graphsvc.model import Event, EventKind, NodeType, Record, Stored
from graphsvc.store.view import View

MAX_GOAL: Final = 200
MAX_TEXT: Final = 2000  # characters of a candidate, goal or todo by rule

# Whole messages, after trimming and lower-casing (reference §3.8 and its English counterparts).
ISOLATE: Final = frozenset(
    {"/thread-iso", "隔离", "开始隔离", "进入隔离", "临时隔离", "静默", "免打扰", "别打扰", "isolate", "go private"}
)
SHARE: Final = frozenset({"/thread-uniso", "解除隔离", "退出隔离", "恢复共享", "unisolate", "go public"})

# A decision stated in the user's words. Questions, negations and reports of not having decided are left out below.
_DECIDED: Final = re.compile(
    r"\b(?:we(?:'ve| have)? (?:now )?decided|i(?:'ve| have)? decided|decision:|(?:let's|lets|let us) (?:go|stick) with"
    r"|we(?:'ll| will) (?:go|stick) with|we(?:'re| are) going with|go with option|settled on|we agreed (?:on|to))"
    r"|决定(?!权|性|论|吗|了吗|没)|就用|就这么定|敲定|定下来|拍板|选定|最终采用|确定用|确定采用|改为采用",
    re.IGNORECASE,
)
_UNDECIDED: Final = re.compile(
    r"\b(?:not|never|n't|haven't|hasn't|hadn't|before we|until we|once we|if we|whether|did we|have we|what|which|who"
    r"|when|why|how)\b"
    r"[^.!?。！？]{0,40}\bdecided\b|(?:还没|没有|尚未|未|不|别|没|待|等|再|由|谁|是否|如果|怎么|怎样|如何|什么时候|为什么|取)"
    r".{0,4}(?:决定|敲定|定下来|拍板|选定)|(?:不|别)(?:要)?就用|n't (?:go|stick) with|not (?:go|stick) with",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[^.!?。！？\n]+(?:\.(?=\S)[^.!?。！？\n]+)*[.!?。！？]?")
_QUESTION: Final = re.compile(r"[?？]\s*$|[吗呢么]\s*[。.]?\s*$")

# Imperatives that open a goal (reference §3.11, whose verbs were Chinese only).
_GOAL: Final = re.compile(
    r"^(?:(?:please|pls|now|then|also|next|ok(?:ay)?|(?:can|could) you|help me(?: to)?"
    r"|请|麻烦|帮我|再帮我|接着|然后|再|现在|你来)[,，:：\s]*){0,3}"
    r"(?:(?:implement|fix|refactor|add|complete|finish|build|create|delete|remove|optimi[sz]e|upgrade|integrate|verify|design|plan"
    r"|develop|set up|write|tidy|clean up|deploy|migrate|split|merge|install|configure|generate|convert|port|rename"
    r"|replace|support|document|update|make|test)\b(?!\s*[:=(])"
    r"|实现|修复|修正|重构|添加|新增|增加|完成|构建|创建|新建|删除|移除|优化|升级|集成|接入|验证|设计|规划|开发|搭建|编写|写一|整理|部署"
    r"|迁移|拆分|合并|安装|配置|生成|补充|更新|改造)",
    re.IGNORECASE,
)
_NO_GOAL: Final = re.compile(
    r"[?？]\s*$|[吗呢么]\s*[。.]?\s*$"
    r"|\b(?:is|are|was|were|has been|have been) (?:done|finished|completed?|fixed|working)\b"
    r"|已(?:经)?完成|完成了|搞定了|做完了|修复了",
    re.IGNORECASE,
)

_COMMIT: Final = re.compile(r"\bgit\b(?:\s+-[cC]\s+\S{1,200})?\s+commit\b")
_COMMITTED: Final = re.compile(r"^\[[^\]\n]{0,200}?\b([0-9a-f]{7,40})\] (.{0,300})$", re.MULTILINE)
_LOGGED: Final = re.compile(r"^(?:commit )?([0-9a-f]{7,40})\s+(.{1,300})$", re.MULTILINE)
_MESSAGE: Final = re.compile(r"-[a-z]{0,6}m[ =]?(?:\"((?:[^\"\\]|\\.){1,2000})\"|'([^']{1,2000})'|(\S{1,200}))")
_ADDED: Final = re.compile(r"\bgit\s+add\s+([^&|;\n]{1,2000})")
_ALL: Final = re.compile(
    r"\bgit\s+add\s+(?:-A|--all|-u|\.)(?=\s|$)|\bcommit\s[^&|;\n]{0,200}?(?:-[a-z]{0,4}a[a-z]{0,4}\b|--all\b)"
)
_PULL: Final = re.compile(r"https?://[^\s\"'<>()]{3,300}/(?:pull|merge_requests)/\d{1,9}")

Derived = Iterator[Event]
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


def toggle(event: Event) -> str | None:
    """Return "on" or "off" when a user's whole message is an isolation phrase; it takes effect before it is stored."""
    if event.kind is not EventKind.USER_MESSAGE or event.actor is not None or len(event.body) > 40:
        return None
    text = event.body.strip().lower()
    if text in ISOLATE:
        return "on"
    return "off" if text in SHARE else None


def derive(event: Stored, view: View) -> list[Event]:
    """Return the events that follow from this one, in order."""
    rules = _RULES.get(event.kind, ())
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
        for number, made in enumerate(made for rule in rules for made in rule(event, view))
    ]


def _stated(event: Stored, _: View) -> Derived:
    """A decision in the user's words is a candidate with that message as its evidence."""
    if event.actor is not None:
        return
    seen = set()
    for match in _SENTENCE.finditer(event.body[:20_000]):
        sentence = match[0].strip()
        if (
            sentence in seen
            or _QUESTION.search(sentence)
            or not _DECIDED.search(sentence)
            or _UNDECIDED.search(sentence)
        ):
            continue
        seen.add(sentence)
        yield _made(event, EventKind.CANDIDATE, sentence[:MAX_TEXT], action="record", evidence=[event.origin])


def _goal(event: Stored, _: View) -> Derived:
    """A short imperative of the user is a goal."""
    text = event.body.strip()
    if event.actor is not None or len(text) > MAX_GOAL or "\n" in text or text.startswith(("/", "<", "[")):
        return
    if _GOAL.match(text) and not _NO_GOAL.search(text):
        yield _made(event, EventKind.GOAL, text, action="record", evidence=[event.origin])


def _assets(event: Stored, view: View) -> Derived:
    """A write tool that succeeded leaves a version of each file it wrote."""
    call = _succeeded(event, view)
    if call is None:
        return
    project = view.project_key(event.project)
    cwd = next((value for value in (call.meta.get("cwd"), event.meta.get("cwd")) if isinstance(value, str)), None)
    for path in tools.written(call, event):
        key = paths.key(project, cwd, path)
        action = "write" if view.asset(event.project, key) else "register"
        yield _made(event, EventKind.ASSET, key, action=action, call=call.origin, path=path)


def _commits(event: Stored, view: View) -> Derived:
    """A `git commit` that succeeded covers the versions its session had written and not committed."""
    call = _succeeded(event, view)
    if call is None or tools.name_of(call) not in tools.SHELLS:
        return
    arguments = tools.input_of(call)
    command = next(
        (value for value in (arguments.get("command"), arguments.get("cmd"), arguments.get("input")) if value), ""
    )
    command = " ".join(map(str, command)) if isinstance(command, list) else str(command)
    if not _COMMIT.search(command):
        return
    commit = _commit(command, event.body)
    if commit is None:
        return
    project = view.project_key(event.project)
    covered = _covered(command, view.uncommitted(event.session, event.at), project, call.meta.get("cwd"))
    if covered:
        yield _made(
            event, EventKind.ASSET, f"commit {commit[0]} {commit[1]}", action="commit", ref=commit[0], paths=covered
        )


def _commit(command: str, output: str) -> tuple[str, str] | None:
    """Return (hash, subject): from git's own line, or from a log line that repeats the message just given."""
    found = _COMMITTED.search(output)
    if found:
        return found[1], found[2].strip()
    given = _MESSAGE.search(command)
    subject = next((part for part in given.groups() if part), "").splitlines()[:1] if given else []
    for match in _LOGGED.finditer(output):
        if subject and re.sub(r"^\([^)]{0,300}\) ", "", match[2]).strip() == subject[0].strip():
            return match[1], match[2].strip()
    return None


def _covered(command: str, versions: Sequence[tuple[object, str]], project: str, cwd: object) -> list[str]:
    """List the paths of the versions that the commit took: all, or those which `git add` named."""
    every = list(dict.fromkeys(path for _, path in versions))
    added = _ADDED.findall(command)
    if not added or _ALL.search(command):
        return every
    folder = cwd if isinstance(cwd, str) else None
    names = [
        paths.key(project, folder, name.strip("\"'")) for part in added for name in part.split() if name[:1] != "-"
    ]
    return [path for path in every if any(path == name or path.startswith(f"{name}/") for name in names)]


def _pull_requests(event: Stored, view: View) -> Derived:
    """A pull-request link that the host or the tool which opened it states covers the session's versions."""
    link = event.meta.get("pull_request")
    if not isinstance(link, str):
        call = _succeeded(event, view) if event.kind is EventKind.TOOL_RESULT else None
        if call is None or not re.search(r"\b(?:gh\s+pr\s+create|glab\s+mr\s+create)\b", call.body):
            return
        match = _PULL.search(event.body)
        if match is None:
            return
        link = match[0]
    yield _made(event, EventKind.ASSET, f"pull request {link}", action="pull_request", ref=link)


def _todo_calls(event: Stored, view: View) -> Derived:
    """A todo list that a tool wrote is compared with the session's todos."""
    call = _succeeded(event, view)
    if call is None:
        return
    name, arguments = tools.name_of(call), tools.input_of(call)
    if name in tools.TODO_LISTS:
        listed = next(
            (value for field in ("todos", "plan", "items") if isinstance(value := arguments.get(field), list)), []
        )
        yield from _todo_changes(event, view, [entry for entry in map(_todo, listed) if entry])
    elif name in tools.TASKS:
        yield from _task(event, view, name, arguments)


def _todo_snapshot(event: Stored, view: View) -> Derived:
    """A todo list that the host wrote itself is compared with the session's todos."""
    listed = event.meta.get("todos")
    if event.meta.get("action") == "snapshot" and isinstance(listed, list):
        yield from _todo_changes(event, view, [entry for entry in map(_todo, listed) if entry])


def _todo(value: object) -> tuple[str, str] | None:
    """Read one entry of a host's list as (text, status of our machine)."""
    if not isinstance(value, dict):
        return None
    text = next(
        (text for field in ("content", "text", "step", "title", "description") if (text := value.get(field))), None
    )
    status = TODO_STATES.get(str(value.get("status", "pending")).lower())
    return (text.strip()[:MAX_TEXT], status) if isinstance(text, str) and text.strip() and status else None


def _todo_changes(event: Stored, view: View, listed: list[tuple[str, str]]) -> Derived:
    """Yield what changed: new entries, finished ones, and pending ones that the list no longer holds."""
    key = f"list:{event.actor or ''}"  # a sub-agent keeps a list of its own
    ours = [todo for todo in view.todos(event.session) if todo.key == key]
    known = {todo.text: todo for todo in ours}
    for text, status in listed:
        todo = known.get(text)
        if todo is None or (todo.status == "dropped" and status == "pending"):
            yield _made(event, EventKind.TODO, text, action="record", status=status, key=key)
        elif todo.status == "pending" and status != "pending":
            yield _move(event, view, todo, "finish" if status == "done" else "drop")
    texts = {text for text, _ in listed}
    for todo in ours:
        if todo.status == "pending" and todo.text not in texts:
            yield _move(event, view, todo, "drop")


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
    key = str(arguments.get("taskId") or arguments.get("task_id") or "")
    todo = view.record_by_key(event.session, NodeType.TODO, f"task:{key}")
    status = TODO_STATES.get(str(arguments.get("status", "")).lower())
    if todo is not None and todo.status == "pending" and status in {"done", "dropped"}:
        yield _move(event, view, todo, "finish" if status == "done" else "drop")


def _approved(event: Stored, view: View) -> Derived:
    """An approved plan and an answered question are candidates; a rejected plan is an error result and nothing."""
    call = _succeeded(event, view)
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


def _recorded(event: Stored, view: View) -> Derived:
    """The tool `record_decision` is the explicit channel: its text becomes a decision with the call as evidence."""
    call = _succeeded(event, view)
    if call is None or tools.name_of(call) != "record_decision":
        return
    arguments = tools.input_of(call)
    text, old = arguments.get("text"), arguments.get("supersedes_id")
    if not isinstance(text, str) or not text.strip():
        return
    number = str(old).rpartition("-")[2] if old is not None else ""
    record = view.record(int(number)) if number.isascii() and number.isdigit() and len(number) < 18 else None
    if record is not None and record.type is NodeType.DECISION and record.status in {"active", "proposed"}:
        origin = _origin(view, record)
        yield _made(event, EventKind.DECISION, text.strip(), action="supersede", of=origin, evidence=[call.origin])
    else:
        yield _made(event, EventKind.DECISION, text.strip(), action="record", evidence=[call.origin])


def _promoted(event: Stored, view: View) -> Derived:
    """Promoting a candidate makes the decision, with the candidate's evidence."""
    of = event.meta.get("of")
    if event.meta.get("action") != "promote" or not isinstance(of, str):
        return
    source = view.by_origin(event, of)
    record = view.record(source.id) if source else None
    if record is None:
        return
    evidence = [found.origin for number in record.evidence if (found := view.event(number))]
    yield _made(event, EventKind.DECISION, event.body.strip() or record.text, action="record", evidence=[*evidence, of])


def _succeeded(event: Stored, view: View) -> Stored | None:
    """Return the call of a result that is no error."""
    return None if event.meta.get("is_error") is True else view.call_of(event)


def _move(event: Stored, view: View, record: Record, action: str) -> Event:
    return _made(event, EventKind(record.type), record.text, action=action, of=_origin(view, record))


def _origin(view: View, record: Record) -> str:
    source = view.event(record.id)
    return source.origin if source else ""


def _made(event: Stored, kind: EventKind, body: str, **meta: object) -> Event:
    return Event(session_id=event.session_id, kind=kind, origin="", body=body, meta=json.loads(json.dumps(meta)))


_RULES: Final[dict[EventKind, tuple[Callable[[Stored, View], Derived], ...]]] = {
    EventKind.USER_MESSAGE: (_stated, _goal),
    EventKind.TOOL_RESULT: (_assets, _commits, _pull_requests, _todo_calls, _approved, _recorded),
    EventKind.TODO: (_todo_snapshot,),
    EventKind.CANDIDATE: (_promoted,),
    EventKind.RAW: (_pull_requests,),
}

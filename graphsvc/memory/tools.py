"""What the hosts' tools do to files, by name: which write, which read, what a write leaves in the file.

Names are compared without case and without the prefixes hosts put before them (`mcp__server__name`).
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from graphsvc.model import Stored

Input = Mapping[str, object]

PATH_FIELDS: Final = ("file_path", "filePath", "path", "notebook_path", "filename", "file")
READS: Final = frozenset({"read", "read_file", "view", "view_file", "open", "open_file", "notebookread"})
REPORTS: Final = frozenset({"report", "subagent-report", "subagent_report"})
TODO_LISTS: Final = frozenset({"todowrite", "todo_write", "write_todos", "update_plan", "update_todos"})
TASKS: Final = frozenset({"taskcreate", "taskupdate"})
PLANS: Final = frozenset({"exitplanmode", "exit_plan_mode"})
QUESTIONS: Final = frozenset({"askuserquestion", "ask_user_question", "ask_user", "request_user_input"})
SHELLS: Final = frozenset(
    {"bash", "shell", "exec", "exec_command", "run_command", "run_shell_command", "run_terminal_cmd"}
)

DOCUMENTS: Final = frozenset({".md", ".markdown", ".mdx", ".rst", ".adoc", ".org", ".txt", ".tex", ".pdf", ".docx"})
CODE: Final = frozenset(
    """
    .py .pyi .js .jsx .mjs .cjs .ts .tsx .go .rs .java .kt .kts .scala .c .h .cc .cpp .hpp .cs .rb .php .swift .m
    .mm .sh .bash .zsh .fish .ps1 .sql .graphql .cypher .html .htm .css .scss .less .vue .svelte .lua .pl .r .jl
    .ex .exs .erl .hs .ml .clj .dart .zig .nim .proto .tf .toml .yaml .yml .json .jsonc .xml .ini .cfg .gradle
    .cmake .mk .dockerfile .ipynb
    """.split()  # noqa: SIM905 # a list of seventy endings is read as one text
)
CODE_NAMES: Final = frozenset({"makefile", "dockerfile", "justfile", "rakefile", "gemfile", "cmakelists.txt"})
MAX_TITLE: Final = 80

_HEADING: Final = re.compile(r"^#{1,3}[ \t]+(\S.{0,200})$", re.MULTILINE)
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update) File: (.{1,1000})$", re.MULTILINE)
_ADDED: Final = re.compile(r"^\*\*\* Add File: (.{1,1000})\n((?:\+.*(?:\n|$))*)", re.MULTILINE)


def name_of(event: Stored) -> str:
    """Return the tool's name in lower case, without a host's prefix."""
    name = event.meta.get("tool_name")
    return bare(name) if isinstance(name, str) else ""


def bare(name: str) -> str:
    """Strip a host's prefix: `mcp__server__Write` is `write`."""
    return re.split(r"__|[.:]", name)[-1].lower()


def input_of(call: Stored) -> Input:
    """Read the call's input; what is no JSON object (a patch, a command) stands under `input`."""
    try:
        value = json.loads(call.body)
    except (ValueError, RecursionError):
        return {"input": call.body}
    return value if isinstance(value, dict) else {"input": value}


def path_of(call: Stored, arguments: Input) -> str | None:
    """Return the path a call is about."""
    for value in (*(arguments.get(name) for name in PATH_FIELDS), call.meta.get("file_path")):
        if isinstance(value, str) and value.strip() and len(value) <= 4096 and "\0" not in value:
            return value
    return None


def read(call: Stored) -> str | None:
    """Return the path that a call which succeeded has read; None when it is no read tool."""
    name, arguments = name_of(call), input_of(call)
    looks = name in READS or (WRITES.get(name) is _editor and arguments.get("command") == "view")
    return path_of(call, arguments) if looks else None


def command(call: Stored) -> str:
    """Return the command line of a shell call; empty for any other tool."""
    if name_of(call) not in SHELLS:
        return ""
    arguments = input_of(call)
    value = next((arguments[name] for name in ("command", "cmd", "input") if arguments.get(name)), "")
    if isinstance(value, list):
        words = [str(word) for word in value]
        # Hosts hand over ["bash", "-lc", "the command line"] too.
        return words[2] if len(words) == 3 and words[1] in {"-c", "-lc"} else shlex.join(words)
    return str(value)


def written(call: Stored, result: Stored) -> list[str]:
    """List the paths that a call which succeeded has written; empty when it is no write tool."""
    name, arguments = name_of(call) or name_of(result), input_of(call)
    if name in REPORTS:
        return [f"reports/{name}-{result.meta.get('tool_use_id') or result.id}.md"]
    if _patches(name, arguments):
        return list(dict.fromkeys(path.strip() for path in _PATCHED.findall(_patch(arguments))))
    if name not in WRITES or _writer(name, arguments) is None:
        return []
    path = path_of(call, arguments)
    return [path] if path else []


def content(path: str, call: Stored, result: Stored, base: str | None) -> str | None:
    """Return the whole text of the file after the call, or None when the events do not determine it.

    `base` is the newest whole text before it; the host's own `original_file` and `new_file` win over it.
    """
    name, arguments = name_of(call) or name_of(result), input_of(call)
    whole, original = result.meta.get("new_file"), result.meta.get("original_file")
    if isinstance(whole, str):
        return whole
    before = original if isinstance(original, str) else base
    if name in REPORTS:
        return result.body
    if _patches(name, arguments):
        added = {match[1].strip(): match[2] for match in _ADDED.finditer(_patch(arguments))}
        rows = added.get(path, "").rstrip("\n").split("\n")
        return "".join(f"{row[1:]}\n" for row in rows) if path in added else None
    writer = _writer(name, arguments)
    return writer(arguments, before) if writer else None


def edits(call: Stored) -> list[tuple[str, str, bool]] | None:
    """Return what a call replaced, in order, as (old, new, everywhere); None when it does not replace."""
    arguments = input_of(call)
    writer = _writer(name_of(call), arguments)
    listed = [arguments] if writer is _edit else arguments.get("edits") if writer is _edits else None
    if not isinstance(listed, list):
        return None
    found = []
    for one in listed:
        old, new = _replaced(one) if isinstance(one, dict) else (None, None)
        if old is None or new is None:
            return None
        found.append((old, new, one.get("replace_all") is True))
    return found


def changes(path: str, call: Stored) -> list[tuple[str, str]]:
    """Return the pieces of a file that a call changed as (before, after), whether the whole text is known or not."""
    arguments = input_of(call)
    if _patches(name_of(call), arguments):
        return _hunks(path, _patch(arguments))
    replaced = edits(call)
    if replaced is not None:
        return [(old, new) for old, new, _ in replaced]
    new = _first(arguments, "content", "contents", "file_text", "text", "insert_text", "new_str")
    return [("", new)] if new is not None else []


def _hunks(path: str, patch: str) -> list[tuple[str, str]]:
    """Read the hunks that a patch has for a file."""
    hunks: list[tuple[list[str], list[str]]] = []
    inside = False
    for row in patch.split("\n"):
        if row.startswith("*** "):
            named = _PATCHED.match(row)
            inside = named[1].strip() == path if named else inside and row.startswith("*** Move to:")
            hunks.append(([], []))
        elif inside and row.startswith("@@"):
            hunks.append(([], []))
        elif inside:
            sign, line = row[:1], f"{row[1:]}\n"
            hunks[-1][0].extend([line] if sign != "+" else [])
            hunks[-1][1].extend([line] if sign != "-" else [])
    return [("".join(old), "".join(new)) for old, new in hunks if old or new]


def title(path: str, kind: str, text: str | None) -> str:
    """Return the first heading of a document, else the file's name."""
    if text and kind in {"document", "report"}:
        match = _HEADING.search(text)
        if match:
            return match[1].strip().rstrip("#").strip()[:MAX_TITLE]
        if kind == "report":
            return next((row.strip()[:MAX_TITLE] for row in text.splitlines() if row.strip()), posixpath.basename(path))
    return posixpath.basename(path)


def asset_kind(path: str, tool: str) -> str:
    """Return document, report, code or other, by the tool and the ending."""
    if tool in REPORTS:
        return "report"
    ending = posixpath.splitext(path)[1].lower()
    if posixpath.basename(path).lower() in CODE_NAMES or ending in CODE:
        return "code"
    return "document" if ending in DOCUMENTS else "other"


def _patches(name: str, arguments: Input) -> bool:
    """Say whether a call applies a patch, by a tool of its own or as a shell command of that name."""
    value = arguments.get("command")
    return name in {"apply_patch", "applypatch"} or (
        name in SHELLS and isinstance(value, list) and len(value) == 2 and value[0] == "apply_patch"
    )


def _patch(arguments: Input) -> str:
    value = arguments.get("input") or arguments.get("patch") or arguments.get("command")
    value = value[-1] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else ""


def _writer(name: str, arguments: Input) -> Callable[[Input, str | None], str | None] | None:
    """Return what computes the file's text; None when this call only looks (`view` of an editor tool)."""
    writer = WRITES.get(name)
    if writer is _editor:
        command = arguments.get("command")
        return _EDITOR.get(command) if isinstance(command, str) else None
    return writer


def _write(arguments: Input, _: str | None) -> str | None:
    return _first(arguments, "content", "contents", "file_text", "text")


def _edit(arguments: Input, before: str | None) -> str | None:
    old, new = _replaced(arguments)
    if old is None or new is None:
        return None
    everywhere = arguments.get("replace_all") is True
    return _replace(before, old, new, everywhere=everywhere)


def _replaced(arguments: Input) -> tuple[str | None, str | None]:
    return (
        _first(arguments, "old_string", "old_str", "oldText"),
        _first(arguments, "new_string", "new_str", "newText"),
    )


def _edits(arguments: Input, before: str | None) -> str | None:
    edits, text = arguments.get("edits"), before
    if not isinstance(edits, list):
        return None
    for number, edit in enumerate(edits):
        if not isinstance(edit, dict):
            return None
        text = _edit(edit, text)
        if text is None and number == 0 and before is None:
            return None
    return text


def _insert(arguments: Input, before: str | None) -> str | None:
    line, new = arguments.get("insert_line"), _first(arguments, "insert_text", "new_str")
    if before is None or new is None or not isinstance(line, int) or isinstance(line, bool):
        return None
    rows = before.split("\n")
    if not 0 <= line <= len(rows):
        return None
    return "\n".join([*rows[:line], *new.split("\n"), *rows[line:]])


def _unknown(_: Input, __: str | None) -> str | None:
    return None


def _editor(_: Input, __: str | None) -> str | None:
    return None


def _replace(before: str | None, old: str, new: str, *, everywhere: bool) -> str | None:
    if old == "" and not before:
        return new
    if before is None or old == "" or old not in before:
        return None
    if before.count(old) > 1 and not everywhere:
        return None  # the host would have refused it: the base is not what it edited
    return before.replace(old, new)


def _first(arguments: Input, *names: str) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


_EDITOR: Final[dict[str, Callable[[Input, str | None], str | None]]] = {
    "create": _write,
    "str_replace": _edit,
    "insert": _insert,
    "undo_edit": _unknown,
}
WRITES: Final[dict[str, Callable[[Input, str | None], str | None]]] = {
    "write": _write,
    "write_file": _write,
    "create_file": _write,
    "write_to_file": _write,
    "edit": _edit,
    "edit_file": _edit,
    "replace": _edit,
    "search_replace": _edit,
    "multiedit": _edits,
    "multi_edit": _edits,
    "notebookedit": _unknown,
    "replace_in_file": _unknown,
    "str_replace_editor": _editor,
    "str_replace_based_edit_tool": _editor,
}

"""The shape of the package: who imports whom, what a room holds, what ships."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest

import graphsvc
from graphsvc import resources

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "graphsvc"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Lower numbers are further down; a module imports its own level's room or something below.
LEVELS = {
    "__main__": 13,
    "cli": 12,
    "render": 11,
    "server": 10,
    "audit": 10,
    "client": 9,
    "api": 8,
    "adapters": 8,
    "conformance": 8,
    "bench": 8,
    "lineage": 7,
    "importers": 6,
    "web": 6,
    "recall": 6,
    "memory": 5,
    "graph": 4,
    "store": 3,
    "envelope": 2,
    **dict.fromkeys(("bugs", "child", "clock", "model", "states", "errors", "resources", "config", "hook", "spool"), 1),
}
ROOT_MODULES = {
    "__init__",
    "__main__",
    "bugs",
    "child",
    "clock",
    "render",
    "config",
    "errors",
    "resources",
    "model",
    "states",
    "envelope",
    "hook",
    "spool",
}
GROUND = {"clock", "model", "states", "errors", "resources", "config"}


def part(name: str) -> str:
    """The room or root module of a dotted name: graphsvc.store.events → store."""
    return [*name.split("."), ""][1]


def imported(path: Path) -> set[str]:
    """The rooms and root modules a file imports, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {part(alias.name) for alias in node.names if alias.name.split(".")[0] == "graphsvc"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "graphsvc":
                found |= {alias.name for alias in node.names}
            elif node.module and node.module.startswith("graphsvc."):
                found.add(part(node.module))
    return found - {"__version__", ""}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if own == "__init__":
        assert not imported(path)
        return

    wrong = {
        name
        for name in imported(path) - {own}
        if LEVELS[name] >= LEVELS[own] and not (own in GROUND and name in GROUND)
    }

    assert not wrong, f"{own} imports {wrong}"


def test_only_the_command_line_and_its_client_import_inside_functions():
    def inside(path: Path) -> bool:
        functions = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef))
        return any(
            isinstance(node, ast.Import | ast.ImportFrom) for node in chain.from_iterable(map(ast.walk, functions))
        )

    assert {path.relative_to(PACKAGE).parts[0] for path in MODULES if inside(path) and path.name != "executor.py"} <= {
        "cli"
    }


def test_only_the_store_speaks_sqlite():
    speakers = {
        path.relative_to(PACKAGE).parts[0]
        for path in MODULES
        if re.search(r"^import sqlite3|\bsqlite3\.", path.read_text("utf-8"), re.MULTILINE)
    }

    assert speakers <= {"store"}


def test_statements_take_their_values_in_order():
    """Numbered ones are deprecated for sequences since Python 3.12, which says so only when it runs them."""
    numbered = [path.relative_to(PACKAGE) for path in MODULES if re.search(r"[ (=]\?[0-9]", path.read_text("utf-8"))]

    assert numbered == []


def test_a_room_holds_at_most_a_dozen_modules_and_its_init_is_empty():
    for room in {path.parent for path in MODULES} - {PACKAGE}:
        assert len([path for path in room.glob("*.py") if path.name != "__init__.py"]) <= 12, room.name
        assert not (room / "__init__.py").read_text("utf-8").strip(), room.name


def test_root_modules_are_the_designed_ones():
    assert {path.stem for path in PACKAGE.glob("*.py")} <= ROOT_MODULES


def test_top_level_entries_are_the_designed_ones():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=False)  # noqa: S607 # found on PATH
    if listed.returncode:
        pytest.skip("no git checkout")
    names = {line.split("/")[0] for line in listed.stdout.decode().splitlines()}

    assert {name for name in names if not name.startswith(".")} <= {
        *(
            "pyproject.toml",
            "README.md",
            "LICENSE",
            "CHANGELOG.md",
            "graphsvc",
            "schema",
            "tests",
            "queries",
            "examples",
        )
    }


def test_every_schema_query_and_demo_file_is_in_the_wheel(tmp_path):
    process = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()

    [wheel] = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())

    for folder in ("schema", "queries", "examples/demo"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and not path.name.startswith(".")]
        assert files, folder
        assert {f"graphsvc/_data/{path.relative_to(ROOT)}" for path in files} <= shipped
    assert "graphsvc/py.typed" in shipped


def test_shipped_files_are_found_from_the_installation():
    assert resources.text("schema/tool.json")
    assert resources.names("examples/demo", ".jsonl")
    assert resources.names("queries/tool", ".graphql")


def test_changelog_and_package_name_the_same_version():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)

    assert newest is not None
    assert newest[1] == graphsvc.__version__ == metadata.version("graphsvc")

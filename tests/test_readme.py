"""What the README says is true: its commands run as written, its parameters and commands are the ones there are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from graphsvc.cli import main as cli

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"(?P<mark><!-- command \w+ -->\n)?```(?:sh|console)\n(?P<text>.*?)```", re.DOTALL)
INSTALLS = [match["text"] for match in BLOCK.finditer(README) if match["mark"]]
BLOCKS = [match["text"] for match in BLOCK.finditer(README) if not match["mark"]]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Run a block with bash in one home that all blocks share, in a copy of what the README names."""
    home = tmp_path_factory.mktemp("readme")
    (home / "examples").symlink_to(ROOT / "examples")
    scripts = f"{sysconfig.get_path('scripts')}{os.pathsep}{Path(sys.executable).parent}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHSVC_", "XDG_", "CLAUDE"))}
    env = {
        **kept,
        "PATH": f"{scripts}{os.pathsep}{kept['PATH']}",
        "HOME": str(home),
        "GRAPHSVC_HOME": str(home / "try-graphsvc"),  # as the first block says
    }

    def shell(block: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-m", "-c", block],  # noqa: S607 # found on PATH
            cwd=home,
            env=env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )

    return shell


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0][:60])
def test_a_block_of_the_readme_runs_as_written(shell, block):
    ran = shell(block)

    assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
    assert ran.stdout.strip(), "a command of the README prints something"


def test_the_readme_has_two_install_commands_of_one_line():
    assert [len(text.splitlines()) for text in INSTALLS] == [1, 1]
    assert "graphsvc import --yes --demo" in INSTALLS[0]
    assert INSTALLS[1].strip().endswith("pytest")


def test_every_command_is_in_the_readme():
    assert [name for name in cli.program.commands if not re.search(rf"graphsvc {name}\b", README)] == []


def test_every_parameter_of_the_tool_is_in_the_readme():
    parameters = json.loads((ROOT / "schema" / "tool.json").read_text("utf-8"))["properties"]

    assert [name for name in parameters if f"`{name}`" not in README] == []


def test_every_dependency_has_its_reason():
    table = README[README.index("## Dependencies") : README.index("## Decisions")]
    declared = re.search(
        r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )

    assert declared is not None
    assert set(re.findall(r"^\| \[([\w-]+)\]", table, re.MULTILINE)) == set(re.findall(r'"([\w-]+)', declared[1]))


def test_every_link_into_the_repository_leads_somewhere():
    links = re.findall(r"\]\((?!https?:|#)([^)]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_demo_is_small_and_names_no_place_of_this_machine():
    files = sorted((ROOT / "examples" / "demo").glob("*.jsonl"))
    lines = [line for path in files for line in path.read_bytes().splitlines()]

    assert 0 < len(lines) <= 60
    assert {json.loads(line)["cwd"] for line in lines} == {"/home/demo/harbor-cafe"}
    assert not Path("/home/demo/harbor-cafe").exists()

"""As which session a process asks that a host started: real processes, with the environments that hosts give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphsvc.client import process

SAYS = "from graphsvc.client import process; print(process.session())"
LINUX = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="environments of others are read on Linux")
# A host: it starts the command that it is given, with its own number as CLAUDE_PID and the environment it was told.
HOST = """
import json, os, subprocess, sys
env = json.loads(sys.argv[1])
env = {name: value.replace("OWN", str(os.getpid())) for name, value in env.items()}
sys.stdout.write(subprocess.run(json.loads(sys.argv[2]), env=env, capture_output=True, text=True, check=True).stdout)
"""


def host(given: dict[str, str], own: dict[str, str] | None = None, through: tuple[str, ...] = ()) -> str:
    """Start a host that starts a server with an environment; return the session that the server finds."""
    command = [*through, sys.executable, "-c", SAYS]
    ran = subprocess.run(
        [sys.executable, "-c", HOST, json.dumps(given), json.dumps(command)],
        env=own or {}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return ran.stdout.strip()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "None"),
        ({"GRAPHSVC_SESSION": "s1"}, "s1"),
        ({"GRAPHSVC_SESSION": "港口"}, "港口"),
        ({"GRAPHSVC_SESSION": ""}, "None"),
        ({"CLAUDE_CODE_SESSION_ID": "c1", "CLAUDE_PID": "OWN"}, "c1"),
        ({"GRAPHSVC_SESSION": "s1", "CLAUDE_CODE_SESSION_ID": "c1", "CLAUDE_PID": "OWN"}, "s1"),
        ({"CLAUDE_CODE_SESSION_ID": "c1"}, "None"),
        ({"CLAUDE_CODE_SESSION_ID": "c1", "CLAUDE_PID": "x"}, "None"),
        ({"CLAUDE_CODE_SESSION_ID": "c1", "CLAUDE_PID": "1"}, "None"),
    ],
)
def test_a_server_asks_as_the_session_that_its_host_names(given, found):
    assert host({**given, "PYTHONUTF8": "1"}) == found


def test_a_session_whose_host_is_no_ancestor_any_more_is_none_of_ours():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert host({"CLAUDE_CODE_SESSION_ID": "c1", "CLAUDE_PID": str(other.pid)}) == "None"
        other.communicate(b"\n")


def test_an_agent_that_an_agent_starts_is_not_taken_for_it():
    given = {"CLAUDE_CODE_SESSION_ID": "c1", "CLAUDE_PID": "OWN"}
    shell = ("/bin/sh", "-c", '"$0" "$@"; exit')

    assert host(given, through=shell) == "c1"  # a launcher
    assert host(given, through=(*shell, *shell)) == "None"  # a shell, and an agent in it


@LINUX
def test_a_host_that_hands_on_no_environment_is_known_by_its_own():
    assert host({}, own={"GRAPHSVC_SESSION": "s1"}) == "s1"
    assert host({}, own={"GRAPHSVC_SESSION": "s1"}, through=("/bin/sh", "-c", '"$0" "$@"; exit')) == "s1"


@LINUX
def test_the_nearest_process_that_names_a_session_counts():
    assert host({"GRAPHSVC_SESSION": "inner"}, own={"GRAPHSVC_SESSION": "outer"}) == "inner"


def test_without_a_list_of_processes_the_own_environment_counts(tmp_path):
    assert process.session({"GRAPHSVC_SESSION": "s1"}, tmp_path) == "s1"
    assert process.session({}, tmp_path) is None


def hidden(run, **env: str) -> bool:
    ran = run("tool", '{"query": "secret blue"}', env=env)
    return "the secret is blue" not in ran.out


@pytest.fixture
def story(talk):
    talk.session("closed").isolated()
    talk.user("the secret is blue")
    talk.session("open").user("good morning")


def test_the_tool_asks_as_the_session_that_its_host_states(run, story):
    assert hidden(run)
    assert not hidden(run, GRAPHSVC_SESSION="closed")
    assert hidden(run, GRAPHSVC_SESSION="open")
    assert "the secret is blue" not in run("tool", "--viewer", "open", '{"query": "secret"}',
                                           env={"GRAPHSVC_SESSION": "closed"}).out  # fmt: skip


def test_a_session_that_is_stated_and_unknown_sees_nothing(run, story):
    ran = run("tool", '{"query": "morning"}', env={"GRAPHSVC_SESSION": "nobody"})

    assert ran.code == 1
    assert ran.json["status"] == "not-found"
    assert "the viewer is no session" in ran.json["notes"][0]


def test_what_hosts_set_on_their_own_does_not_count_in_a_shell(program, story):
    assert hidden(program, CLAUDE_CODE_SESSION_ID="closed", CLAUDE_PID=str(os.getpid()))


def test_people_at_the_command_line_are_the_owner_whatever_is_stated(run, story):
    ran = run("search", "secret blue", "--json", env={"GRAPHSVC_SESSION": "closed"})

    assert "the secret is blue" not in ran.out

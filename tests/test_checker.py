"""The process that looks at what is large and new: it says what the schema would say, or nothing."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import attacks
import pytest

from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.api.live import Reader
from graphsvc.clock import system
from graphsvc.recall.scope import Asker
from graphsvc.server import checker, exchange
from graphsvc.server.checker import Checker, Invalid
from graphsvc.server.exchange import Refused

QUERIES = Path(__file__).parent.parent / "queries"
DOCUMENTS = sorted(QUERIES.rglob("*.graphql"))
WRONG = "{ " + "nothing " * 200 + "}"  # new, and longer than what is checked where it is executed
DEADLINE_S = 60


def body(document, variables=None):
    return attacks.body(document, variables)


@contextmanager
def ready():
    with closing(Checker()) as one:
        begun(one)
        yield one


@pytest.fixture(scope="module")
def process():
    """A checker whose process is ready, for tests that leave it so."""
    with ready() as one:
        yield one


@pytest.fixture
def own():
    """A checker whose process is ready, for tests that end it."""
    with ready() as one:
        yield one


def begun(one):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        try:
            one.question(body(WRONG))
        except Invalid:
            return
        time.sleep(0.05)
    raise AssertionError("the process did not begin")


def directly(db, raw):
    """Return what the service says of a body when it checks alone."""
    try:
        question = exchange.question(raw)
    except Refused as refused:
        return {"refused": [refused.refusal.status, refused.refusal.code, refused.refusal.message]}
    context = Context(db=db, asker=Asker(owner=True), clock=system)
    response = schema.respond(question.document, question.variables, question.operation, context)
    return {} if "data" in response else {"response": response}


@pytest.mark.parametrize("raw", attacks.BODIES.values(), ids=attacks.BODIES)
def test_it_refuses_as_the_schema_does(db, raw):
    said = checker.answer(raw, reads=False, streams=False)

    assert said == directly(db, raw)
    assert said, "refused"


@pytest.mark.parametrize("path", DOCUMENTS, ids=[path.stem for path in DOCUMENTS])
def test_it_lets_the_documents_of_the_project_pass(path):
    document = path.read_text()
    variables = json.loads(document.splitlines()[1].removeprefix("# variables: "))

    assert checker.answer(body(document, variables), reads=False, streams=True) == {}


def test_it_checks_variables_and_executes_nothing():
    document = "query ($first: PageSize!) { sessions(first: $first) { totalCount } }"

    assert checker.answer(body(document, {"first": 3}), reads=False, streams=False) == {}
    said = checker.answer(body(document, {"first": -3}), reads=False, streams=False)
    assert "first" in said["response"]["errors"][0]["message"]


def test_subscriptions_are_checked_where_they_are_answered(db):
    wrong = body("subscription { nothing }")

    assert checker.answer(wrong, reads=False, streams=False) == {}, "who executes it says where to go"
    said = checker.answer(wrong, reads=False, streams=True)
    context = Context(db=db, asker=Asker(owner=True), clock=system)
    assert said == {"response": schema.respond("subscription { nothing }", {}, None, context, reader=Reader())}


def test_bugs_are_left_to_who_logs_them(monkeypatch):
    def bug(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("graphsvc.api.limits.check_nodes", bug)

    assert checker.answer(body("{ stats { position } }"), reads=False, streams=False) == {}


def test_only_what_is_large_or_new_is_looked_at(process, monkeypatch):
    monkeypatch.setattr(process, "_look", lambda *_, **__: pytest.fail("looked"))
    known = "{ stats { position } } #" + "x" * checker.SMALL
    schema.check(known, {}, None)

    assert process.question(body("{ nothing }")).document == "{ nothing }"
    assert process.question(body(known)).document == known
    with pytest.raises(pytest.fail.Exception):
        process.question(body(known + "new"))
    with pytest.raises(pytest.fail.Exception):
        process.question(body(known, {"large": "x" * checker.LARGE}))


def test_the_process_refuses_bodies_and_documents(process):
    with pytest.raises(Refused, match="no JSON"):
        process.question(b"[" * 60_000)
    with pytest.raises(Invalid) as invalid:
        process.question(body("{ " + "a " * 600 + "}"))
    assert invalid.value.response["errors"][0]["extensions"]["limit"] == "fields"


def test_a_request_that_may_only_read_is_refused_its_mutation(process):
    document = (
        "mutation { "
        + " ".join(f'a{i}: revoke_decision(id: "decision-{i}") {{ __typename }}' for i in range(20))
        + " }"
    )
    asked = exchange.asked([("query", document)])

    with pytest.raises(Invalid) as invalid:
        process.checked(asked)
    assert invalid.value.response["errors"][0]["extensions"]["code"] == "METHOD"


def test_what_was_checked_is_not_looked_at_again(process, monkeypatch):
    question = process.question(body("{ stats { position } } #" + "y" * checker.SMALL))

    monkeypatch.setattr(process, "_look", lambda *_, **__: pytest.fail("looked"))
    assert process.checked(question).document == question.document


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_service_checks_alone_while_the_process_is_not_there(own, monkeypatch, fault):
    monkeypatch.setattr(checker, "LOOK_S", 0.3)
    before = own._child.process.pid
    os.kill(before, fault)

    assert own.question(body(WRONG)).document == WRONG
    assert own._child is None
    assert own.question(body(WRONG)).document == WRONG, "not begun again at once"
    monkeypatch.setattr(checker, "PAUSE_S", 0)
    monkeypatch.setattr(checker, "LOOK_S", 5)
    begun(own)
    assert own._child.process.pid != before


def test_an_answer_is_never_taken_for_the_answer_to_another(own, monkeypatch):
    class Late(BaseException):
        pass

    def interrupted(*_):
        raise Late

    with monkeypatch.context() as patched:
        patched.setattr("graphsvc.server.checker.json.loads", interrupted)
        with pytest.raises(Late):
            own._look(body(WRONG))

    assert own._child is None


def test_the_process_ends_with_the_service(serving, talk):
    talk.session("s").user("the harbour opens at nine")
    service = serving()
    end = time.monotonic() + DEADLINE_S
    while not (pids := children(service.process.pid)) and time.monotonic() < end:
        assert service.post(body(WRONG)).status < 500
    [pid] = pids

    service.process.kill()
    while lives(pid) and time.monotonic() < end:
        time.sleep(0.05)

    assert not lives(pid)


def children(pid):
    return [int(one) for path in Path(f"/proc/{pid}/task").glob("*/children") for one in path.read_text().split()]


def lives(pid):
    path = Path(f"/proc/{pid}/stat")
    return path.exists() and path.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_process_that_was_never_asked_ends_in_silence(tmp_path):
    """Its word that it is ready lies unread when the service is gone."""
    here, there = socket.socketpair()
    with there, (tmp_path / "stderr").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-P", "-m", "graphsvc.server.checker"], stdin=there, stderr=log)
    with here:
        assert select.select([here], [], [], DEADLINE_S)[0], "ready"

    process.wait(DEADLINE_S)
    assert (tmp_path / "stderr").read_bytes() == b""
    assert process.returncode == 0

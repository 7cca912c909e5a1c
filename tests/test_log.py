"""What the service logs: one line of JSON an event, and nothing of what anybody asked, said or sent."""

from __future__ import annotations

import json
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from forks import sooner

from graphsvc.api.limits import ERRORS

PING = "{ __typename }"


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_nothing_is_logged_while_all_is_well(serving):
    service = serving()

    service.query(PING)
    service.query("{ wrong }")

    assert service.end() == ""


def test_each_request_is_one_line_at_info(serving, home):
    service = serving(env={"GRAPHSVC_LOG": "info"})
    answer = service.query(PING)
    service.query(PING, {"Graphsvc-Viewer": "s1"})
    service.query(PING, {"Graphsvc-Viewer": "s1"})
    service.query(PING, {"Graphsvc-Viewer": "s2"})
    service.ask("GET", "/health")
    service.ask("BREW", "/tea", headers={"Authorization": f"Bearer {service.token}"})
    service.post(b"1", {"Authorization": "Bearer wrong"})

    first, *requests, last = lines(service.end())

    assert first["event"] == "start"
    assert first["pid"] == service.process.pid
    assert last["event"] == "stop"
    assert [(one["method"], one["path"], one["status"]) for one in requests] == [
        *[("POST", "/graphql", 200)] * 4,
        ("GET", "/health", 200),
        ("other", "other", 404),
        ("POST", "/graphql", 401),
    ]
    assert set(requests[0]) == {
        "time", "level", "event", "request", "method", "path", "status", "ms", "bytes", "viewer"
    }  # fmt: skip
    assert requests[0]["bytes"] == len(answer.body)
    assert requests[0]["request"] == answer.headers["graphsvc-request"]
    assert len({one["request"] for one in requests}) == len(requests)
    assert [one["viewer"] for one in requests[:4]] == [
        None,
        requests[1]["viewer"],
        requests[1]["viewer"],
        requests[3]["viewer"],
    ]
    assert len({one["viewer"] for one in requests[:4]}) == 3


def test_log_may_go_to_a_file_of_the_owners(serving, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "before"}\n')
    path.chmod(0o600)
    service = serving("--log", str(path), env={"GRAPHSVC_LOG": "info"})
    service.query(PING)

    assert service.end() == ""
    assert [one["event"] for one in lines(path.read_text())] == ["before", "start", "request", "stop"]


def test_new_log_file_is_the_owners_alone(serving, tmp_path):
    serving("--log", str(tmp_path / "new.jsonl")).end()

    assert stat.S_IMODE((tmp_path / "new.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "env", "names"),
    [(["--log", "no/such/folder/log"], {}, "log"), ([], {"GRAPHSVC_LOG": "loud"}, "GRAPHSVC_LOG")],
)
def test_log_that_cannot_be_is_refused_before_the_service_starts(run, home, arguments, env, names):
    ran = run("serve", "--port", "0", *arguments, env=env)

    assert ran.code == 2
    assert names in ran.err
    assert "allowed" in ran.err


CANARY = "wombat7391"
SECONDS = 2  # for a request, where a test waits for their end
BROKEN = '''
"""Put a bug wherever a test asks for one by its environment."""
import asyncio, logging, os, sys, threading, warnings
from graphsvc.api import limits, schema
from graphsvc.recall import answer, index
from graphsvc.server import app, exchange, guard

def bug(*_, **__):
    raise ValueError(os.environ["CANARY"])

async def later():
    bug()

where = os.environ["BUG"]
if where == "resolver":
    answer.answer = bug
elif where == "extension":
    limits.check_nodes = bug
elif where == "encoding":
    exchange.encoded = bug
elif where == "middleware":
    guard.Guard.refuses = lambda self, scope: bug() if scope["path"] == "/graphql" else None
elif where == "route":
    app.exchange.accepted_type = bug
elif where == "index":
    index.catch_up = bug
elif where == "spin":
    def spin(*_, **__):
        while True:
            sum(range(1_000))
    answer.answer = spin
elif where == "libraries":
    def talk(*_, **__):
        word = os.environ["CANARY"]
        for name in ("strawberry.execution", "uvicorn.error", "uvicorn.access", "asyncio", "elsewhere"):
            logger = logging.getLogger(name)
            logger.error(word)
            logger.warning("%s", word)
            logger.debug(f"{word}")
            try:
                bug()
            except ValueError as error:
                logger.error(error, exc_info=True)
        warnings.warn(word)
        thread = threading.Thread(target=bug)
        thread.start()
        thread.join()
        asyncio.run_coroutine_threadsafe(later(), loops[0])
        class Gone:
            def __del__(self):
                bug()
        Gone()
        raise ValueError(word)
    loops = []
    accepted = exchange.accepted_type
    def noted(accept):
        loops.append(asyncio.get_running_loop())
        return accepted(accept)
    exchange.accepted_type = noted
    answer.answer = talk
'''


@pytest.fixture
def broken(serving):
    """Start a service that has a bug at one place; its errors say the canary."""

    def start(where, level="debug", before=""):
        return serving(env={"BUG": where, "CANARY": CANARY, "GRAPHSVC_LOG": level}, before=BROKEN + before)

    return start


@pytest.mark.parametrize(
    ("where", "status", "fields"),
    [
        ("resolver", 200, "field search"),
        ("extension", 200, "a document"),
        ("encoding", 500, "the service"),
        ("middleware", 500, "the service"),
        ("route", 500, "the service"),
    ],
)
def test_bug_is_answered_and_logged_under_one_id_without_its_text(broken, where, status, fields):
    service = broken(where)

    answer = service.query(f'{{ {CANARY}: search(query: "{CANARY}") {{ __typename }} }}')
    [bug] = [one for one in lines(service.end()) if one["event"] == "bug"]

    assert answer.status == status
    assert answer.code == "BUG"
    assert bug["correlation_id"] in answer.json["errors"][0]["message"]
    assert bug["request"] == answer.headers["graphsvc-request"]
    assert bug["where"] == fields
    assert bug["error"] == "ValueError"
    assert "in bug" in bug["frames"]
    assert CANARY not in json.dumps(bug)
    assert CANARY not in json.dumps(answer.json["errors"][0]["message"])


def test_work_without_end_is_ended_and_is_no_bug(broken):
    service = broken("spin", "error", sooner("graphsvc.server.app", REQUEST_S=SECONDS))
    spins = "{ search { __typename } }"

    with ThreadPoolExecutor(6) as threads:
        mine = [threads.submit(service.query, spins, {"Graphsvc-Viewer": "me"}) for _ in range(6)]
        time.sleep(0.5)
        begun = time.monotonic()
        other = service.query(PING, {"Graphsvc-Viewer": "another"})
        seconds = time.monotonic() - begun

    assert {(one.result().status, one.result().code) for one in mine} == {(504, "DEADLINE")}
    assert other.status == 200
    assert seconds < SECONDS
    assert service.query(PING, {"Graphsvc-Viewer": "me"}).status == 200, "the threads are free again"
    assert service.end() == ""


def test_bug_of_every_row_is_logged_a_few_times_under_one_id(broken):
    service = broken("resolver", "error")

    answer = service.query("{ " + " ".join(f"a{i}: search {{ __typename }}" for i in range(28)) + " }")
    bugs = lines(service.end())

    assert answer.json["data"] is None or set(answer.json["data"].values()) == {None}
    assert {one["correlation_id"] for one in bugs} == {answer.json["errors"][0]["extensions"]["correlation_id"]}
    assert 0 < len(bugs) <= ERRORS
    assert len(answer.json["errors"]) <= ERRORS + 1


def test_bug_of_the_index_is_logged_and_does_not_end_it(broken):
    service = broken("index", "error")

    assert service.query(PING).status == 200
    while not (line := json.loads(service.process.stderr.readline())):
        pass
    again = json.loads(service.process.stderr.readline())

    assert [line["where"], again["where"]] == ["the index"] * 2
    assert line["error"] == "ValueError"


def test_libraries_and_what_nobody_catches_tell_only_where(broken):
    service = broken("libraries")

    service.query("{ stats { events } search { __typename } }")
    text = service.end()
    told = lines(text)

    assert CANARY not in text
    assert {one["logger"] for one in told if one["event"] == "library"} >= {
        "strawberry.execution", "uvicorn.error", "uvicorn.access", "asyncio", "elsewhere", "py.warnings"
    }  # fmt: skip
    assert {one["where"].split("-")[0] for one in told if one["event"] == "bug"} >= {
        "thread Thread", "a callback", "field search"
    }  # fmt: skip


def test_nothing_that_anybody_sends_is_logged(serving, talk):
    talk.user(f"the {CANARY} sleeps")
    service = serving(env={"GRAPHSVC_LOG": "debug"})
    token = {"Authorization": f"Bearer {service.token}"}
    document = "query Q($w: String) { search(query: $w) { ... on SearchResult { results { body } } } }"

    found = service.query(document, w=CANARY)
    service.query(f'query {CANARY} {{ {CANARY}: search(query: "{CANARY}") {{ __typename }} }}')
    service.query(f"{{ {CANARY} }}")
    service.query(f"{{ {CANARY} ")
    service.query("query ($n: Int!) { nav(verb: ls, limit: $n) { __typename } }", n=CANARY)
    service.post(json.dumps({"query": PING, "operationName": CANARY}).encode())
    service.post(json.dumps({"query": PING, CANARY: CANARY}).encode())
    service.post(f'{{"query": "{CANARY}'.encode())
    service.post(CANARY.encode(), {"Content-Type": f"text/{CANARY}"})
    service.post(b"{}", {"Accept": f"text/{CANARY}"})
    service.query(PING, {"Graphsvc-Viewer": CANARY, "Graphsvc-Project": CANARY, "Graphsvc-Cwd": CANARY})
    service.query(PING, {"Origin": f"http://{CANARY}", "User-Agent": CANARY, "Cookie": CANARY})
    service.query(PING, {"Host": CANARY})
    service.query(PING, {"Authorization": f"Bearer {CANARY}"})
    service.post(b"{}", path=f"/graphql?query={CANARY}")
    service.ask("GET", f"/{CANARY}", headers=token)
    service.ask(CANARY, "/graphql", headers=token)
    service.send(f"GET /{CANARY} HTTP/1.1\r\n{CANARY}\r\n\r\n".encode())
    service.send(f"{CANARY}\r\n\r\n".encode())
    service.send(f"POST /graphql HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{CANARY}\r\n".encode(), read=10)
    text = service.end()

    assert CANARY in json.dumps(found.json), "it was asked and found"
    assert CANARY.lower() not in text.lower()
    assert service.token not in text
    assert sum(one["event"] == "request" for one in lines(text)) >= 17

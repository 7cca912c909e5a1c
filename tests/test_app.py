"""The service: who gets in, what a request must look like, and that it answers as the store does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from urllib.parse import quote

import httpx
import pytest
from forks import sooner
from serving import serving

from graphsvc import clock
from graphsvc.api import schema
from graphsvc.client import executor, tool
from graphsvc.client.token import make_token, read_token
from graphsvc.config import Settings
from graphsvc.errors import InvalidInput, ServiceError, StoreError
from graphsvc.recall.scope import Asker
from graphsvc.server import exchange
from graphsvc.server.app import application
from graphsvc.server.connections import MOST
from graphsvc.server.guard import App, hosts
from graphsvc.server.service import serve
from graphsvc.server.workers import THREADS, Workers
from graphsvc.store import database

PORT = 8123
OWNER = Asker(owner=True, session_id=None, project=None, cwd=None)
PING = {"query": "{ __typename }"}
BOTH = ["application/json", "application/graphql-response+json"]


@pytest.fixture
def token(settings):
    return make_token(settings)


@contextmanager
def asked(settings):
    """Yield what asks an app of this home as its owner."""
    token = make_token(settings)
    app = application(settings, token=token, names=hosts(PORT))
    yield Http(app, {"Authorization": f"Bearer {token}"})
    asyncio.run(end(app))


async def end(app):
    """Tell the app that the server starts and stops, as a server does."""
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(messages)

    async def send(message):
        assert message["type"].endswith(".complete")

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)


@dataclass(frozen=True)
class Http:
    """Asks the app without a network, so that a test may send any header."""

    app: App
    headers: Mapping[str, str]

    def request(self, method, path, **more):
        async def send():
            transport = httpx.ASGITransport(app=self.app)
            base = f"http://127.0.0.1:{PORT}"
            async with httpx.AsyncClient(transport=transport, base_url=base, headers=self.headers) as opened:
                return await opened.request(method, path, **more)

        return asyncio.run(send())

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path="/graphql", **more):
        return self.request("POST", path, **more)


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    """For tests that store nothing."""
    with asked(Settings(home=tmp_path_factory.mktemp("app") / "home")) as http:
        yield http


@pytest.fixture
def fresh(settings):
    """Asks about the store of the test."""
    with asked(settings) as http:
        yield http


@pytest.fixture
def stranger(http):
    """Has no token."""
    return replace(http, headers={})


def problem(response):
    return response.json()["errors"][0]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 200, None),
        ({"Host": f"localhost:{PORT}"}, 200, None),
        ({"Host": f"LOCALHOST:{PORT}"}, 200, None),
        ({"Host": f"[::1]:{PORT}"}, 200, None),
        ({"Host": "127.0.0.1"}, 421, "HOST"),
        ({"Host": f"127.0.0.1:{PORT + 1}"}, 421, "HOST"),
        ({"Host": f"evil.example:{PORT}"}, 421, "HOST"),
        ({"Host": f"127.0.0.1.evil.example:{PORT}"}, 421, "HOST"),
        ({"Host": ""}, 421, "HOST"),
        ({"Origin": f"http://localhost:{PORT}"}, 200, None),
        ({"Origin": f"https://localhost:{PORT}"}, 403, "ORIGIN"),
        ({"Origin": "http://localhost"}, 403, "ORIGIN"),
        ({"Origin": "null"}, 403, "ORIGIN"),
        ({"Origin": ""}, 403, "ORIGIN"),
        ({"Origin": f"http://evil.example:{PORT}"}, 403, "ORIGIN"),
        ({"Host": f"evil.example:{PORT}", "Origin": f"http://evil.example:{PORT}"}, 421, "HOST"),
        ({"Authorization": ""}, 401, "TOKEN"),
        ({"Authorization": "Bearer wrong"}, 401, "TOKEN"),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, 401, "TOKEN"),
    ],
)
def test_guard_lets_only_the_owner_in_under_our_names(http, headers, status, code):
    response = http.post(json=PING, headers=headers)

    assert response.status_code == status
    if code:
        assert problem(response)["extensions"]["code"] == code
        assert problem(response)["message"]


def test_repeated_host_or_token_is_refused(http):
    assert http.post(json=PING, headers=[("Host", f"localhost:{PORT}"), ("Host", "evil")]).status_code == 421
    twice = [*http.headers.items()] * 2
    assert http.post(json=PING, headers=twice).status_code == 401


def test_health_needs_no_token_but_our_name(stranger):
    assert stranger.get("/health").status_code == 200
    assert stranger.get("/health", headers={"Host": "evil.example"}).status_code == 421


def test_health_says_nothing_but_that_it_is_well(http):
    health = http.get("/health").json()

    assert set(health) == {"status", "version", "graph"}
    assert health["graph"] == {"status": "building", "position": 0}


def test_other_paths_and_methods_are_json_errors(http):
    assert problem(http.get("/other"))["extensions"]["code"] == "NOT_SERVED"
    assert http.get("/graphql", headers={"Accept": "application/json"}).status_code == 405
    assert problem(http.request("DELETE", "/graphql"))["message"]


@pytest.mark.parametrize("body", [
    b"1", b"null", b"[]", b'"x"', b"", b"{", b"\xff\xfe", b'{"query": "\xff"}', b"[" * 60_000, b'{"query":' * 60_000,
    b'{"query": "{ __typename }", "variables": ' + b"[" * 300 + b"]" * 300 + b"}",
    b'{"query": 1}', b"{}", b'{"query": ""}', b'{"query": null}', b'{"query": "{ __typename }", "variables": []}',
    b'{"query": "{ __typename }", "operationName": 1}', b'{"query": "{ __typename }", "extensions": "x"}',
    b'{"query": "{ __typename }", "variables": {"x": NaN}}',
    b'{"query": "{ __typename }", "variables": {"x": ' + b"9" * 5000 + b"}}",
    b"\xef\xbb\xbf{}", b'{"query": "' + b"#" * 70_000 + b'"}',
])  # fmt: skip
def test_body_that_is_no_request_is_400(http, body):
    response = http.post(content=body, headers={"Content-Type": "application/json"})

    assert response.status_code == 400
    assert problem(response)["message"]


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/json; charset=latin-1"],
)
def test_other_content_types_are_refused(http, content_type):
    assert http.post(content=b"{}", headers={"Content-Type": content_type}).status_code == 415


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, BOTH[0]), ("*/*", BOTH[0]), ("application/*", BOTH[0]), (BOTH[0], BOTH[0]), (BOTH[1], BOTH[1]),
        (f"{BOTH[1]}, {BOTH[0]};q=0.9", BOTH[1]), (f"{BOTH[1]};q=0.5, {BOTH[0]}", BOTH[0]),
        ("text/html, */*;q=0.1", BOTH[0]),
        (f"{BOTH[0]};q=0, {BOTH[1]}", BOTH[1]), ("application/json; charset=utf-8", BOTH[0]),
    ],
)  # fmt: skip
def test_media_type_is_negotiated(accept, chosen):
    assert exchange.accepted_type(accept) == chosen


def test_no_acceptable_media_type_is_406(http):
    assert http.post(json=PING, headers={"Accept": "text/html"}).status_code == 406


@pytest.mark.parametrize("request_error", [
    {"query": "{"}, {"query": "{ nothing }"}, {"query": "query a { __typename }", "operationName": "b"},
    {"query": "query ($n: Int!) { nav(verb: ls, limit: $n) { __typename } }", "variables": {"n": "x"}},
])  # fmt: skip
@pytest.mark.parametrize(("media_type", "status"), [(BOTH[0], 200), (BOTH[1], 400)])
def test_request_error_has_no_data_and_the_status_of_its_media_type(http, request_error, media_type, status):
    response = http.post(json=request_error, headers={"Accept": media_type})

    assert response.status_code == status
    assert response.headers["content-type"] == f"{media_type}; charset=utf-8"
    assert list(response.json()) == ["errors"]


def test_large_body_is_refused_while_it_arrives(http):
    async def endless():
        while True:
            yield b" " * 65_536

    assert http.post(content=endless(), headers={"Content-Type": "application/json"}).status_code == 413
    announced = {"Content-Type": "application/json", "Content-Length": str(2**40)}
    assert http.post(content=b"{}", headers=announced).status_code == 413


def test_capture_may_be_larger(fresh):
    event = {"session_id": "s", "kind": "user_message", "origin": "o", "body": "x" * 2**21, "project": "/srv/p"}
    mutation = "mutation ($events: [EventInput!]!) { capture(events: $events) { accepted } }"
    request = {"query": mutation, "variables": {"events": [event]}}

    assert fresh.post(json=request).status_code == 413
    assert fresh.post(json=request, headers={executor.CAPTURE: "1"}).json()["data"]["capture"]["accepted"] == 1


def test_viewer_header_says_as_whom_the_owner_asks(fresh, db, talk):
    talk.session("港口").isolated()
    talk.user("the harbour is closed")
    request = {"query": '{ search(query: "harbour") { ... on SearchResult { results { body } } } }'}

    own = fresh.post(json=request, headers={executor.VIEWER: quote("港口")}).json()
    others = fresh.post(json=request).json()

    assert "the harbour is closed" in json.dumps(own)
    assert "the harbour is closed" not in json.dumps(others)


@pytest.mark.parametrize("value", ["%FF", "%00"])
def test_identity_header_that_is_no_text_is_400(http, value):
    assert http.post(json=PING, headers={executor.VIEWER: value}).status_code == 400


def test_token_is_made_once_and_is_the_owners_alone(settings):
    before = os.umask(0)
    try:
        token = make_token(settings)
    finally:
        os.umask(before)

    assert make_token(settings) == token
    assert stat.S_IMODE(settings.token_file.stat().st_mode) == 0o600
    assert [path.name for path in settings.home.iterdir()] == ["token"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_token_that_others_may_read_is_refused(settings, token, mode):
    settings.token_file.chmod(mode)

    with pytest.raises(StoreError, match="chmod 600"):
        read_token(settings)


def test_token_behind_a_link_is_refused(settings, token, tmp_path):
    settings.token_file.rename(tmp_path / "elsewhere")
    settings.token_file.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="symbolic link"):
        read_token(settings)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])  # noqa: S104 # what is refused
def test_only_loopback_is_served(settings, host):
    with pytest.raises(InvalidInput, match="other machines"):
        serve(settings, host=host)


def test_file_in_the_place_of_the_socket_is_not_removed(settings, token):
    settings.socket.write_text("mine")

    with pytest.raises(StoreError, match="in the way"):
        serve(settings)
    assert settings.socket.read_text() == "mine"


def test_socket_that_somebody_listens_at_is_refused(settings, token):
    with closing(socket.socket(socket.AF_UNIX)) as other, executor.address(settings.socket) as name:
        other.bind(name)
        other.listen()

        with pytest.raises(StoreError, match="already"):
            serve(settings)


@pytest.fixture
def service(forks, home):
    """Start a service in a process of its own: `service()`."""
    with ExitStack() as stack:
        yield lambda before="": stack.enter_context(serving(forks, home, before=before))


def over_tcp(url, token, document):
    host, port = url.removeprefix("http://").split(":")
    with closing(HTTPConnection(host, int(port), timeout=30)) as connection:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        connection.request("POST", "/graphql", json.dumps({"query": document}), headers)
        return json.loads(connection.getresponse().read())


def test_service_answers_on_both_sockets_as_the_store_does(service, settings, talk, tmp_path):
    talk.user("the harbour opens at nine \ud800")
    talk.wrote("docs/harbour.md")
    served = service()
    ready = json.loads((tmp_path / "ready.json").read_text())
    asked = [
        {"query": "harbour"},
        {"nav": "ls"},
        {"nav": "cd", "target": "event-1"},
        {"nav": "cat", "target": "404"},
        {"project": "?"},
    ]

    by_service, by_store = executor.http(settings, OWNER), executor.in_process(settings, OWNER)

    assert ready["pid"] == served.process.pid
    assert ready["socket"] == str(settings.socket)
    assert stat.S_IMODE(settings.socket.stat().st_mode) == 0o600
    assert [tool.call(one, by_service) for one in asked] == [tool.call(one, by_store) for one in asked]
    assert over_tcp(ready["url"], read_token(settings), "{ __typename }") == {"data": {"__typename": "Query"}}
    assert "errors" in over_tcp(ready["url"], "wrong", "{ __typename }")


def test_large_text_does_not_end_every_search(service, settings, talk):
    talk.assistant("noise " * 4_000_000)
    talk.user("the harbour opens at nine")
    service()
    execute = executor.http(settings, OWNER)

    first = json.loads(tool.call({"query": "harbour"}, execute)[0])
    end = time.monotonic() + 60
    while (found := json.loads(tool.call({"query": "noise"}, execute)[0]))["status"] != "found":
        assert time.monotonic() < end
        time.sleep(0.1)

    assert [hit["id"] for hit in first["results"]] == ["event-2"]
    assert [hit["id"] for hit in found["results"]] == ["event-1"]


def test_what_the_service_stores_is_indexed_behind_the_request(service, settings, db):
    service()
    event = '{session_id: "s", kind: "user_message", origin: "o", body: "harbour", project: "/srv/p"}'

    executor.http(settings, OWNER)(f"mutation {{ capture(events: [{event}]) {{ accepted }} }}", {})

    end = time.monotonic() + 30
    while db.execute("SELECT MAX(position) FROM read_models").fetchone()[0] != 1:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_request_never_writes_the_index(fresh, db, talk):
    talk.user("the harbour opens at nine")

    answer = fresh.post(json={"query": '{ search(query: "harbour") { ... on SearchResult { results { id } } } }'})

    assert answer.json()["data"]["search"]["results"] == [{"id": "event-1"}]
    assert db.execute("SELECT COUNT(*) FROM read_models WHERE name = 'words'").fetchone()[0] == 0


def test_ready_file_of_a_dead_service_is_gone_before_the_next_one_starts(settings, token, tmp_path):
    ready = tmp_path / "ready.json"
    ready.write_text("{}")
    settings.socket.write_text("in the way: the start fails")

    with pytest.raises(StoreError):
        serve(settings, ready_file=ready)
    assert not ready.exists()


def test_store_that_cannot_be_opened_is_refused_before_anything_listens(settings, token):
    settings.database.write_bytes(b"no database " * 1000)

    with pytest.raises(StoreError, match=r"graphsvc\.db"):
        serve(settings)
    assert not settings.socket.exists()


def test_connections_that_ask_nothing_keep_nobody_out(service, settings):
    url = service(sooner("graphsvc.server.connections", HEAD_S=2)).url
    host, port = url.removeprefix("http://").split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(MOST + 10)]
    try:
        assert "data" in over_tcp(url, read_token(settings), "{ __typename }")
        assert executor.http(settings, OWNER)("{ __typename }", {})
        idle[-1].settimeout(2 + 5)
        idle[-1].sendall(b"GET /hea")
        with suppress(ConnectionResetError):
            assert idle[-1].recv(1) == b"", "it is closed in the end"
    finally:
        for one in idle:
            one.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_service_leaves_nothing_behind(settings, tmp_path, number):
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "graphsvc", "serve", "--port", "0", "--ready-file", str(ready), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert json.loads(process.stdout.readline()) == json.loads(ready.read_text())

            process.send_signal(number)

            assert process.wait(30) == 0
            assert not settings.socket.exists()
            assert not ready.exists()
            assert process.stderr.read() == b""
        finally:
            process.kill()


def test_second_service_of_a_home_is_refused_and_a_dead_one_is_replaced(service, settings):
    process = service().process

    with pytest.raises(StoreError, match="already"):
        serve(settings)
    process.kill()
    process.wait()
    assert settings.socket.exists()
    (settings.home.parent / "ready.json").unlink()
    service()

    assert executor.http(settings, OWNER) is not None


def test_service_that_dies_is_replaced_by_the_store_for_queries_only(service, settings, talk):
    talk.user("the harbour opens at nine")
    process = service().process
    execute = executor.connect(settings, OWNER)
    process.kill()
    process.wait()

    assert tool.call({"query": "harbour"}, execute)[1] == 0
    with pytest.raises(ServiceError):
        execute("mutation { capture(events: []) { accepted } }", {})


def test_bug_reaches_neither_log_nor_answer_with_what_was_said(service, settings):
    served = service()
    database.connect(settings).close()
    over_tcp(served.url, read_token(settings), '{ search(query: "canary-one") { __typename } }')
    over_tcp(served.url, "canary-two", "{ __typename }")
    over_tcp(served.url, read_token(settings), "{ canary_three }")

    served.process.send_signal(signal.SIGTERM)
    served.process.wait()

    assert b"canary" not in served.process.stderr.read()


def test_request_that_takes_too_long_is_stopped_and_others_are_answered(settings, token):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"

    async def run():
        workers = Workers(settings)
        begun = time.monotonic()
        slow = [workers.run(lambda db: db.execute(endless).fetchone(), 0.5) for _ in range(THREADS)]
        results = await asyncio.gather(*slow, return_exceptions=True)
        after = await workers.run(lambda db: db.execute("SELECT 1").fetchone()[0], 5)
        await asyncio.to_thread(workers.close)
        return results, after, time.monotonic() - begun

    results, after, seconds = asyncio.run(run())

    assert all(isinstance(result, Exception) for result in results)
    assert after == 1
    assert seconds < 5


def test_end_of_the_time_is_no_bug(settings, talk, caplog):
    talk.user("the harbour opens at nine")

    def ask(db):
        context = schema.Context(db=db, asker=OWNER, clock=clock.system)
        return schema.respond("{ stats { events } }", {}, None, context)

    def late(db):
        db.set_progress_handler(lambda: True, 1)
        return ask(db)

    async def run():
        workers = Workers(settings)
        answer = await workers.run(late, 5)
        await asyncio.to_thread(workers.close)
        return answer

    answer = asyncio.run(run())

    assert answer["errors"][0]["extensions"] == {"code": "DEADLINE"}
    assert caplog.text == ""

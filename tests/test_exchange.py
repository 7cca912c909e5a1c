"""Requests that are none, over a real socket: each is refused in words, and the service goes on answering."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from http.client import HTTPConnection
from itertools import islice
from urllib.parse import urlencode

import pytest
from forks import sooner
from graphql import get_named_type, is_composite_type

from graphsvc.api import schema
from graphsvc.api.limits import LIMITS
from graphsvc.client import executor
from graphsvc.recall.scope import Asker
from graphsvc.store import database

PING = b'{"query": "{ __typename }"}'
VALUE = "query ($w: String) { search(query: $w) { __typename ... on InvalidInput { field } } }"


def query(document, **variables):
    return json.dumps({"query": document, "variables": variables}).encode()


BODIES = {
    "a number": (b"1", 400, "BAD_REQUEST"),
    "null": (b"null", 400, "BAD_REQUEST"),
    "true": (b"true", 400, "BAD_REQUEST"),
    "a text": (b'"{ __typename }"', 400, "BAD_REQUEST"),
    "nothing": (b"", 400, "BAD_REQUEST"),
    "no JSON": (b"{", 400, "BAD_REQUEST"),
    "no UTF-8": (b'{"query": "\xff"}', 400, "BAD_REQUEST"),
    "UTF-16": ('{"query": "{ __typename }"}'.encode("utf-16"), 400, "BAD_REQUEST"),
    "a batch": (b"[" + PING + b"," + PING + b"]", 400, "BATCH"),
    "an empty batch": (b"[]", 400, "BATCH"),
    "60,000 arrays": (b"[" * 60_000, 400, "BAD_REQUEST"),
    "60,000 arrays that end": (b"[" * 60_000 + b"]" * 60_000, 400, "BAD_REQUEST"),
    "60,000 objects": (b'{"a":' * 60_000, 400, "BAD_REQUEST"),
    "arrays in variables": (query(VALUE, w=json.loads("[" * 150 + "]" * 150)), 400, "BAD_REQUEST"),
    "30 MB": (b" " * 30_000_000, 413, "TOO_LARGE"),
    "a number of 5,000 digits": (PING[:-1] + b', "variables": {"n": ' + b"9" * 5_000 + b"}}", 400, "BAD_REQUEST"),
    "NaN": (PING[:-1] + b', "variables": {"n": NaN}}', 400, "BAD_REQUEST"),
    "a document of 70,000 characters": (query("{ __typename }" + " " * 70_000), 400, "TOO_EXPENSIVE"),
}  # fmt: skip


@pytest.fixture
def before():
    """What the service does first; a test that waits for its deadlines gives another."""
    return ""


@pytest.fixture
def service(serving, before):
    service = serving(env={"GRAPHSVC_LOG": "error"}, before=before)
    yield service
    assert service.query("{ __typename }").json == {"data": {"__typename": "Query"}}, "it goes on answering"
    assert service.end() == "", "no bug was logged"


def test_bodies_that_are_no_request(service):
    for name, (body, status, code) in BODIES.items():
        answer = service.post(body)

        assert (answer.status, answer.code) == (status, code), name
        assert answer.headers["content-type"].startswith("application/json"), name
        assert answer.json["errors"][0]["message"], name


def test_body_that_is_refused_is_not_read_to_its_end(service):
    head = (
        "POST /graphql HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    begun = time.monotonic()

    answer = service.send(
        head.format(port=service.port, token=service.token, length=30_000_000).encode() + b" " * 100_000
    )

    assert b" 413 " in answer.split(b"\r\n", 1)[0]
    assert time.monotonic() - begun < LIMITS["seconds"].most


@pytest.mark.parametrize("before", [sooner("graphsvc.server.app", REQUEST_S=1)], ids=["1s"])
def test_body_that_does_not_come_ends_with_the_time(service):
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {service.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n"
    )
    begun = time.monotonic()

    answer = service.send(head.encode() + b'{"query"', read=LIMITS["seconds"].most + 10)

    assert b" 504 " in answer.split(b"\r\n", 1)[0]
    assert time.monotonic() - begun < LIMITS["seconds"].most


def test_other_content_types(service):
    for content_type in (
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/graphql",
        "", "application/json, text/plain", "application/json; charset=utf-16", "application/jsonp",
    ):  # fmt: skip
        answer = service.post(PING, {"Content-Type": content_type})

        assert (answer.status, answer.code) == (415, "CONTENT_TYPE"), content_type


def test_texts_that_no_store_keeps_are_no_bug_in_any_argument(service):
    needed = {"nav": "verb: cd, ", "aggregate": "measure: events, "}
    fields = schema.schema._schema.query_type.fields
    arguments = [
        (field, name, argument.type)
        for field, about in fields.items()
        for name, argument in about.args.items()
        if get_named_type(argument.type).name in {"String", "ID", "Cursor", "DateTime", "TimeZone"}
    ]
    assert len(arguments) > 40

    for field, name, kind in arguments:
        inside = "{ __typename }" if is_composite_type(get_named_type(fields[field].type)) else ""
        document = f"query ($w: {kind}) {{ {field}({needed.get(field, '')}{name}: $w) {inside} }}"
        for word in ("\ud800", "a\0b", "\x85\u2028\U0010ffff", "x" * 100_000):
            answer = service.query(document, w=[word] if "[" in str(kind) else word)
            assert (answer.status, answer.code) != (200, "BUG"), (document, word[:9])
            assert answer.status == 200, (document, word[:9])
            assert len(answer.body) < 10_000


def test_text_with_a_nul_or_a_lone_surrogate_is_refused_by_the_tools_arguments(service):
    for word in ("\ud800", "a\0b", "\udfff" * 3):
        assert service.query(VALUE, w=word).json["data"]["search"] == {"__typename": "InvalidInput", "field": "query"}


def test_keys_and_names_may_be_any_text(service):
    assert service.post(json.dumps({"query": "{ __typename }", "\ud800": "\0"}).encode()).status == 200
    assert service.post(json.dumps({"query": "{ __typename }", "variables": {"\ud800": 1}}).encode()).status == 200
    assert "errors" in service.post(json.dumps({"query": "{ __typename }", "operationName": "\ud800"}).encode()).json
    assert "errors" in service.post(json.dumps({"query": "{ \ud800 }"}).encode()).json
    assert "errors" in service.post(json.dumps({"query": '{ search(query: "\ud800") { \0 } }'}).encode()).json


def test_one_asker_too_many_requests_is_told_so_and_others_are_answered(service, db):
    capture = query("mutation { capture(events: []) { position } }")
    mine = LIMITS["asker_waiting"].most

    with ThreadPoolExecutor(mine + 10) as threads, database.transaction(db):  # each capture waits for the lock
        asked = [threads.submit(service.post, capture, {executor.VIEWER: "me"}) for _ in range(mine + 10)]
        refused = [one.result() for one in islice(as_completed(asked), 10)]
        begun = time.monotonic()
        health = service.ask("GET", "/health")
        other = service.query("{ __typename }", {executor.VIEWER: "another"})
        seconds = time.monotonic() - begun

    assert {(one.status, one.code) for one in refused} == {(503, "BUSY")}
    assert {one.headers["retry-after"] for one in refused} == {"1"}
    assert f"{mine} requests of one asker" in refused[0].json["errors"][0]["message"]
    assert (health.status, other.status) == (200, 200)
    assert seconds < 2
    assert sorted(one.result().status for one in asked) == [200] * mine + [503] * 10
    assert service.post(capture, {executor.VIEWER: "me"}).json == {"data": {"capture": {"position": 0}}}


@pytest.mark.parametrize("before", [sooner("graphsvc.server.app", REQUEST_S=1)], ids=["1s"])
def test_lock_that_another_process_keeps_is_said_by_a_code(service, db):
    with database.transaction(db):
        answer = service.post(query("mutation { capture(events: []) { position } }"))

    assert (answer.status, answer.code) in {(200, "BUSY"), (504, "DEADLINE")}
    assert "try again" in answer.body.decode() or answer.status == 504


@pytest.mark.parametrize("before", [sooner("graphsvc.server.connections", READ_S=1)], ids=["1s"])
def test_answer_that_nobody_reads_is_given_up(service, talk):
    talk.assistant("tea " * 1_600_000)
    asked = query(
        '{ nav(verb: cat, target: "event-1", token_budget: 9000000) { ... on NavResult { items { label } } } }'
    )
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {service.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(asked)}\r\n\r\n"
    )

    with closing(socket.socket()) as connection:
        connection.settimeout(30)
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536
        )  # the kernel keeps little for who does not read
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(head.encode() + asked)
        time.sleep(1 + 2)
        read = 0
        with suppress(ConnectionError):
            while part := connection.recv(2**20):
                read += len(part)

    assert 0 < read < 6_400_000


def test_tool_waits_for_its_turn(service, settings, db):
    capture = query("mutation { capture(events: []) { position } }")
    mine = LIMITS["asker_waiting"].most
    ask = executor.http(settings, Asker())

    with ThreadPoolExecutor(mine + 2) as threads:
        with database.transaction(db):  # each capture waits for the lock
            asked = [threads.submit(service.post, capture) for _ in range(mine + 1)]
            assert next(as_completed(asked)).result().status == 503, "there is no place"
            waiting = threads.submit(ask, "{ __typename }", {})
            time.sleep(0.3)
            assert not waiting.done()
        assert waiting.result() == {"data": {"__typename": "Query"}}


def url(**parameters):
    return f"/graphql?{urlencode(parameters)}"


def test_query_may_stand_in_the_url(service):
    token = {"Authorization": f"Bearer {service.token}"}
    asked = url(query=VALUE, variables='{"w": "tea"}', operationName="")

    assert service.ask("GET", asked, headers=token).json == {"data": {"search": {"__typename": "SearchResult"}}}
    assert service.ask("HEAD", asked, headers=token).status == 200
    for parameters, status, code in (
        ({"query": ""}, 400, "BAD_REQUEST"),
        ({"query": "{ __typename }", "variables": "1"}, 400, "BAD_REQUEST"),
        ({"query": "{ __typename }", "variables": "{"}, 400, "BAD_REQUEST"),
        ({"query": "{ __typename }", "variables": "[" * 20_000}, 400, "BAD_REQUEST"),
        ({"query": "mutation { capture(events: []) { position } }"}, 405, "METHOD"),
    ):
        answer = service.ask("GET", url(**parameters), headers=token)
        assert (answer.status, answer.code) == (status, code), parameters
    twice = service.ask("GET", f"{asked}&query=%7B__typename%7D", headers=token)
    assert (twice.status, twice.code) == (400, "BAD_REQUEST")


@pytest.mark.parametrize("name", ["query", "qu%65ry", "x=1&query"])
def test_query_in_the_url_needs_the_token_as_any_other(service, name):
    for method in ("GET", "HEAD"):
        assert service.ask(method, f"/graphql?{name}=%7B__typename%7D").status == 401


def test_mutation_in_the_url_changes_nothing(service, db):
    event = '{session_id: "s", kind: "user_message", origin: "o", body: "tea", project: "/srv/p"}'
    document = f"query a {{ __typename }} mutation b {{ capture(events: [{event}]) {{ accepted }} }}"

    answer = service.ask(
        "GET", url(query=document, operationName="b"), headers={"Authorization": f"Bearer {service.token}"}
    )

    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert db.execute("SELECT COUNT(*) FROM events").fetchone()[0] == 0


def test_answers_on_a_kept_connection_do_not_wait(service):
    taken = []
    with closing(HTTPConnection("127.0.0.1", service.port, timeout=30)) as connection:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {service.token}"}
        for _ in range(30):
            begun = time.monotonic()
            connection.request("POST", "/graphql", PING, headers)
            assert connection.getresponse().read()
            taken.append(time.monotonic() - begun)

    assert min(taken[1:]) < 0.03, "the kernel holds back small packets for 40 ms unless told not to"

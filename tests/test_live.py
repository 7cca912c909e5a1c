"""Subscriptions over WebSocket and event streams: nothing twice, nothing missing, nothing that is for others."""

from __future__ import annotations

import json
import random
import signal
import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from urllib.parse import quote

import httpx
import pytest
from conftest import NOW, PROJECT
from forks import sooner
from serving import HTTP, STREAM, Socket, serving
from websockets.exceptions import ConnectionClosed

from graphsvc import resources
from graphsvc.api.limits import LIMITS
from graphsvc.client import executor
from graphsvc.clock import utc_text
from graphsvc.config import Settings
from graphsvc.memory import capture
from graphsvc.model import Event, EventKind
from graphsvc.server.connections import ENDING, MOST
from graphsvc.server.streams.answers import POLL_S
from graphsvc.server.streams.sockets import PROTOCOL, SLOW
from graphsvc.server.streams.sse import KEEP_S
from graphsvc.store import database, events
from graphsvc.web.documents import read

CAPTURED = """subscription ($after: Long, $kinds: [EventKind!], $session: String) {
  events_captured(after: $after, kinds: $kinds, session_id: $session) { position id body(length: 100000) { text } }
}"""
CHANGED = """subscription ($after: Long, $types: [NodeType!]) {
  status_changed(after: $after, types: $types) { position id type from to text event { id } }
}"""
SILENT = sooner("graphsvc.server.connections", HEAD_S=2) + sooner("graphsvc.server.streams.sockets", INIT_S=2)


@pytest.fixture
def before():
    """What the service does first; a test that waits for its deadlines gives another."""
    return ""


@pytest.fixture
def served(forks, home, db, before):
    with serving(forks, home, before=before) as service:
        yield service


@pytest.fixture(scope="module")
def standing(forks, tmp_path_factory):
    """A service with one event, for tests that leave nothing behind."""
    home = tmp_path_factory.mktemp("standing") / "home"
    with closing(database.connect(Settings(home=home))) as db:
        told = Event(session_id="s", kind=EventKind.USER_MESSAGE, origin="o", body="one", project=PROJECT)
        capture.capture(db, [told], now=lambda: NOW)
    with serving(forks, home) as service:
        yield service


@pytest.fixture(params=["socket", "stream"])
def listen(request, served):
    """Subscribe over either transport: `with listen(document, variables, viewer=…) as items`."""

    @contextmanager
    def listen(document, variables=None, viewer=None):
        identity = {executor.VIEWER: quote(viewer)} if viewer else {}
        if request.param == "stream":
            with served.stream(document, variables, **identity) as stream:
                yield stream.items()
        else:
            with served.socket(identity) as talk:
                talk.ask(document, variables)
                yield talk.items()

    return listen


def positions(items, last):
    """Read items up to a position."""
    found = []
    for item in items:
        found.append(item["position"])
        if found[-1] >= last:
            return found
    raise AssertionError(found)


def bodies(items, last):
    """Read the texts of events up to a position."""
    found = []
    for item in items:
        found.append(item["body"]["text"])
        if item["position"] >= last:
            return found
    raise AssertionError(found)


def test_what_another_process_stores_is_delivered_with_its_position(listen, run, talk, db):
    talk.user("before")
    with listen(CAPTURED, {"after": 0}) as items:
        assert next(items) == {"position": 1, "id": "event-1", "body": {"text": "before"}}
        line = {"session_id": "s2", "kind": "user_message", "origin": "m", "body": "港口九点开", "project": PROJECT}
        assert run("capture", stdin=json.dumps(line).encode()).code == 0

        assert next(items) == {"position": 2, "id": "event-2", "body": {"text": "港口九点开"}}


@pytest.mark.parametrize("name", ["events_captured", "status_changed", "lineage_changed"])
def test_saved_documents_run_with_the_variables_they_name(listen, talk, name):
    saved = read(name, resources.text(f"queries/live/{name}.graphql"))
    talk.user("good morning")
    talk.decided("tea is free")
    talk.wrote("docs/ordering.md")

    with listen(saved.text, saved.variables) as items:
        first = next(items)
    said = {
        "events_captured": lambda: first["body"]["text"] == "good morning",
        "status_changed": lambda: first[0]["to"] == "active",
        "lineage_changed": lambda: first["change"]["added_nodes"][0]["type"] == "asset",
    }
    assert said[name]()


AROUND = """subscription ($root: String!, $after: Long, $depth: Int! = 1) {
  lineage_changed(root: $root, after: $after, depth: $depth) { position event { id } change {
    added_nodes { id } removed_nodes { id } added_edges { type source target } removed_edges { type source target }
    statuses { id to }
  } }
}"""


def test_what_changes_around_a_node_is_told_by_the_event_that_changes_it(listen, talk, db):
    talk.wrote("docs/a.md", "see docs/b.md")
    asset = f"asset-{db.execute('SELECT id FROM knowledge_assets').fetchone()[0]}"
    begun = db.execute("SELECT MAX(id) FROM events").fetchone()[0]
    talk.user("nothing of this touches it")
    decided = talk.decided("docs/a.md holds")
    talk.superseded(decided, "docs/a.md holds no longer")
    talk.wrote("docs/b.md")
    talk.edited("docs/a.md", "see docs/b.md", "see nothing")

    with listen(AROUND, {"root": "docs/a.md", "after": begun}) as items:
        found = [next(items) for _ in range(4)]

    first, second, drawn, ended = found
    assert [one["position"] for one in found] == sorted({one["position"] for one in found})
    old = first["change"]["added_nodes"][0]["id"]
    assert first["change"]["statuses"] == [{"id": old, "to": "active"}]
    assert {"id": old, "to": "superseded"} in second["change"]["statuses"]
    link = {"type": "references", "source": asset}
    assert [one for one in drawn["change"]["added_edges"] if link.items() <= one.items()]
    assert [one for one in ended["change"]["removed_edges"] if link.items() <= one.items()]


def test_what_came_and_went_around_a_node_is_told_from_the_beginning(listen, talk, db):
    said = talk.user("at nine")
    talk.decided("hours", origin="d")
    about = {"type": "evidence", "source": {"type": "decision", "of": "d"}, "target": {"type": "event", "of": said}}
    talk.event("edge", "", action="add", **about)
    talk.event("edge", "", action="retract", **about)

    with listen(AROUND, {"root": "decision-2", "after": 2}) as items:
        drawn, ended = next(items)["change"], next(items)["change"]

    assert [one["target"] for one in drawn["added_edges"]] == ["event-1"]
    assert [one["target"] for one in ended["removed_edges"]] == ["event-1"]


def test_what_an_isolated_session_changes_around_a_node_is_told_to_it_alone(listen, talk, db):
    talk.wrote("docs/a.md")
    talk.session("s2").isolated()
    talk.decided("docs/a.md is wrong")
    talk.session("s1").decided("docs/a.md holds")
    shared = db.execute("SELECT MAX(id) FROM records").fetchone()[0]

    with listen(AROUND, {"root": "docs/a.md", "after": 5}) as items:
        assert {one["id"] for one in next(items)["change"]["added_nodes"]} >= {f"decision-{shared}"}


def test_without_after_it_begins_at_the_end_of_the_ledger(served, talk):
    talk.user("before")
    with served.stream(CAPTURED) as stream:
        stream.begun()
        talk.user("after")

        assert next(stream.items())["body"]["text"] == "after"


def test_filters_pass_what_was_asked_for_only(listen, talk):
    talk.user("one")
    talk.assistant("two")
    talk.session("s2").user("three")
    talk.user("four")
    with listen(CAPTURED, {"after": 0, "kinds": ["user_message"], "session": "s2"}) as items:
        assert [next(items)["body"]["text"] for _ in range(2)] == ["three", "four"]


@pytest.mark.parametrize("name", ["s2", "session-s2", " session-s2 "])
def test_a_session_is_heard_by_every_name_that_queries_take(listen, talk, name):
    talk.user("one")
    talk.session("s2").user("two")
    with listen(CAPTURED, {"after": 0, "session": name}) as items:
        assert next(items)["body"]["text"] == "two"
        talk.session("s1").user("three")
        talk.session("s2").user("four")
        assert next(items)["body"]["text"] == "four"


def test_status_changes_of_a_session_are_heard_by_its_node_id(listen, talk):
    talk.decided("tea")
    talk.session("s2").decided("coffee")
    document = 'subscription { status_changed(after: 0, session_id: "session-s2") { text position } }'
    with listen(document) as items:
        assert [one["text"] for one in next(items)] == ["coffee"]


def test_a_session_of_another_project_is_heard_as_queries_find_it(served, talk, db):
    talk.user("here")
    told = Event(session_id="far", kind=EventKind.USER_MESSAGE, origin="f", body="there", project="/srv/far")
    capture.capture(db, [told], now=lambda: NOW)

    with served.stream(CAPTURED, {"after": 0, "session": "far"}, **{executor.PROJECT: quote(PROJECT)}) as stream:
        assert next(stream.items())["body"]["text"] == "there"
    with served.stream(CAPTURED, {"after": 0, "session": "far"}, **{executor.VIEWER: "s1"}) as stream:
        [(_, answer), _] = stream.events()
    assert answer["errors"][0]["extensions"] == {"code": "NotFound", "field": "session_id"}


def test_nested_fields_and_aliases_work_as_in_a_query(listen, talk):
    talk.user("one")
    document = "subscription { new: events_captured(after: 0) { ...f } } fragment f on Event { kind session { title } }"
    with listen(document) as items:
        assert next(items) == {"kind": "user_message", "session": {"title": "one"}}


def test_who_comes_back_gets_what_was_missed_once_whoever_writes(listen, settings, db):
    def write(name):
        with closing(database.connect(settings)) as own:
            for number in range(60):
                told = [
                    Event(session_id=name, kind=EventKind.USER_MESSAGE, origin=f"{name}-{number}-{part}",
                          body=f"we decided: {name} opens at {number}", project=PROJECT)
                    for part in range(random.choice([1, 3]))  # noqa: S311 # no secret
                ]  # fmt: skip
                capture.capture(own, told, now=lambda: NOW)

    writers = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(3)]
    for writer in writers:
        writer.start()
    got, last = [], 0
    for _ in range(12):
        with listen(CAPTURED, {"after": last}) as items:
            got += [next(items)["position"] for _ in range(random.choice([1, 7, 20]))]  # noqa: S311 # no secret
            last = got[-1]
    for writer in writers:
        writer.join()
    with listen(CAPTURED, {"after": last}) as items:
        got += positions(items, events.position(db))

    assert got == list(range(1, events.position(db) + 1))


def test_isolated_events_reach_their_session_and_nobody_else(listen, talk, db):
    talk.user("shared")
    talk.session("other").user("hello")
    talk.session("s1").isolated()
    talk.user("canary")
    talk.decided("canary decision")
    talk.session("other").user("goodbye")
    end = events.position(db)

    def hears(viewer):
        with listen(CAPTURED, {"after": 0}, viewer) as items:
            return bodies(items, end)

    def learns(viewer):
        with listen(CHANGED, {"after": 0}, viewer) as items:
            return next(items)

    assert "canary" not in str(hears(None)) + str(hears("other"))
    assert "canary" in hears("s1")
    assert "canary decision" in learns("s1")[0]["text"]
    talk.decided("shared decision")
    assert learns(None)[0]["text"] == learns("other")[0]["text"] == "shared decision"


def test_what_is_isolated_while_somebody_listens_is_not_delivered(served, talk):
    with served.socket() as all_, served.socket({executor.VIEWER: "s1"}) as own:
        talk.user("first")
        for listener in (all_, own):
            listener.ask(CAPTURED, {"after": 0})
            assert next(listener.items())["body"]["text"] == "first"
        talk.isolated()
        talk.user("canary")
        talk.isolated(on=False)
        talk.user("last")
        end = talk.captured[-1].position

        assert "canary" in bodies(own.items(), end)
        assert "canary" not in bodies(all_.items(), end)


def test_a_hidden_record_that_is_changed_in_the_open_is_no_news_to_others(listen, talk, db):
    talk.isolated()
    hidden = talk.decided("canary")
    talk.isolated(on=False)
    talk.event("decision", "", action="revoke", of=hidden)
    talk.decided("tea")
    end = events.position(db)

    def learns(viewer):
        with listen(CHANGED, {"after": 0}, viewer) as items:
            return [one[2] for one in changed(items, end)]

    assert learns("s1") == ["active", "revoked", "active"]
    assert learns(None) == ["active"]


def changed(items, last):
    found = []
    for item in items:
        found += [(one["id"], one["from"], one["to"], one["event"]["id"]) for one in item]
        if item[0]["position"] >= last:
            return found
    raise AssertionError(found)


def test_status_changes_are_those_that_happened_and_the_same_whenever_they_are_read(listen, talk, db):
    with listen(CHANGED, {"after": 0}) as items:
        first = talk.decided("tea")  # 1
        talk.superseded(first, "coffee")  # 2
        proposed = talk.event("decision", "milk", action="propose")  # 3
        talk.event("decision", "", action="activate", of=proposed)  # 4
        talk.event("decision", "", action="revoke", of=proposed)  # 5
        goal = talk.event("goal", "open the cafe", action="record")  # 6
        talk.event("goal", "", action="complete", of=goal)  # 7
        late = talk.at("2026-11-30T08:00:00+00:00").event("goal", "", action="drop", of=goal)  # 8 changes nothing
        talk.at("2026-11-30T10:00:00+00:00").event("todo", "buy cups", action="record")
        end = events.position(db)
        live = changed(items, end)

    with listen(CHANGED, {"after": 0}) as items:
        again = changed(items, end)
    with listen(CHANGED, {"after": 3}) as items:
        resumed = changed(items, end)
    numbers = {event: events.by_origin(db, 1, event).id for event in (first, proposed, goal, late)}
    d1, d3, g = f"decision-{numbers[first]}", f"decision-{numbers[proposed]}", f"goal-{numbers[goal]}"

    assert live == again
    assert resumed == [one for one in again if int(one[3].split("-")[1]) > 3]
    assert again == [
        (d1, None, "active", "event-1"),
        (d1, "active", "superseded", "event-2"),
        ("decision-2", None, "active", "event-2"),
        (d3, None, "proposed", "event-3"),
        (d3, "proposed", "active", "event-4"),
        (d3, "active", "revoked", "event-5"),
        (g, None, "active", "event-6"),
        (g, "active", "completed", "event-7"),
        (f"todo-{end}", None, "pending", f"event-{end}"),
    ]
    assert numbers[late] == 8


def test_both_changes_of_one_event_come_in_one_message(listen, talk):
    talk.superseded(talk.decided("tea"), "coffee")
    with listen(CHANGED, {"after": 1}) as items:
        assert [one["to"] for one in next(items)] == ["superseded", "active"]


def test_status_changes_of_some_types_only(listen, talk):
    talk.decided("tea")
    talk.event("goal", "open", action="record")
    with listen(CHANGED, {"after": 0, "types": ["goal"]}) as items:
        assert [one["type"] for one in next(items)] == ["goal"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("subscription { events_captured(after: 99) { position } }", "0 to 1"),
        ("subscription { events_captured(after: -1) { position } }", "0 to 1"),
        ('subscription { events_captured(project: "/nowhere") { position } }', "unknown"),
        ('subscription { events_captured(after: 0, session_id: "ss") { position } }', "'ss'; the nearest is s."),
        ('subscription { events_captured(session_id: "session-nobody") { position } }', "no session is known"),
        ('subscription { events_captured(session_id: "") { position } }', "no session is known"),
        ('subscription { status_changed(session_id: "event-1") { position } }', "leave it out"),
        ('subscription { status_changed(project: "/nowhere") { position } }', "unknown"),
        ("subscription { status_changed(types: [asset]) { position } }", "candidate, decision"),
        ('subscription { lineage_changed(root: "nowhere") { position } }', "nothing at"),
        ('subscription { lineage_changed(root: "s", depth: 99) { position } }', "0 to 6"),
        ("subscription { events_captured { nothing } }", "nothing"),
        ("subscription { events_captured { position } status_changed { position } }", "one"),
        ("subscription ($no: Boolean = false) { events_captured @include(if: $no) { position } }", "top level"),
        ("subscription {", "Syntax"),
    ],
)
def test_subscription_that_cannot_begin_says_why_and_ends(standing, document, words):
    with standing.socket() as listener:
        listener.ask(document)
        message = listener.receive()
        listener.barrier()
    with standing.stream(document) as stream:
        sent = list(stream.events())

    assert message["type"] == "error"
    assert words in message["payload"][0]["message"]
    assert [name for name, _ in sent] == ["next", "complete"]
    assert words in sent[0][1]["errors"][0]["message"]


def test_queries_and_mutations_are_answered_over_both_and_heard_at_once(served):
    event = f'{{session_id: "s", kind: "user_message", origin: "o", body: "harbour", project: "{PROJECT}"}}'
    with served.socket() as listener:
        listener.ask(CAPTURED, {"after": 0}, name="listening")
        listener.ask(f"mutation {{ capture(events: [{event}]) {{ accepted }} }}", name="writing")
        messages = [listener.receive() for _ in range(3)]
    with served.stream("{ stats { events } }") as stream:
        sent = list(stream.events())

    said = {message["id"]: message for message in messages if message["type"] == "next"}
    assert said["writing"]["payload"] == {"data": {"capture": {"accepted": 1}}}
    assert said["listening"]["payload"]["data"]["events_captured"]["body"]["text"] == "harbour"
    assert {"id": "writing", "type": "complete"} in messages
    assert sent == [("next", {"data": {"stats": {"events": 1}}}), ("complete", None)]


def test_what_is_stored_here_is_not_waited_for(served):
    took = []
    with served.stream(CAPTURED) as stream:
        stream.begun()
        items = stream.items()
        for number in range(8):
            event = f'{{session_id: "s", kind: "user_message", origin: "{number}", body: "x", project: "{PROJECT}"}}'
            served.post(f"mutation {{ capture(events: [{event}]) {{ accepted }} }}")
            begun = time.monotonic()
            next(items)
            took.append(time.monotonic() - begun)

    assert min(took) < POLL_S / 2


def test_subscription_by_plain_post_is_406_with_a_hint(standing):
    refused = standing.post("subscription { events_captured { position } }")

    assert refused.status_code == 406
    assert "text/event-stream" in refused.json()["errors"][0]["message"]
    for document in ("{ stats { events } }", "mutation { capture(events: []) { accepted } }", "subscription { x }"):
        asked = {"params": {"query": document}, "headers": {**standing.authorization, **STREAM}}
        assert HTTP.get(f"{standing.url}/graphql", **asked).status_code == 406, "a URL is no place for a stream"
    assert standing.post("{ __typename }", Accept="application/json, text/event-stream").json() == {
        "data": {"__typename": "Query"}
    }


def test_cancelled_subscription_is_silent_and_its_id_is_free(served, talk):
    with served.socket() as listener:
        listener.ask(CAPTURED, {"after": 0})
        talk.user("one")
        assert next(listener.items())["position"] == 1
        listener.send(type="complete", id="1")
        listener.barrier()
        talk.user("two")
        listener.ask(CAPTURED, {"after": 1, "kinds": ["goal"]}, name="2")
        listener.ask(CAPTURED, {"after": 1})

        assert listener.receive()["id"] == "1"
        listener.barrier()


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        (["no json"], 4400),
        ([b"bytes"], 4400),
        (["[]"], 4400),
        (["[" * 60_000], 4400),
        (['{"type": "wrong"}'], 4400),
        (['{"type": ["x"]}'], 4400),
        (["{}"], 4400),
        (['{"type": "connection_init", "payload": 1}'], 4400),
        (['{"type": "connection_init", "payload": {"authorization": 1}}'], 4400),
        (['{"type": "connection_init"}'], 4403),
        (['{"type": "connection_init", "payload": {"Authorization": "Bearer wrong"}}'], 4403),
        (['{"type": "connection_init", "payload": {"Authorization": "Bearer 港口"}}'], 4403),
        (['{"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }"}}'], 4401),
        (["INIT", "INIT"], 4429),
        (["INIT", '{"type": "subscribe", "id": 1, "payload": {"query": "{ __typename }"}}'], 4400),
        (["INIT", '{"type": "subscribe", "id": "1"}'], 4400),
        (["INIT", '{"type": "subscribe", "id": "1", "payload": {"query": 1}}'], 4400),
        (["INIT", '{"type": "subscribe", "id": "1", "payload": {"query": "{ a }", "variables": []}}'], 4400),
        (["INIT", '{"type": "complete", "id": []}'], 4400),
        (["INIT", "LISTEN", "LISTEN"], 4409),
        (["INIT", "x" * (2**20 + 1)], 1009),
    ],
)
def test_connection_that_breaks_the_protocol_is_closed_with_its_code(standing, messages, code):
    said = {
        "INIT": json.dumps({"type": "connection_init", "payload": standing.authorization}),
        "LISTEN": json.dumps({"type": "subscribe", "id": "1", "payload": {"query": CAPTURED}}),
    }
    with standing.bare() as connection:
        with suppress(ConnectionClosed):  # a message may be refused before all of it was sent
            for message in messages:
                connection.send(said.get(message, message) if isinstance(message, str) else message)
        closed = None
        while closed is None:
            try:
                connection.recv(10)
            except ConnectionClosed as error:
                closed = error.rcvd

    assert closed.code == code
    assert standing.post("{ __typename }").status_code == 200


def test_other_subprotocols_are_closed_with_4406(standing):
    with standing.bare(subprotocols=None) as connection, pytest.raises(ConnectionClosed) as closed:
        connection.recv(10)

    assert closed.value.rcvd.code == 4406


@pytest.mark.parametrize("before", [SILENT], ids=["2s"])
def test_who_says_nothing_is_closed_and_who_listens_is_not(served, talk):
    with served.bare() as silent, served.socket() as listener, served.stream(CAPTURED) as stream:
        stream.begun()
        listener.ask(CAPTURED)
        with pytest.raises(ConnectionClosed) as closed:
            silent.recv(2 + 5)
        time.sleep(1)
        talk.user("still there")

        assert closed.value.rcvd.code == 4408
        assert next(listener.items())["body"]["text"] == "still there"
        assert next(stream.items())["body"]["text"] == "still there"


def test_token_of_the_handshake_is_enough(standing):
    with standing.bare(additional_headers=standing.authorization) as connection:
        talk = Socket(connection)
        talk.send(type="connection_init")
        assert talk.receive() == {"type": "connection_ack"}


def test_connections_without_a_token_keep_neither_the_owner_nor_a_listener_out(served, talk):
    with ExitStack() as stack, served.socket() as listener:
        listener.ask(CAPTURED, {"after": 0})
        for _ in range(MOST + ENDING + 20):
            stack.callback(handshake(served).close)

        talk.user("still there")
        assert served.post("{ __typename }").status_code == 200
        assert next(listener.items())["body"]["text"] == "still there"


def handshake(served):
    host, port = served.url.removeprefix("http://").split(":")
    one = socket.create_connection((host, int(port)))
    one.sendall(
        f"GET /graphql HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        f"Sec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n".encode()
    )
    assert one.recv(12) == b"HTTP/1.1 101"
    return one


def test_connection_has_room_for_so_many_operations(standing):
    most = LIMITS["running"].most
    with standing.socket() as listener:
        for number in range(most):
            listener.ask(CAPTURED, {"after": 0}, name=str(number))
        listener.ask(CAPTURED, {"after": 0}, name="more")
        answered = [listener.receive() for _ in range(most + 1)]
        listener.send(type="complete", id="0")
        listener.ask(CAPTURED, {"after": 0}, name="more")
        again = listener.receive()

    [refused] = [one for one in answered if one["type"] != "next"]
    assert (refused["id"], refused["payload"][0]["extensions"]) == ("more", {"code": "TOO_MANY"})
    assert {one["id"] for one in answered} == {"more", *map(str, range(most))}
    assert (again["id"], again["type"]) == ("more", "next")


def test_service_has_room_for_so_many_subscriptions(served, talk):
    talk.user("one")
    with ExitStack() as stack:
        one = stack.enter_context(ExitStack())
        stream = one.enter_context(served.stream(CAPTURED, {"after": 0}))
        stream.begun()
        sockets = [stack.enter_context(served.socket()) for _ in range(5)]
        for number in range(LIMITS["subscriptions"].most - 1):
            sockets[number % len(sockets)].ask(CAPTURED, {"after": 0}, name=str(number))
            sockets[number % len(sockets)].receive()
        with served.stream(CAPTURED, {"after": 0}) as more:
            refused = next(more.events())[1]
        one.close()
        end = time.monotonic() + KEEP_S - 2
        while "errors" in refused:
            refused_before = refused
            assert time.monotonic() < end
            with served.stream(CAPTURED, {"after": 0}) as stream:
                refused = next(stream.events())[1]

    assert refused_before["errors"][0]["extensions"] == {"code": "TOO_MANY"}


@pytest.mark.parametrize("before", [sooner("graphsvc.server.streams.answers", SEND_S=2)], ids=["2s"])
def test_client_that_takes_nothing_is_closed_with_the_place_to_resume_from(served, db):
    with database.transaction(db):  # not captured, which would look for secrets in 40 MB
        project = events.intern_project(db, PROJECT)
        session = events.intern_session(db, "s", project)
        for number in range(400):
            told = Event(session_id="s", kind=EventKind.ASSISTANT_MESSAGE, origin=str(number), body="x" * 100_000)
            at = utc_text(NOW)
            events.append(db, told, project=project, session=session, at=at, received_at=at, isolated=False)
    served.post("{ __typename }")
    with served.socket(max_queue=1) as listener, served.stream(CAPTURED, {"after": 0}) as stream:
        before = served.memory()
        listener.ask(CAPTURED, {"after": 0})
        grown = []
        for _ in range(12):
            time.sleep(0.25)
            grown.append(served.memory() - before)
        got: list[int] = []
        with pytest.raises(ConnectionClosed) as ended:
            got.extend(item["position"] for item in listener.items())
        with pytest.raises(httpx.TransportError):
            list(stream.items())
    closed = ended.value.rcvd

    assert (closed.code, closed.reason) == (SLOW, f"slow: resume after {got[-1]}")
    assert got == list(range(1, got[-1] + 1))
    assert got[-1] < 400
    assert max(grown) < 12_000_000
    with served.socket() as listener:
        listener.ask(CAPTURED, {"after": got[-1]})
        assert positions(listener.items(), 400) == list(range(got[-1] + 1, 401))


def test_service_that_stops_ends_its_streams_and_they_go_on_at_the_next_one(forks, home, db, talk):
    talk.user("one")
    with serving(forks, home) as served, served.socket() as listener, served.stream(CAPTURED, {"after": 0}) as stream:
        listener.ask(CAPTURED, {"after": 0})
        items = stream.items()
        assert next(listener.items())["position"] == next(items)["position"] == 1
        begun = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            listener.receive()
        rest = list(items)
        code = served.process.wait(10)
        seconds, errors = time.monotonic() - begun, served.process.stderr.read()

    talk.user("two")
    with serving(forks, home) as served, served.stream(CAPTURED, {"after": 1}) as stream:
        assert next(stream.items())["body"]["text"] == "two"
    assert closed.value.rcvd.code == 1012
    assert rest == []
    assert code == 0
    assert len(errors.splitlines()) == 2, "what it says when it starts, and nothing else"
    assert seconds < 3

"""Events for OpenLineage: who wrote and who read what arrives, in order, and nothing isolated and nobody's words."""

from __future__ import annotations

import base64
import json
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
from openlineage.client.generated.parent_run import Job, ParentRunFacet, Run
from runevents import built, check_facets

from graphsvc.errors import InvalidInput
from graphsvc.server.openlineage import Pusher, endpoint
from graphsvc.store import events
from graphsvc.store.edges import uses


@dataclass
class Endpoint:
    """Takes events on loopback; `answers` are the statuses of its next answers, afterwards each is 201."""

    port: int = 0
    answers: list[int] = field(default_factory=list)
    taken: list[dict] = field(default_factory=list)
    asked: int = 0
    headers: list[dict] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    told: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self, done: Callable[[], bool], seconds: float = 20) -> None:
        with self.told:
            assert self.told.wait_for(done, seconds), (self.asked, self.taken)

    def until(self, count: int) -> list[dict]:
        """Wait for so many events."""
        self.wait(lambda: len(self.taken) >= count)
        return self.taken

    def uses(self) -> list[tuple[str, list[str], list[str]]]:
        """Return of each event taken its job, inputs and outputs."""
        return [
            (
                event["job"]["name"],
                [one["name"].rsplit("/", 1)[1] for one in event["inputs"]],
                [one["name"].rsplit("/", 1)[1] for one in event["outputs"]],
            )
            for event in self.taken
        ]


@contextmanager
def listening(place: Endpoint) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with place.told:
                place.asked += 1
                status = place.answers.pop(0) if place.answers else 201
                place.headers.append(dict(self.headers))
                place.paths.add(self.path)
                if status < 300:
                    place.taken.append(json.loads(body))
                place.told.notify_all()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", place.port), Handler) as server:
        server.daemon_threads = True
        place.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield place
        server.shutdown()
        thread.join()


@pytest.fixture
def place():
    with listening(Endpoint()) as place:
        yield place


@contextmanager
def pushing(settings, url) -> Iterator[None]:
    pusher = Pusher(settings, endpoint(url))
    pusher.start()
    yield
    pusher.stop()


def kept(db) -> int:
    row = db.execute("SELECT position FROM read_models WHERE name = 'openlineage'").fetchone()
    return row[0] if row else 0


def settled(db) -> None:
    """Wait until all that the ledger holds was sent."""
    deadline = time.monotonic() + 20
    while kept(db) < events.position(db):
        assert time.monotonic() < deadline, (kept(db), events.position(db))
        time.sleep(0.02)


def test_what_is_written_and_read_is_sent_as_it_is_stored(serving, place, talk, db):
    talk.wrote("docs/menu.md", "# Menu\n\nTea is two euros.\n")
    service = serving(env={"OPENLINEAGE_URL": place.url})
    place.until(1)
    talk.session("s2").read("docs/menu.md", "Tea is two euros.")
    talk.edited("docs/menu.md", "two", "three")
    place.until(3)
    settled(db)
    service.end()

    assert place.uses() == [("Write", [], ["menu.md"]), ("Read", ["menu.md"], []), ("Edit", [], ["menu.md"])]
    assert place.paths == {"/api/v1/lineage"}
    for event in place.taken:
        built(event)
        [dataset] = event["inputs"] + event["outputs"]
        check_facets(event["run"]["facets"])
        check_facets(dataset["facets"])
        assert (dataset["namespace"], dataset["name"]) == ("file", talk.path("docs/menu.md"))
        parent = dict(event["run"]["facets"]["parent"])
        assert ParentRunFacet(run=Run(**parent["run"]), job=Job(**parent["job"]))._schemaURL == parent["_schemaURL"]
    version = place.taken[0]["outputs"][0]["facets"]["version"]
    assert DatasetVersionDatasetFacet(version["datasetVersion"])._schemaURL == version["_schemaURL"]
    assert place.taken[0]["eventTime"] == "2026-11-30T09:00:10.000000Z"
    assert [event["run"]["facets"]["graphsvc_source"]["session"] for event in place.taken] == ["s1", "s2", "s2"]


def test_no_text_is_sent(settings, place, talk, db):
    canary = "canary-4711"
    talk.user(canary)
    talk.wrote("docs/menu.md", f"# {canary}\n\n{canary}\n")
    talk.read("docs/menu.md", canary)
    talk.tool("Write", {"file_path": talk.path("a.md"), "content": canary, canary: canary}, canary)
    with pushing(settings, place.url):
        place.until(3)
        settled(db)

    assert canary not in json.dumps(place.taken)


def test_isolated_rows_are_not_sent_until_they_are_published(settings, place, talk, db):
    talk.wrote("docs/open.md")
    talk.isolated()
    secret = talk.wrote("docs/secret.md")
    reading = talk.read("docs/open.md")
    talk.read("docs/secret.md")
    talk.isolated(False)
    talk.session("s2").read("docs/secret.md")
    talk.session("s1").wrote("docs/after.md")
    hidden = [row[0] for row in db.execute("SELECT event FROM hidden ORDER BY event")]
    with pushing(settings, place.url):
        place.until(2)
        settled(db)
        assert place.uses() == [("Write", [], ["open.md"]), ("Write", [], ["after.md"])]
        assert "secret" not in json.dumps(place.taken)

        known = events.many(db, hidden)
        published = [event.origin for event in known.values() if not event.body.startswith("/thread")]
        talk.event("publish", "", of=published)
        assert {secret, reading} <= set(published)
        place.until(6)
        settled(db)

    assert sorted(place.uses()[2:]) == [
        ("Read", ["open.md"], []), ("Read", ["secret.md"], []), ("Read", ["secret.md"], []),
        ("Write", [], ["secret.md"]),
    ]  # fmt: skip


def test_an_endpoint_that_fails_and_comes_back_gets_everything_in_order(settings, place, talk, db):
    place.answers = [503, 500, 429, 404, 201, 503]
    for name in ("a", "b", "c"):
        talk.wrote(f"{name}.md")
    with pushing(settings, place.url):
        place.until(3)
        settled(db)

    assert [outputs for _, _, outputs in place.uses()] == [["a.md"], ["b.md"], ["c.md"]]
    assert place.asked == 8


def test_an_endpoint_that_is_not_there_yet_gets_everything(settings, talk, db):
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    talk.wrote("a.md")
    with pushing(settings, f"http://127.0.0.1:{port}"):
        time.sleep(0.7)
        assert kept(db) == 0
        with listening(Endpoint(port)) as place:
            place.until(1)
            settled(db)

            assert place.uses() == [("Write", [], ["a.md"])]


def test_an_event_that_is_refused_for_good_stops_no_other(settings, place, talk, db):
    place.answers = [422]
    talk.wrote("a.md")
    talk.wrote("b.md")
    with pushing(settings, place.url):
        place.until(1)
        settled(db)

    assert place.uses() == [("Write", [], ["b.md"])]
    assert place.asked == 2


def test_a_restart_sends_nothing_twice_and_loses_nothing(serving, place, talk, db):
    talk.wrote("a.md")
    service = serving(env={"OPENLINEAGE_URL": place.url})
    place.until(1)
    service.end()
    talk.wrote("b.md")
    service = serving(env={"OPENLINEAGE_URL": place.url})
    place.until(2)
    service.end()

    assert [outputs for _, _, outputs in place.uses()] == [["a.md"], ["b.md"]]


def test_a_service_that_is_killed_while_it_sends_loses_nothing(serving, place, talk, db):
    names = [f"{number}.md" for number in range(30)]
    for name in names:
        talk.wrote(name)
    for count in (7, 19):
        service = serving(env={"OPENLINEAGE_URL": place.url})
        place.until(count)
        service.process.send_signal(signal.SIGKILL)
        service.process.wait()
    with closing(db):
        serving(env={"OPENLINEAGE_URL": place.url})
        settled(db)

    sent = [outputs[0] for _, _, outputs in place.uses()]
    assert list(dict.fromkeys(sent)) == names
    by_name = {}
    for event in place.taken:
        by_name.setdefault(event["outputs"][0]["name"], set()).add(event["run"]["runId"])
    assert {len(runs) for runs in by_name.values()} == {1}


def test_a_stop_while_the_endpoint_fails_is_prompt_and_goes_on_later(settings, place, talk, db):
    place.answers = [503] * 1_000
    talk.wrote("a.md")
    begun = time.monotonic()
    with pushing(settings, place.url):
        place.wait(lambda: place.asked >= 2)
    assert time.monotonic() - begun < 4
    assert kept(db) == 0
    place.answers = []
    with pushing(settings, place.url):
        place.until(1)
        settled(db)

    assert place.uses() == [("Write", [], ["a.md"])]


def test_another_endpoint_is_told_from_the_beginning(settings, place, talk, db):
    talk.wrote("a.md")
    with pushing(settings, place.url):
        settled(db)
    with listening(Endpoint()) as other, pushing(settings, other.url):
        other.until(1)

        assert [event["run"] for event in other.taken] == [event["run"] for event in place.taken]


def test_credentials_are_sent_and_never_told(serving, place, talk, tmp_path):
    place.answers = [503]
    talk.wrote("a.md")
    url = f"http://me%40home:tr%C3%A4um@127.0.0.1:{place.port}/base/"
    service = serving("--log", str(tmp_path / "log"), env={"OPENLINEAGE_URL": url, "GRAPHSVC_LOG": "debug"})
    place.until(1)
    written = service.end() + (tmp_path / "log").read_text()

    assert place.headers[-1]["Authorization"] == "Basic " + base64.b64encode("me@home:träum".encode()).decode()
    assert place.paths == {"/base/api/v1/lineage"}
    said = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    states = [line["state"] for line in said if line["event"] == "openlineage"]
    assert states == ["begins", "fails", "works again"]
    assert not [word for word in ("tr%C3", "träum", "me%40", "me@", "Basic") if word in written]


@pytest.mark.parametrize(
    "url",
    [
        "localhost:5000", "ftp://localhost", "file:///etc/passwd", "http://", "http://:80", "http://u:secret@", "http://h:0",
        "http://h:99999", "http://u:secret@h:x", "http://h/?key=secret", "http://h/#secret", "http://h /", "http://h/\n",
        "http://[::1", "http://港/", "https://u:secret@h/é",
    ],
)  # fmt: skip
def test_a_bad_address_is_refused_and_not_repeated(url):
    with pytest.raises(InvalidInput, match=r"^OPENLINEAGE_URL: .*; allowed: an http or https address") as refused:
        endpoint(url)

    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_the_service_does_not_start_with_a_bad_address(run, home):
    ran = run("serve", "--port", "0", env={"OPENLINEAGE_URL": "ftp://u:secret@h"})

    assert ran.code == 2
    assert "OPENLINEAGE_URL: it does not begin with http:// or https://" in ran.err
    assert "secret" not in ran.out + ran.err
    assert run("stats", env={"OPENLINEAGE_URL": "ftp://u:secret@h"}).code == 0


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:5000", "http://localhost:5000/api/v1/lineage"),
        ("https://u:p@example.com/", "https://example.com/api/v1/lineage"),
        ("http://[::1]:81/marquez/api/v1/lineage/", "http://[::1]:81/marquez/api/v1/lineage"),
    ],
)
def test_an_address_is_read_as_openlineage_clients_do(url, shown):
    assert endpoint(url).shown == shown


def test_nothing_is_sent_when_nobody_asked_for_it(serving, place, talk, db):
    talk.wrote("a.md")
    service = serving()
    assert service.query("{ __typename }").status == 200
    service.end()

    assert (place.asked, kept(db)) == (0, 0)


@pytest.mark.parametrize("seed", range(12))
def test_wherever_a_page_ends_nothing_is_lost_and_nothing_isolated_is_told(talk, db, seed):
    dice = random.Random(seed)  # noqa: S311 # no secret
    hidden, place, found = {}, 0, []
    for _ in range(60):
        name, session = f"{dice.randrange(4)}.md", f"s{dice.randrange(3)}"
        talk.session(session)
        what = dice.randrange(6)
        if what < 2:
            talk.wrote(name, f"text {dice.random()}")
        elif what < 4:
            talk.read(name)
        elif what == 4:
            talk.isolated(dice.random() < 0.6)
        else:
            talk.event("publish", "", of=[one for one in hidden.get(session, []) if dice.random() < 0.7])
        numbers = [row[0] for row in db.execute("SELECT event FROM hidden")]
        hidden = {}
        for event in events.many(db, numbers).values():
            hidden.setdefault(event.session_id, []).append(event.origin)
        if dice.random() < 0.2:
            until = dice.randrange(place, events.position(db)) + 1
            some = uses.between(db, place, until)
            assert not {use.event for use in some} & set(numbers)
            assert all(place < use.position <= until for use in some)
            found, place = found + some, until
    found += uses.between(db, place, events.position(db))

    versions = db.execute("SELECT event FROM asset_versions WHERE event NOT IN (SELECT event FROM hidden)").fetchall()
    reads = db.execute(
        "SELECT g.source, a.path FROM shared_edges g JOIN shared_assets a ON a.id = g.target"
        " WHERE g.type = 'references' AND g.rule = 'reads'"
    ).fetchall()
    assert {use.version for use in found if use.version} == {row[0] for row in versions}
    assert {(f"event-{use.event}", use.path) for use in found if not use.version} == {tuple(row) for row in reads}
    assert versions
    assert reads

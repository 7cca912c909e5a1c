"""Tokens: what each kind may do over every transport, what they cannot widen, and that they end."""

from __future__ import annotations

import json
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import httpx
import pytest
from conftest import NOW, Talk
from serving import HTTP, STREAM, Served, Socket, serving
from websockets.exceptions import ConnectionClosed

from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.api.limits import LIMITS
from graphsvc.client import executor
from graphsvc.client.token import create, digest, is_secret, make_token, read_token
from graphsvc.clock import utc_text
from graphsvc.config import Settings
from graphsvc.errors import Forbidden, InvalidInput
from graphsvc.memory import rebuild
from graphsvc.model import TokenKind
from graphsvc.recall import scope
from graphsvc.recall.scope import Asker
from graphsvc.store import database
from graphsvc.store.access import tokens
from graphsvc.store.access.tokens import OWN, Token
from graphsvc.store.database import Connection
from graphsvc.web.documents import documents

HARBOR, CAFE = "/srv/talk/harbor", "/srv/talk/cafe"
CAPTURED = "subscription { events_captured(after: 0) { position body(length: 100) { text } } }"
PING = "{ __typename }"
CAPTURE = """mutation ($events: [EventInput!]!) { capture(events: $events) {
  accepted duplicates position rejected { index code message } events { status } kinds { name count }
} }"""
OWNER = "the owner's own"
WRONG = ["gsvc_" + "A" * 43, "gsvc_short", "nonsense", "Bearer"]


@pytest.fixture
def made(db) -> Callable[..., str]:
    """Make a token of this home: `made("read", project=HARBOR)` returns the secret."""

    def made(kind: str, **bounds: str) -> str:
        return create(db, Token(id=0, kind=TokenKind(kind), **bounds))[1]

    return made


@pytest.fixture
def story(talk) -> Talk:
    """Two sessions here, one of which hides something, and one in another project."""
    talk.session("open").user("the ferry leaves at nine")
    talk.session("closed").user("good morning")
    talk.isolated()
    talk.user("the secret is blue")
    talk.project = CAFE
    talk.session("far").user("tea is free")
    talk.project = HARBOR
    return talk.session("open")


def event(origin: str, body: str = "hello", **more: object) -> dict[str, object]:
    return {"session_id": "open", "kind": "user_message", "origin": origin, "body": body, **more}


@pytest.fixture
def ask(db, clock) -> Callable[..., dict]:
    """Execute a document with a token: `ask(token, document, viewer=…, events=…)`."""

    def ask(shown: str, document: str, viewer: str | None = None, **variables: object) -> dict:
        token = OWN if shown == OWNER else token_of(db, shown)
        asker = scope.narrowed(token, Asker(session_id=viewer))
        return schema.respond(document, variables, None, Context(db=db, asker=asker, clock=clock))

    return ask


def token_of(db: Connection, secret: str) -> Token:
    return tokens.holding(db, utc_text(NOW))[digest(secret)]


def code(answer: dict) -> str | None:
    return (answer.get("errors") or [{}])[0].get("extensions", {}).get("code")


# Making them


def test_the_store_holds_a_digest_and_no_token(settings, db, made, run):
    secrets = [made("capture", project=HARBOR), made("owner")]
    secrets.append(run("token", "create", "--kind", "capture").out.strip())
    run("rebuild")
    run("export", "--json")

    files = [path for path in settings.home.rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in files)
    assert all(is_secret(one) and len(one) == 48 for one in secrets)
    for one in secrets:
        assert digest(one) in written
        assert one.encode() not in written
        assert one.removeprefix("gsvc_").encode() not in written


def test_tokens_outlive_a_rebuild_and_stay_out_of_an_export(run, made, talk):
    talk.user("hello")
    secret = made("read", name="zzname")
    exported = run("export").out
    run("rebuild")

    assert "zzname" not in exported
    assert digest(secret).hex() not in exported
    assert [one["name"] for one in run("token", "list", "--json").json["tokens"]] == ["zzname"]


def test_create_prints_the_token_once_and_says_what_it_allows(run, story):
    ran = run("token", "create", "--kind", "read", "--project", HARBOR, "--name", "看板")
    listed = run("token", "list")

    assert is_secret(ran.out.strip())
    assert ran.out.count("\n") == 1
    assert f"token-1 reads what all may see of {HARBOR}, and changes nothing" in ran.err
    assert "看板" in listed.out
    assert "holds" in listed.out
    assert ran.out.strip() not in listed.out + run("token", "list", "--json").out


def test_json_of_create_list_and_revoke_agree(run, story):
    made = run("token", "create", "--kind", "capture", "--session", "open", "--agent", "a1", "--json").json
    [listed] = run("token", "list", "--json").json["tokens"]
    ended = run("token", "revoke", made["id"], "--json").json

    secret = made.pop("token")
    assert is_secret(secret)
    assert made == listed
    assert (made["kind"], made["project"], made["session_id"], made["agent"]) == ("capture", HARBOR, "open", "a1")
    assert ended["id"] == "token-1"
    assert ended["state"].startswith("revoked")
    assert run("token", "revoke", "1", "--json").json == ended  # the first end counts


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--kind", "owner", "--project", HARBOR], "project"),
        (["--kind", "read", "--project", "/srv/talk/nowhere"], "project"),
        (["--kind", "read", "--session", "nobody"], "session_id"),
        (["--kind", "read", "--session", "far", "--project", HARBOR], "project"),
        (["--kind", "read", "--expires", "2020-01-01"], "expires"),
        (["--kind", "read", "--expires", "soon"], "expires"),
        (["--kind", "read", "--name", ""], "name"),
    ],
)
def test_a_token_that_cannot_be_is_refused_by_name(run, story, options, field):
    ran = run("token", "create", *options, "--json")

    assert ran.code == 2
    assert ran.json["error"]["field"] == field
    assert run("token", "list", "--json").json == {"tokens": []}


@pytest.mark.parametrize("name", ["token-9", "9", "x", "0", ""])
def test_a_token_that_is_not_there_cannot_be_revoked(run, name):
    assert run("token", "revoke", name).code == 2


def test_a_token_that_is_pasted_for_its_id_is_not_repeated(run, made):
    secret = made("read")
    ran = run("token", "revoke", secret)

    assert ran.code == 2
    assert secret not in ran.out + ran.err


def test_the_owners_own_token_is_one_that_redaction_knows(settings, talk, db):
    token = make_token(settings)
    talk.tool("Bash", {"command": "cat token"}, token)

    assert is_secret(token)
    assert (
        db.execute(
            "SELECT COUNT(*) FROM events WHERE CAST(body AS TEXT) LIKE '%[redacted:graphsvc-token]%'"
        ).fetchone()[0]
        == 1
    )


def test_an_owners_token_of_an_older_home_still_works(settings):
    settings.home.mkdir(mode=0o700)
    settings.token_file.write_text("x" * 43)
    settings.token_file.chmod(0o600)

    assert make_token(settings) == read_token(settings) == "x" * 43


# What each kind may do


def test_whoami_tells_each_what_it_is(ask, made, story):
    document = "{ whoami { kind token name project session_id agent expires_at } }"
    later = utc_text(datetime(2099, 1, 1, tzinfo=UTC))
    read = made("read", session_id="closed", name="mine", agent="a1", expires_at=later)
    capture = made("capture", project=CAFE)

    assert ask(OWNER, document)["data"]["whoami"] == {
        "kind": "owner", "token": None, "name": None, "project": None, "session_id": None, "agent": None,
        "expires_at": None,
    }  # fmt: skip
    assert ask(read, document)["data"]["whoami"] == {
        "kind": "read", "token": "token-1", "name": "mine", "project": HARBOR, "session_id": "closed", "agent": "a1",
        "expires_at": later,
    }  # fmt: skip
    assert ask(capture, document)["data"]["whoami"]["kind"] == "capture"


QUERIES = sorted(name for name in schema.schema._schema.query_type.fields if name != "whoami")
MUTATIONS = sorted(name for name in schema.schema._schema.mutation_type.fields if name != "capture")


@pytest.mark.parametrize(
    "document",
    [
        *(one.text for one in documents() if "whoami" not in one.text and "capture(" not in one.text),
        "{ __schema { types { name } } }",
        "{ whoami { kind } stats { events } }",
        "query a { ...f } fragment f on Query { ... on Query { x: stats { events } } }",
        "mutation { __typename ...f } fragment f on Mutation { goal_add(text: \"x\") { __typename } }",
        'mutation { capture(events: []) { position } ... { goal_add(text: "x") { __typename } } }',
        CAPTURED,
    ],
)  # fmt: skip
def test_a_token_that_captures_reads_nothing_and_states_nothing(ask, made, story, db, document):
    secret, before = made("capture", project=HARBOR), db.total_changes
    variables = next((one.variables or {} for one in documents() if one.text == document), {})
    if "subscription" in document:
        with pytest.raises(schema.Subscribes):
            ask(secret, document, **variables)
        return
    answer = ask(secret, document, **variables)

    assert code(answer) == "FORBIDDEN"
    assert answer.get("data") is None
    assert "capture" in answer["errors"][0]["message"]
    assert db.total_changes == before


def test_saved_documents_cover_what_can_be_asked():
    text = " ".join(one.text for one in documents())

    assert [name for name in (*QUERIES, *MUTATIONS) if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("name", ["capture", *MUTATIONS])
def test_a_token_that_reads_changes_nothing(ask, made, story, db, name):
    field = schema.schema._schema.mutation_type.fields[name]
    required = [(key, str(one.type)) for key, one in field.args.items() if str(one.type).endswith("!")]
    values = {"EventInput": [event("forged")], "EdgeType": "references", "FeedbackKind": "preference"}
    variables = {
        key: next((value for kind, value in values.items() if kind in said), "decision-1") for key, said in required
    }
    head = f"({', '.join(f'${key}: {said}' for key, said in required)})"
    document = f"mutation {head} {{ {name}({', '.join(f'{key}: ${key}' for key, _ in required)}) {{ __typename }} }}"
    for secret in (made("read", project=HARBOR), made("read", session_id="closed"), made("read")):
        before = db.execute("SELECT COUNT(*) FROM events").fetchone()[0]
        answer = ask(secret, document, **variables)

        assert (code(answer), answer.get("data")) == ("FORBIDDEN", None)
        assert db.execute("SELECT COUNT(*) FROM events").fetchone()[0] == before
    assert code(ask(OWNER, document, **variables)) is None


def test_a_read_token_without_a_session_sees_shared_rows_and_one_of_a_session_its_own(ask, made, story):
    document = '{ search(query: "secret blue") { ... on SearchResult { results { body } } } }'
    seen = {
        name: "the secret is blue" in json.dumps(ask(secret, document))
        for name, secret in {
            "project": made("read", project=HARBOR),
            "all": made("read"),
            "itself": made("read", session_id="closed"),
            "another": made("read", session_id="open"),
        }.items()
    }

    assert seen == {"project": False, "all": False, "itself": True, "another": False}


def test_a_read_token_for_all_projects_may_choose_one(ask, made, story):
    document = "query ($p: String) { sessions(project: $p) { edges { node { session_id } } } }"

    def listed(project):
        found = ask(made("read"), document, p=project)["data"]["sessions"]["edges"]
        return {one["node"]["session_id"] for one in found}

    assert listed(None) == listed("all") == {"open", "closed", "far"}
    assert listed(CAFE) == {"far"}


# Capturing


def captured(answer: dict) -> tuple[int, list[str]]:
    found = answer["data"]["capture"]
    return found["accepted"], [one["code"] for one in found["rejected"]]


def test_a_capture_token_of_a_project_files_events_there_wherever_they_happened(ask, made, db):
    secret = made("capture", project=HARBOR)
    batch = [event("1"), event("2", cwd=CAFE), event("3", project=HARBOR), event("4", project=CAFE)]

    assert captured(ask(secret, CAPTURE, events=batch)) == (3, ["forbidden"])
    assert [row[0] for row in db.execute("SELECT DISTINCT key FROM projects JOIN events ON project = projects.id")] == [
        HARBOR
    ]


def test_a_capture_token_of_a_session_takes_no_other_ones_events(ask, made):
    secret = made("capture", session_id="open")

    assert captured(ask(secret, CAPTURE, events=[event("1"), event("2", session_id="s2")])) == (1, ["forbidden"])


def test_a_capture_token_of_an_agent_takes_its_events_only(ask, made):
    secret = made("capture", agent="worker")
    batch = [event("1", actor="worker"), event("2", actor="other"), event("3")]

    assert captured(ask(secret, CAPTURE, events=batch)) == (1, ["forbidden", "forbidden"])


def test_a_capture_token_publishes_for_its_own_session_only(ask, made, story, db):
    [hidden] = [row[0] for row in db.execute("SELECT MIN(event) FROM hidden")]
    publish = {**event("p", ""), "session_id": "closed", "kind": "publish", "meta": {"ids": [f"event-{hidden}"]}}

    assert captured(ask(made("capture", project=HARBOR), CAPTURE, events=[publish])) == (0, ["forbidden"])
    assert db.execute("SELECT COUNT(*) FROM hidden WHERE event = ?", (hidden,)).fetchone()[0] == 1
    assert captured(ask(made("capture", session_id="closed"), CAPTURE, events=[publish])) == (1, [])
    assert db.execute("SELECT COUNT(*) FROM hidden WHERE event = ?", (hidden,)).fetchone()[0] == 0


def test_what_a_capture_token_is_told_echoes_nothing_that_is_stored(ask, made, story, run):
    story.decided("zzstored decision")
    old = story.captured[-1].position
    story.superseded(f"{story.session_id}:{story.told}", "zzstored other")
    run("pause", "--project", CAFE)
    meta = {"action": "revoke", "of": f"decision-{old}"}
    batch = [
        event("1", "", kind="decision", meta=meta),  # superseded already
        event("2", "", kind="decision", meta={"action": "revoke", "of": "decision-999"}),
        event("3", session_id="far", project=HARBOR),  # of another project
        event("4", session_id="far"),  # paused
        event("5", "", kind="decision", session_id="closed", meta=meta),
    ]
    found = ask(made("capture"), CAPTURE, events=batch)["data"]["capture"]
    owner = ask(OWNER, CAPTURE, events=batch)["data"]["capture"]

    told = json.dumps(found["rejected"])
    assert [one["code"] for one in found["rejected"]] == [one["code"] for one in owner["rejected"]]
    assert len(found["rejected"]) >= 4
    for stored in (CAFE, HARBOR, "superseded", "revoked", "zzstored", "since"):
        assert stored not in told
    assert CAFE in json.dumps(owner["rejected"])


# What cannot be widened


@pytest.mark.parametrize(
    ("bounds", "asked", "allowed"),
    [
        ({"project": HARBOR}, {"session_id": "closed"}, False),
        ({}, {"session_id": "closed"}, False),
        ({"session_id": "open"}, {"session_id": "closed"}, False),
        ({"session_id": "open"}, {"session_id": "open"}, True),
        ({"session_id": "open"}, {"session_id": "session-open"}, True),
        ({"project": HARBOR}, {"project": CAFE}, False),
        ({"project": HARBOR}, {"project": "all"}, False),
        ({"project": HARBOR}, {"project": HARBOR}, True),
        ({"session_id": "open"}, {"project": CAFE}, False),
        ({}, {"project": CAFE}, True),
    ],
)
def test_what_the_transport_asks_for_only_narrows_a_read_token(db, made, story, bounds, asked, allowed):
    token = token_of(db, made("read", **bounds))
    if not allowed:
        with pytest.raises(Forbidden):
            scope.narrowed(token, Asker(**asked))
        return
    viewer, _ = scope.resolve(db, scope.narrowed(token, Asker(**asked, cwd=CAFE)), None)

    assert (viewer.session is None) == ("session_id" not in bounds)
    assert viewer.project is not None
    assert not viewer.everywhere


def test_a_session_that_came_up_in_another_project_opens_nothing(db, made, talk, ask):
    secret = made("capture", project=HARBOR, session_id="late")
    talk.project = CAFE
    talk.session("late").user("zzcafe")
    token = token_of(db, secret)

    with pytest.raises(scope.UnknownViewer) as unknown:
        scope.resolve(db, Asker(owner=False, session_id=token.session_id, project=token.project, token=token), None)
    assert CAFE not in str(unknown.value) + unknown.value.suggestion
    assert captured(ask(secret, CAPTURE, events=[event("1", session_id="late")])) == (0, ["project-conflict"])


def test_a_project_of_which_nothing_is_stored_tells_no_others(db, made, story, ask):
    token = Token(id=7, kind=TokenKind.READ, project="/srv/gone")
    asker = scope.narrowed(token, Asker())
    with pytest.raises(InvalidInput) as unknown:
        scope.resolve(db, asker, None)

    assert HARBOR not in str(unknown.value)


# Over the transports


@pytest.fixture
def served(forks, home, story) -> Iterator[Served]:
    with serving(forks, home) as service:
        yield service


def as_(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def closes(served: Served, secret: str, **payload: str) -> tuple[int, str]:
    """Introduce a WebSocket with a token; return the close code and reason, (0, "") when it is acknowledged."""
    with served.bare() as connection:
        talk = Socket(connection)
        talk.send(type="connection_init", payload={**as_(secret), **payload})
        try:
            assert talk.receive() == {"type": "connection_ack"}
        except ConnectionClosed as ended:
            return ended.rcvd.code, ended.rcvd.reason
        return 0, ""


def closed(talk: Socket, told: list[dict] | None = None) -> tuple[int, str]:
    """Read what comes until the service closes the socket; return its code and reason."""
    try:
        while True:
            message = talk.receive(timeout=5)
            if told is not None:
                told.append(message)
    except ConnectionClosed as ended:
        return ended.rcvd.code, ended.rcvd.reason


def test_unknown_revoked_and_expired_tokens_get_one_answer_over_every_transport(served, made, run, home):
    revoked = made("read", project=HARBOR)
    expired = made("read", expires_at=utc_text(datetime.now(UTC) + timedelta(seconds=0.6)))
    assert served.post(PING, **as_(revoked)).status_code == served.post(PING, **as_(expired)).status_code == 200
    run("token", "revoke", "token-1")
    time.sleep(0.7)
    about = {name: set() for name in ("http", "stream", "get", "handshake", "init")}
    for secret in (*WRONG, revoked, expired):
        posted = served.post(PING, **as_(secret))
        streamed = HTTP.post(f"{served.url}/graphql", json={"query": CAPTURED}, headers={**as_(secret), **STREAM})
        got = HTTP.get(f"{served.url}/graphql", params={"query": PING}, headers=as_(secret))
        for name, response in (("http", posted), ("stream", streamed), ("get", got)):
            assert "WWW-Authenticate" in response.headers or response.status_code != 401
            about[name].add((response.status_code, response.text))
        shaken = HTTP.get(f"{served.url}/graphql", headers={
            **as_(secret), "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "graphql-transport-ws",
        })  # fmt: skip
        about["handshake"].add((shaken.status_code, shaken.text))
        about["init"].add(closes(served, secret))

    assert {name: len(answers) for name, answers in about.items()} == dict.fromkeys(about, 1)
    [(status, text)] = about["http"]
    assert (status, json.loads(text)["errors"][0]["extensions"]["code"]) == (401, "TOKEN")
    assert "graphsvc token create" in text
    assert about["http"] == about["stream"] == about["get"] == about["handshake"]
    assert {code for code, _ in about["init"]} == {4403}


@pytest.mark.parametrize("accept", [{}, STREAM])
def test_a_token_is_refused_alike_right_behind_its_end(served, made, db, accept):
    secret, never = made("read", project=HARBOR), "gsvc_" + "B" * 43
    answers = set()
    for number in range(6):  # at once, and when the service has looked again
        assert number or served.post(PING, **as_(secret)).status_code == 200
        tokens.revoke(db, 1, utc_text(datetime.now(UTC)))
        for one in (secret, never):
            found = HTTP.post(f"{served.url}/graphql", json={"query": CAPTURED if accept else PING},
                              headers={**as_(one), **accept})  # fmt: skip
            about = {name: value for name, value in found.headers.items() if name not in {"date", "graphsvc-request"}}
            answers.add((found.status_code, found.text, json.dumps(about, sort_keys=True)))
        time.sleep(0.15)

    [(status, _, about)] = answers
    assert (status, json.loads(about)["www-authenticate"]) == (401, 'Bearer realm="graphsvc"')


def test_the_socket_of_the_home_wants_a_token_too_and_binds_it(served, home, made, story):
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(home / "service.sock"))) as client:

        def ask(document: str, **headers: str) -> httpx.Response:
            return client.post("http://localhost/graphql", json={"query": document}, headers=headers)

        assert stat.S_IMODE((home / "service.sock").stat().st_mode) == 0o600
        assert ask(PING).status_code == ask(PING, **as_(WRONG[0])).status_code == 401
        scoped = as_(made("read", project=HARBOR))
        assert "far" not in ask("{ sessions { edges { node { session_id } } } }", **scoped).text
        assert ask(PING, **scoped, **{executor.VIEWER: "closed"}).status_code == 403
        assert ask(PING, **as_(served.token)).status_code == 200


def test_a_token_that_was_made_while_the_service_runs_works_at_once(served, run):
    secret = run("token", "create", "--kind", "read", "--project", HARBOR).out.strip()
    answer = served.post("{ whoami { kind project } sessions { edges { node { session_id } } } }", **as_(secret)).json()

    assert answer["data"]["whoami"] == {"kind": "read", "project": HARBOR}
    assert {one["node"]["session_id"] for one in answer["data"]["sessions"]["edges"]} == {"open", "closed"}


@pytest.mark.parametrize("header", [{executor.VIEWER: "closed"}, {executor.PROJECT: quote(CAFE, safe="")},
                                    {executor.PROJECT: "all"}])  # fmt: skip
def test_a_forged_header_is_refused_over_every_transport(served, made, header):
    secret = made("read", session_id="open")
    posted = served.post(PING, **as_(secret), **header)
    streamed = HTTP.post(f"{served.url}/graphql", json={"query": CAPTURED}, headers={**as_(secret), **STREAM, **header})
    socket, reason = closes(served, secret, **header)

    for response in (posted, streamed):
        assert response.status_code == 403
        assert response.json()["errors"][0]["extensions"]["code"] == "FORBIDDEN"
        assert "allowed" in response.json()["errors"][0]["message"]
    assert (socket, reason.partition(":")[0]) == (4403, "Forbidden")
    assert served.post(PING, **{**header, **as_(served.token)}).status_code == 200


def test_a_wrong_kind_gets_403_with_what_it_may(served, made):
    read, capture = made("read"), made("capture")
    statuses = {
        (kind, name): served.post(document, **as_(secret)).status_code
        for kind, secret in (("read", read), ("capture", capture))
        for name, document in (
            ("reads", "{ stats { events } }"),
            ("writes", 'mutation { goal_add(text: "x") { __typename } }'),
            ("captures", "mutation { capture(events: []) { position } }"),
            ("asks", "{ whoami { kind } }"),
        )
    }

    assert statuses == {
        ("read", "reads"): 200, ("read", "writes"): 403, ("read", "captures"): 403, ("read", "asks"): 200,
        ("capture", "reads"): 403, ("capture", "writes"): 403, ("capture", "captures"): 200, ("capture", "asks"): 200,
    }  # fmt: skip
    with served.stream(CAPTURED, **as_(capture)) as stream:
        name, data = next(stream.events())
    assert (name, data["errors"][0]["extensions"]["code"]) == ("next", "FORBIDDEN")
    with served.socket(as_(capture)) as talk:
        talk.ask(CAPTURED)
        assert talk.receive()["payload"][0]["extensions"]["code"] == "FORBIDDEN"


def test_only_a_token_that_may_capture_gets_the_room_for_it(served, made):
    large = "query { __typename } #" + "x" * 2**20
    headers = {executor.CAPTURE: "1"}

    assert served.post(large, **as_(made("read")), **headers).status_code == 413


def test_subscriptions_deliver_what_the_token_is_for(served, made, story):
    items = {}
    for name, bounds in (("project", {"project": HARBOR}), ("session", {"session_id": "closed"})):
        story.user(f"end of {name}")
        with served.stream(CAPTURED, **as_(made("read", **bounds))) as stream:
            found = []
            for item in stream.items():
                found.append(item["body"]["text"])
                if found[-1] == f"end of {name}":
                    break
        items[name] = found

    assert "tea is free" not in items["project"] + items["session"]
    assert "the secret is blue" not in items["project"]
    assert "the secret is blue" in items["session"]


def test_revoking_ends_open_sockets_and_streams_while_others_live(served, made, program, story):
    gone, stays = made("read", project=HARBOR), made("read", project=HARBOR)
    with ExitStack() as stack:
        sockets = {
            name: stack.enter_context(served.socket(as_(one))) for name, one in (("gone", gone), ("stays", stays))
        }
        idle = stack.enter_context(served.socket(as_(gone)))  # has subscribed to nothing
        owner = stack.enter_context(served.socket())
        streams = {name: stack.enter_context(served.stream(CAPTURED, **as_(one))).items()
                   for name, one in (("gone", gone), ("stays", stays))}  # fmt: skip
        for talk in (*sockets.values(), owner):
            talk.ask(CAPTURED)
            assert next(talk.items())["position"] == 1
        for items in streams.values():
            assert next(items)["position"] == 1
        assert program("token", "revoke", "token-1").code == 0  # another process
        begun = time.monotonic()
        for talk in (sockets["gone"], idle):
            assert closed(talk) == (4401, "Unauthorized: the token holds no longer; ask the owner for another one")
        rest = list(streams["gone"])  # it ends, and does not say that it is complete
        assert time.monotonic() - begun < 2
        story.user("after the end")

        assert "after the end" not in json.dumps(rest)
        for items in (sockets["stays"].items(), owner.items(), streams["stays"]):
            assert next(one for one in items if one["body"]["text"] == "after the end")
        assert served.post(PING, **as_(gone)).status_code == 401
        assert served.post(PING, **as_(stays)).status_code == 200


def test_a_token_that_expires_ends_what_is_open_under_it(served, made):
    secret = made("read", expires_at=utc_text(datetime.now(UTC) + timedelta(seconds=1)))
    with served.socket(as_(secret)) as talk, served.stream(CAPTURED, **as_(secret)) as stream:
        begun = time.monotonic()

        assert closed(talk)[0] == 4401
        assert len(list(stream.items())) >= 3
        assert time.monotonic() - begun < 3


def test_a_revoked_token_reads_nothing_more_even_before_its_socket_is_closed(served, made, run, story):
    secret = made("read", project=HARBOR)
    with served.socket(as_(secret)) as talk:
        talk.ask("{ stats { events } }", name="before")
        assert talk.receive()["type"] == "next"
        assert talk.receive()["type"] == "complete"
        run("token", "revoke", "1")
        story.user("later")
        talk.ask("{ stats { events } }", name="after")
        told: list[dict] = []

        assert closed(talk, told)[0] == 4401
    assert all(one["payload"][0]["extensions"]["code"] == "TOKEN" for one in told)


def test_one_token_leaves_places_to_the_owner(served, made):
    secret = made("read", project=HARBOR)
    many, most = (LIMITS[name].most for name in ("token_connections", "token_subscriptions"))
    with ExitStack() as stack:
        sockets = [stack.enter_context(served.socket(as_(secret))) for _ in range(many)]
        running = [(talk, f"{number}") for talk in sockets[:3] for number in range(LIMITS["running"].most)][:most]
        for talk, name in running:
            talk.ask(CAPTURED, name=name)
            while talk.receive()["id"] != name:
                pass
        sockets[-1].ask(CAPTURED)
        refused = closes(served, secret)
        streamed = HTTP.post(f"{served.url}/graphql", json={"query": CAPTURED}, headers={**as_(secret), **STREAM})

        message = f"{most} subscriptions under one token already; end one first"
        assert sockets[-1].receive()["payload"][0]["message"] == message
        assert refused == (1013, f"{many} WebSockets and event streams under one token already; close one first")
        assert (streamed.status_code, "Retry-After" in streamed.headers) == (503, True)
        assert served.post(PING, **as_(secret)).status_code == 200
        with served.socket() as owner, served.stream(CAPTURED) as stream:
            owner.ask(CAPTURED)
            assert next(owner.items())["position"] == next(stream.items())["position"] == 1
        assert closes(served, made("read", project=HARBOR)) == (0, "")
    assert closes(served, secret) == (0, "")


def test_an_owners_token_of_the_store_is_the_owner_until_it_is_revoked(served, made, run):
    secret = made("owner")
    document = 'mutation { goal_add(text: "x", project: "/srv/talk/harbor") { __typename } }'

    assert served.post(document, **as_(secret)).json()["data"]["goal_add"]["__typename"] == "GoalChanged"
    assert served.post(PING, **as_(secret), **{executor.VIEWER: "closed"}).status_code == 200
    run("token", "revoke", "1")
    assert served.post(PING, **as_(secret)).status_code == 401


def test_a_token_in_a_url_opens_nothing_and_stands_in_no_log(forks, home, story, made, tmp_path):
    secret, log = made("read", project=HARBOR), tmp_path / "log"
    with serving(forks, home, GRAPHSVC_LOG="debug") as served:
        for query in (f"query={quote(PING)}&token={secret}", f"token={secret}&query={quote('{ stats { events } }')}"):
            assert HTTP.get(f"{served.url}/graphql?{query}").status_code == 401
        assert served.post(PING, **as_(secret)).status_code == 200
        assert served.post("{ nothing }", **as_(secret)).status_code == 200
        closes(served, secret, **{executor.VIEWER: secret})
        answers = [
            served.post(PING, **as_(secret), **{executor.VIEWER: "closed"}).text,
            served.post("{ nothing }", **as_(f"{secret}x")).text,
        ]
        served.process.terminate()
        served.process.wait(30)
        log.write_bytes(served.process.stderr.read())

    assert log.stat().st_size
    assert secret not in log.read_text() + "".join(answers)


def test_revocation_is_seen_when_the_store_is_opened_again(settings, made, db):
    made("read")
    tokens.revoke(db, 1, utc_text(NOW))
    with closing(rebuild.connect(settings)) as other:
        assert tokens.holding(other, utc_text(NOW)) == {}
        assert [one.revoked_at for one in tokens.every(other)] == [utc_text(NOW)]


def test_ids_of_tokens_are_not_used_again(db, made):
    made("read")
    db.execute("DELETE FROM tokens")

    assert create(db, Token(id=0, kind=TokenKind.READ))[0].id == 2


def test_tokens_are_made_in_an_empty_home_too(tmp_path):
    settings = Settings(home=tmp_path / "home")
    with closing(database.connect(settings)) as db:
        token, secret = create(db, Token(id=0, kind=TokenKind.CAPTURE, project="/srv/new", session_id="to-come"))

        assert (token.project, token.session_id) == ("/srv/new", "to-come")
        assert tokens.holding(db, utc_text(NOW)) == {digest(secret): token}

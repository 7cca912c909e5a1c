"""Who gets in, over every transport: a table of names, origins and tokens against a running service."""

from __future__ import annotations

import itertools
import json
import socket
from contextlib import closing

import pytest
from serving import PROTOCOL, serving
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from graphsvc.config import from_environment
from graphsvc.errors import InvalidInput

DASHBOARD = "http://localhost:3000"
HOSTS = {
    "127.0.0.1:{port}": True,
    "localhost:{port}": True,
    "LOCALHOST:{port}": True,
    "[::1]:{port}": True,
    "127.0.0.1": False,
    "127.0.0.1:1": False,
    "evil.example:{port}": False,
    "localhost.evil.example:{port}": False,
    "localhost:3000": False,  # a listed origin is no name of the service
    "": False,
}
ORIGINS = {
    None: True,
    "http://127.0.0.1:{port}": True,
    "http://localhost:{port}": True,
    DASHBOARD: True,
    "https://localhost:3000": False,
    "http://localhost:3001": False,
    "http://localhost": False,
    "http://localhost:3000.evil.example": False,
    "http://evil.example": False,
    "null": False,
    "": False,
}
SITES = {None: True, "same-origin": True, "same-site": True, "none": True, "cross-site": False}
TRANSPORTS = ["page", "GET", "POST", "SSE", "WebSocket"]
SUBSCRIPTION = "subscription { events_captured { position } }"


@pytest.fixture(scope="module")
def served(forks, tmp_path_factory):
    with serving(
        forks, tmp_path_factory.mktemp("guard") / "home", GRAPHSVC_ORIGINS=f"{DASHBOARD}, app://desk"
    ) as service:
        yield service


def asked(served, method, headers, body=b"", path="/graphql"):
    """Send a request as it stands; return the status, the headers and what has come of the body."""
    host, port = served.url.removeprefix("http://").split(":")
    lines = [f"{name}: {value}" for name, value in headers if value is not None]
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""])
    with closing(socket.create_connection((host, int(port)), timeout=10)) as connection:
        connection.sendall(head.encode("latin-1") + body)
        got = b""
        while b"\r\n\r\n" not in got:
            got += connection.recv(65_536)
    head, _, rest = got.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    return int(status.split()[1]), {k.lower(): v for k, _, v in (one.partition(": ") for one in lines)}, rest


def enters(served, transport, host, origin, token, site=None):
    """Knock over a transport; return the status: 200 when it is open, of a WebSocket its close code."""
    host = host.format(port=served.url.rsplit(":", 1)[1])
    origin = origin and origin.format(port=served.url.rsplit(":", 1)[1])
    about = [("Origin", origin), ("Sec-Fetch-Site", site)]
    if transport == "WebSocket":
        return shaken(served, host, about, token)
    about += [("Host", host), ("Authorization", f"Bearer {token}" if token else None)]
    if transport == "page":
        return asked(served, "GET", [*about, ("Accept", "text/html")])[0]
    if transport == "GET":
        return asked(served, "GET", about, path="/graphql?query=%7B__typename%7D")[0]
    document, accept = (SUBSCRIPTION, "text/event-stream") if transport == "SSE" else ("{ __typename }", "*/*")
    body = json.dumps({"query": document}).encode()
    return asked(served, "POST", [*about, ("Content-Type", "application/json"), ("Accept", accept)], body)[0]


def shaken(served, host, about, token):
    """Open a WebSocket and introduce it, with the token if there is one."""
    protocol = ClientProtocol(parse_uri(f"ws{served.url.removeprefix('http')}/graphql"), subprotocols=[PROTOCOL])
    request = protocol.connect()
    del request.headers["Host"]
    for name, value in [("Host", host), *about]:
        if value is not None:
            request.headers[name] = value
    protocol.send_request(request)
    name, port = served.url.removeprefix("http://").split(":")
    with closing(socket.create_connection((name, int(port)), timeout=10)) as connection:
        connection.sendall(b"".join(protocol.data_to_send()))
        for _ in range(10):
            protocol.receive_data(connection.recv(65_536))
            for event in protocol.events_received():
                if not isinstance(event, Frame):
                    if protocol.handshake_exc is not None:
                        return event.status_code
                    payload = {"Authorization": f"Bearer {token}"} if token else {}
                    protocol.send_text(json.dumps({"type": "connection_init", "payload": payload}).encode())
                elif event.opcode is Opcode.CLOSE:
                    return protocol.close_rcvd.code
                else:
                    assert json.loads(event.data) == {"type": "connection_ack"}
                    return 200
            if data := b"".join(protocol.data_to_send()):
                connection.sendall(data)
    raise AssertionError("no answer")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("with_token", [True, False])
def test_only_listed_hosts_and_origins_get_in_over_every_transport(served, transport, with_token):
    without = {"page": 200, "WebSocket": 4403}.get(transport, 401)  # the page is package text
    open_ = 200 if with_token else without
    wrong = [
        (host, origin, status)
        for (host, named), (origin, listed) in itertools.product(HOSTS.items(), ORIGINS.items())
        if (status := enters(served, transport, host, origin, served.token if with_token else None))
        != (open_ if named and listed else 421 if not named else 403)
    ]

    assert wrong == []


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:{port}", DASHBOARD])
def test_what_another_site_loads_gets_in_for_a_listed_page_only(served, transport, origin):
    answers = {site: enters(served, transport, "127.0.0.1:{port}", origin, served.token, site) for site in SITES}

    assert answers == {site: 200 if near or origin == DASHBOARD else 403 for site, near in SITES.items()}


@pytest.mark.parametrize("transport", ["GET", "POST", "SSE"])
def test_wrong_token_is_refused_over_http(served, transport):
    assert enters(served, transport, "127.0.0.1:{port}", None, "wrong") == 401


def test_wrong_token_is_refused_at_the_handshake_and_in_the_first_message(served):
    host = served.url.removeprefix("http://")

    assert shaken(served, host, [("Authorization", "Bearer wrong")], None) == 401
    assert shaken(served, host, [("Authorization", f"Bearer {served.token}")], None) == 200
    assert shaken(served, host, [("Authorization", f"Bearer {served.token}")], "wrong") == 4403
    assert shaken(served, host, [], "wrong") == 4403


def preflight(served, origin, host=None, headers="authorization,content-type,graphsvc-viewer", method="POST"):
    return asked(
        served,
        "OPTIONS",
        [
            ("Host", host or served.url.removeprefix("http://")),
            ("Origin", origin),
            ("Access-Control-Request-Method", method),
            ("Access-Control-Request-Headers", headers),
            ("Access-Control-Request-Private-Network", "true"),
        ],
    )


@pytest.mark.parametrize("origin", [DASHBOARD, "app://desk"])
def test_browser_of_a_listed_page_may_ask_and_read_refusals_too(served, origin):
    status, headers, _ = preflight(served, origin)
    host = served.url.removeprefix("http://")
    refused, about, _ = asked(served, "POST", [("Host", host), ("Origin", origin)])

    assert (status, headers["access-control-allow-origin"]) == (200, origin)
    assert headers["access-control-allow-private-network"] == "true"
    assert "Graphsvc-Viewer" in headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in headers
    assert (refused, about["access-control-allow-origin"]) == (401, origin)


def test_browser_of_other_pages_may_not_ask(served):
    for status, headers, _ in (
        preflight(served, "http://evil.example"),
        preflight(served, DASHBOARD, host="evil.example"),
    ):
        assert status in {403, 421}
        assert "access-control-allow-origin" not in headers


def test_by_default_no_page_but_our_own_may_ask(forks, tmp_path):
    with serving(forks, tmp_path / "home") as served:
        assert preflight(served, DASHBOARD)[0] == 403
        assert enters(served, "POST", "127.0.0.1:{port}", DASHBOARD, served.token) == 403


@pytest.mark.parametrize(
    ("listed", "read"),
    [
        ("", []),
        (" , ", []),
        ("http://localhost:3000", ["http://localhost:3000"]),
        ("HTTP://Dash.example, http://[::1]:5173,", ["http://[::1]:5173", "http://dash.example"]),
        ("chrome-extension://abc_d", ["chrome-extension://abc_d"]),
    ],
)
def test_origins_are_read_from_the_environment(listed, read):
    assert sorted(from_environment({"GRAPHSVC_ORIGINS": listed}).origins) == read


@pytest.mark.parametrize(
    "listed",
    ["*", "http://*", "http://*.example", "http://localhost:3000/", "http://a/b", "localhost:3000", "null",
     "http://a:80", "https://a:443", "http://u@a", "http://a?b", "http://a http://b", "http://"],
)  # fmt: skip
def test_what_is_no_exact_origin_is_refused_with_an_example(listed):
    with pytest.raises(InvalidInput, match="http://localhost:3000"):
        from_environment({"GRAPHSVC_ORIGINS": listed})

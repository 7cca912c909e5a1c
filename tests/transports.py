"""The ways to a running service, beside those in this process (`graphsvc.audit.asking`): one row each.

A transport that is added (MCP, say) is one more row here: what sorts of calls it takes, and what opens it as somebody.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from forks import Forks
from serving import HTTP, STREAM, Served, serving
from stories import World

from graphsvc.audit import asking
from graphsvc.audit.asking import Carry, Way
from graphsvc.audit.reads import Sort
from graphsvc.client import executor
from graphsvc.client.token import create
from graphsvc.model import TokenKind
from graphsvc.recall.scope import Asker
from graphsvc.store.access.tokens import Token

QUIET_S = 0.15  # in which what is delivered beyond what was expected would come, too
WAIT_S = 30
WITHOUT_END = 10**9  # what comes until it is complete


@dataclass(frozen=True, slots=True)
class Standing(World):
    """A telling that a service answers for, too."""

    served: Served | None = None


def identity(world: Standing, asker: Asker) -> dict[str, str]:
    """Return what a transport says of who asks: the owner by its own token, anyone else by one that only reads."""
    if not asker.owner:
        wanted = Token(id=0, kind=TokenKind.READ, project=asker.project, session_id=asker.session_id)
        _, secret = create(world.db, wanted)
        return {"Authorization": f"Bearer {secret}"}
    said = {executor.VIEWER: asker.session_id, executor.PROJECT: asker.project}
    return {**world.served.authorization, **{name: quote(value) for name, value in said.items() if value is not None}}


def _expected(world: Standing, asker: Asker) -> Callable[[str, Mapping[str, object]], list[object]]:
    """Return what says how much a subscription delivers up to now: as much as it does in this process."""
    here = asking.carry(world, asker)
    return lambda document, variables: list(here(document, variables, True))


@contextmanager
def _http(world: Standing, asker: Asker) -> Iterator[Carry]:
    served = world.served
    headers = {**identity(world, asker), "Accept": "application/graphql-response+json"}

    def ask(document: str, variables: Mapping[str, object], subscribes: bool = False) -> Iterator[Mapping[str, object]]:
        assert not subscribes
        body = {"query": document, "variables": dict(variables)}
        response = HTTP.post(f"{served.url}/graphql", json=body, headers=headers)
        yield {**response.json(), "http": response.status_code}

    yield ask


@contextmanager
def _socket(world: Standing, asker: Asker) -> Iterator[Carry]:
    expected, number = _expected(world, asker), iter(range(10**9))
    with world.served.socket(identity(world, asker)) as talk:

        def ask(document: str, variables: Mapping[str, object], subscribes: bool = False) -> Iterator[object]:
            name = str(next(number))
            talk.ask(document, dict(variables), name)
            left = len(expected(document, variables)) if subscribes else 1
            while True:
                try:
                    message = talk.receive(WAIT_S if left > 0 else QUIET_S)
                except TimeoutError:
                    if left > 0:
                        raise
                    talk.send(type="complete", id=name)
                    talk.barrier()
                    return
                if message["type"] == "complete":
                    return
                left -= 1
                if message["type"] == "error":
                    yield {"errors": message["payload"]}
                    return
                yield message["payload"]

        yield ask


@contextmanager
def _stream(world: Standing, asker: Asker) -> Iterator[Carry]:
    served, expected = world.served, _expected(world, asker)
    headers = {"Content-Type": "application/json", **STREAM, **identity(world, asker)}

    def ask(document: str, variables: Mapping[str, object], subscribes: bool = False) -> Iterator[object]:
        left = len(expected(document, variables)) if subscribes else WITHOUT_END
        body = json.dumps({"query": document, "variables": dict(variables)})
        with closing(HTTPConnection(urlsplit(served.url).netloc, timeout=WAIT_S)) as connection:
            connection.request("POST", "/graphql", body.encode(), headers)
            response = connection.getresponse()
            if STREAM["Accept"] not in response.headers["Content-Type"]:
                yield {**json.loads(response.read()), "http": response.status}
                return
            for name, data in _events(connection, response, left):
                if name == "complete":
                    return
                yield data

    yield ask


def _events(connection: HTTPConnection, response: HTTPResponse, left: int) -> Iterator[tuple[str, object]]:
    """Read events; behind as many as are left wait only as long as one more would take to come."""
    name, begun = "message", left > 0
    while True:
        # Nothing is to come before it is told where a subscription begins.
        connection.sock.settimeout(WAIT_S if left > 0 or not begun else QUIET_S)
        try:
            line = response.readline().decode().rstrip("\n")
        except TimeoutError:
            if left > 0:
                raise
            return
        if line.startswith(": behind position"):
            begun = True
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data:"):
            left -= 1
            yield name, json.loads(line.removeprefix("data:") or "null")


_BOTH: Final = frozenset({Sort.QUERY, Sort.SUBSCRIPTION})
SERVED: Final = (
    Way("tool over HTTP", frozenset({Sort.TOOL}), _http),
    Way("HTTP", frozenset({Sort.QUERY}), _http),
    Way("WebSocket", _BOTH, _socket),
    Way("event stream", _BOTH, _stream),
)
WAYS: Final = (*asking.WAYS, *SERVED)


@contextmanager
def standing(worlds: tuple[World, World], folder: Path, forks: Forks) -> Iterator[tuple[Standing, Standing]]:
    """Begin a service for each telling, and go on when both mirrors hold their ledgers."""
    with ExitStack() as stack:
        found = []
        for name, world in zip(("told", "blank"), worlds, strict=True):
            served = stack.enter_context(serving(forks, folder / name / "home"))
            found.append(Standing(db=world.db, mirror=world.mirror, rows=world.rows, served=served))
        for one in found:
            _mirrored(one.served)
        yield found[0], found[1]


def _mirrored(served: Served) -> None:
    end = time.monotonic() + WAIT_S
    while True:
        graph = served.post("{ stats { graph { status lag } } }").json()["data"]["stats"]["graph"]
        if graph == {"status": "ok", "lag": 0}:
            return
        assert time.monotonic() < end, graph
        time.sleep(0.05)

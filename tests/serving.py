"""A service in a process of its own, and clients of both stream transports."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from forks import MAIN, Forked, Forks
from websockets.sync.client import ClientConnection, connect

from graphsvc.server.streams.sockets import PROTOCOL

STREAM = {"Accept": "text/event-stream"}
# One client, for it takes as long to make as many requests; each connection is closed after its request.
HTTP = httpx.Client(timeout=30, limits=httpx.Limits(max_keepalive_connections=0))


@dataclass(frozen=True)
class Served:
    """A running service and how to talk to it."""

    process: Forked
    url: str
    token: str

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @contextmanager
    def socket(self, payload: dict | None = None, **more) -> Iterator[Socket]:
        """Open a WebSocket and introduce it as the owner."""
        with self.bare(**more) as connection:
            talk = Socket(connection)
            talk.send(type="connection_init", payload={**self.authorization, **(payload or {})})
            assert talk.receive() == {"type": "connection_ack"}
            yield talk

    def bare(self, **more) -> ClientConnection:
        options = {"subprotocols": [PROTOCOL], "compression": None, "max_size": None, "close_timeout": 0.02, **more}
        return connect(f"ws{self.url.removeprefix('http')}/graphql", **options)

    @contextmanager
    def stream(self, document: str, variables: dict | None = None, **headers: str) -> Iterator[Stream]:
        """Open an event stream as the owner."""
        body = {"query": document, "variables": variables or {}}
        headers = {**self.authorization, **STREAM, **headers}
        with HTTP.stream("POST", f"{self.url}/graphql", json=body, headers=headers) as response:
            assert response.status_code == 200, response.read()
            yield Stream(response)

    def post(self, document: str, **headers: str) -> httpx.Response:
        headers = {**self.authorization, **headers}
        return HTTP.post(f"{self.url}/graphql", json={"query": document}, headers=headers)

    def memory(self) -> int:
        """Resident bytes of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(status.split("VmRSS:")[1].split()[0])


class Socket:
    """Speaks graphql-transport-ws."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, **message: object) -> None:
        self.connection.send(json.dumps(message))

    def receive(self, timeout: float = 20) -> dict:
        return json.loads(self.connection.recv(timeout))

    def ask(self, document: str, variables: dict | None = None, name: str = "1") -> None:
        self.send(type="subscribe", id=name, payload={"query": document, "variables": variables or {}})

    def items(self) -> Iterator[object]:
        """Yield what the field of each next message holds."""
        while (message := self.receive())["type"] == "next":
            [item] = message["payload"]["data"].values()
            yield item
        raise AssertionError(message)

    def barrier(self) -> None:
        """Return when everything sent before was read by the service."""
        self.send(type="ping")
        assert self.receive() == {"type": "pong"}


class Stream:
    """Reads an event stream."""

    def __init__(self, response: httpx.Response) -> None:
        self.lines = response.iter_lines()

    def events(self) -> Iterator[tuple[str, dict | None]]:
        name = "message"
        for line in self.lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data:"):
                yield name, json.loads(line.removeprefix("data:") or "null")

    def items(self) -> Iterator[object]:
        for name, data in self.events():
            assert name == "next", data
            [item] = data["data"].values()
            yield item

    def begun(self) -> None:
        """Return when the subscription knows where it begins."""
        assert next(self.lines).startswith(": behind position")


@contextmanager
def serving(forks: Forks, home: Path, port: int = 0, before: str = "", **env: str) -> Iterator[Served]:
    ready = home.parent / "ready.json"
    process = forks.start(
        *("serve", "--port", str(port), "--ready-file", str(ready)),
        env={**os.environ, "GRAPHSVC_HOME": str(home), **env},
        cwd=home.parent,
        program=before + MAIN,
    )
    try:
        end = time.monotonic() + 30
        while not ready.exists():
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < end
            time.sleep(0.01)
        told = json.loads(ready.read_text())
        yield Served(process, told["url"], Path(told["token_file"]).read_text().strip())
    finally:
        process.close()


def wait_for(true: Callable[[], bool], seconds: float = 30) -> None:
    """Return as soon as it is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)

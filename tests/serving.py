"""A service in a process of its own, and clients of both stream transports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from websockets.sync.client import ClientConnection, connect

from graphsvc.server.streams.sockets import PROTOCOL

STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Served:
    """A running service and how to talk to it."""

    process: subprocess.Popen
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
        options = {"subprotocols": [PROTOCOL], "compression": None, "max_size": None, "close_timeout": 0.2, **more}
        return connect(f"ws{self.url.removeprefix('http')}/graphql", **options)

    @contextmanager
    def stream(self, document: str, variables: dict | None = None, **headers: str) -> Iterator[Stream]:
        """Open an event stream as the owner."""
        body = {"query": document, "variables": variables or {}}
        headers = {**self.authorization, **STREAM, **headers}
        with httpx.stream("POST", f"{self.url}/graphql", json=body, headers=headers, timeout=30) as response:
            assert response.status_code == 200, response.read()
            yield Stream(response)

    def post(self, document: str, **headers: str) -> httpx.Response:
        headers = {**self.authorization, **headers}
        return httpx.post(f"{self.url}/graphql", json={"query": document}, headers=headers, timeout=30)

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
def serving(home: Path, port: int = 0, **env: str) -> Iterator[Served]:
    ready = home.parent / "ready.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "graphsvc", "serve", "--port", str(port), "--ready-file", str(ready)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "GRAPHSVC_HOME": str(home), **env},
    )
    try:
        end = time.monotonic() + 30
        while not ready.exists():
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < end
            time.sleep(0.02)
        told = json.loads(ready.read_text())
        yield Served(process, told["url"], Path(told["token_file"]).read_text().strip())
    finally:
        process.kill()
        process.wait()
        process.stderr.close()

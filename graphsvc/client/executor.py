"""Where a GraphQL document is executed: by the service of this home, or in this process when none runs.

Asking the service needs the standard library only; the schema is imported when it is needed, because it takes longer to
import than the service takes to answer.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import quote

from graphsvc.client.operation import mutates
from graphsvc.client.token import read_token
from graphsvc.client.tool import Executor
from graphsvc.config import Settings
from graphsvc.errors import ServiceError
from graphsvc.recall.scope import Asker

CONNECT_S: Final = 2
ANSWER_S: Final = 90  # more than the service gives itself for anything
PLACE_S: Final = 15  # to wait for a place in the service
_FIRST_PAUSE_S: Final = 0.1
_LAST_PAUSE_S: Final = 1.0
VIEWER: Final = "Graphsvc-Viewer"
PROJECT: Final = "Graphsvc-Project"
CWD: Final = "Graphsvc-Cwd"
CAPTURE: Final = "Graphsvc-Capture"
_MAX_ADDRESS: Final = 100  # bytes; the kernel's limit is 104 or 108


class NoAnswer(ServiceError):  # what happened, not a kind of error
    """The service was there and is not any more, or did not finish its answer."""


def connect(settings: Settings, asker: Asker) -> Executor:
    """Return the executor to use: the service of this home if one answers, else this process.

    A service that dies during a query is replaced by this process. A mutation is not repeated: the caller decides.
    """
    service = http(settings, asker)
    if service is None:
        return in_process(settings, asker)

    def execute(document: str, variables: Mapping[str, object]) -> Mapping[str, object]:
        try:
            return service(document, variables)
        except NoAnswer:
            if mutates(document):
                raise
            return in_process(settings, asker)(document, variables)

    return execute


def http(settings: Settings, asker: Asker) -> Executor | None:
    """Return an executor that asks the service on the home's socket; None when no service runs."""
    try:
        with closing(_open(settings.socket, CONNECT_S)):
            token = read_token(settings)
    except OSError:
        return None
    headers = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Accept": "application/graphql-response+json",
        "Authorization": f"Bearer {token}",
        **_identity(asker),
    }

    def execute(document: str, variables: Mapping[str, object]) -> Mapping[str, object]:
        body = json.dumps({"query": document, "variables": dict(variables)}).encode("ascii")
        extra = {CAPTURE: "1"} if mutates(document) else {}
        return _ask(settings.socket, "POST", "/graphql", body, headers | extra)

    return execute


def url(settings: Settings) -> str | None:
    """Return where a browser finds the service of this home; None when no service runs."""
    found = (health(settings) or {}).get("url")
    return found if isinstance(found, str) else None


def health(settings: Settings) -> Mapping[str, object] | None:
    """Return what the service of this home says of itself; None when no service runs."""
    try:
        return _ask(settings.socket, "GET", "/health", None, {"Host": "localhost"})
    except NoAnswer:
        return None


def in_process(settings: Settings, asker: Asker) -> Executor:
    """Return an executor that answers from the store itself."""
    # Imported here: see the first lines of this module.
    from graphsvc import clock
    from graphsvc.api import schema
    from graphsvc.api.context import Context
    from graphsvc.graph import mirror
    from graphsvc.memory import rebuild
    from graphsvc.memory.apply import VERSION
    from graphsvc.recall import index

    def execute(document: str, variables: Mapping[str, object]) -> Mapping[str, object]:
        with closing(rebuild.connect(settings)) as db:
            kept = partial(mirror.kept, settings, VERSION)
            context = Context(db=db, asker=asker, clock=clock.system, catch_up=True, begin_mirror=kept)
            answer = schema.respond(document, variables, None, context)
            if mutates(document):
                index.catch_up(db)
            return answer

    return execute


@contextmanager
def address(path: Path) -> Iterator[str]:
    """Yield a name for the socket file that is short enough for the kernel."""
    if len(os.fsencode(path)) <= _MAX_ADDRESS:
        yield str(path)
        return
    if not Path("/proc/self/fd").is_dir():
        raise OSError(errno.ENAMETOOLONG, "too long for a socket; set GRAPHSVC_HOME to a shorter path", str(path))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _identity(asker: Asker) -> dict[str, str]:
    values = {VIEWER: asker.session_id, PROJECT: asker.project, CWD: asker.cwd}
    return {name: quote(value, errors="replace") for name, value in values.items() if value is not None}


def _open(path: Path, timeout: float) -> socket.socket:
    with ExitStack() as stack:
        connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.settimeout(timeout)
        with address(path) as name:
            connection.connect(name)
        stack.pop_all()  # the connection is the caller's
    return connection


def _ask(path: Path, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Mapping[str, object]:
    """Send one request and return the JSON object it is answered with; raise ServiceError for anything else.

    A service that has no place begins nothing, so the request is sent again until there is one, for a while.
    """
    end, pause = time.monotonic() + PLACE_S, _FIRST_PAUSE_S
    while True:
        status, value = _once(path, method, target, body, headers)
        if status != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > end:
            return value
        time.sleep(pause)
        pause = min(2 * pause, _LAST_PAUSE_S)


def _once(
    path: Path, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, Mapping[str, object]]:
    connection = HTTPConnection("localhost")
    with closing(connection):
        try:
            connection.sock = _open(path, CONNECT_S)
            connection.sock.settimeout(ANSWER_S)
            connection.request(method, target, body, dict(headers))
            response = connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException) as error:
            raise NoAnswer(f"the service stopped answering: {error}") from error
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise NoAnswer(f"the service answered {response.status} without JSON") from error
    if not isinstance(value, dict):
        raise NoAnswer(f"the service answered {response.status} without an object")
    return response.status, value

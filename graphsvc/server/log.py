"""What the service tells about itself: one JSON line an event, and never what was asked, said or answered.

The first word of a message of ours names the event, its arguments are the fields. Of a library only the place in its
code is told, and of an error only its type and where it happened: their texts may quote anything.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from graphsvc import bugs
from graphsvc.client import executor
from graphsvc.errors import InvalidInput
from graphsvc.server.guard import App, Message, Receive, Refusal, Scope, Send, refuse
from graphsvc.server.workers import Overtime

REQUEST_ID: Final = b"graphsvc-request"
_NAME: Final = "graphsvc"
_LOG: Final = logging.getLogger(_NAME)
_STDERR: Final = 2
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_request: Final[ContextVar[str | None]] = ContextVar("request", default=None)


@contextmanager
def written(level: str, path: Path | None = None) -> Iterator[None]:
    """Write what this process logs from that level on, to standard error or at the end of a file of the owner's."""
    handle = _STDERR if path is None else _open(path)
    root = logging.getLogger()
    handlers, before, last = root.handlers, root.level, logging.lastResort
    hooks = threading.excepthook, sys.unraisablehook
    root.handlers = [Lines(handle)]
    logging.lastResort = root.handlers[0]  # for loggers that a library cut off from the root
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    threading.excepthook = _thread_ended
    sys.unraisablehook = _unraisable
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(False)
        root.handlers, logging.lastResort = handlers, last
        root.setLevel(before)
        if path is not None:
            os.close(handle)


class Lines(logging.Handler):
    """Writes each record as one line with one system call, so without a lock that an ended thread could keep."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a record; a log that cannot be written stops nothing."""
        # What libraries do while all is well is for those who look for a fault.
        if not _ours(record) and record.levelno < logging.WARNING and logging.getLogger().level > logging.DEBUG:
            return True
        text = json.dumps(_fields(record), ensure_ascii=True, default=lambda value: type(value).__name__)
        with suppress(OSError):
            os.write(self._handle, f"{text}\n".encode("ascii"))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """ASGI middleware in front of everything: gives each request an id, tells what became of it, and masks bugs.

    A path, a method or a viewer is what the sender likes it to be: unknown ones are told as such, the viewer as a hash
    that only this token makes.
    """

    app: App
    token: str
    paths: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        request = _Request(send)
        _request.set(request.id)
        begun = time.monotonic()
        try:
            await self.app(scope, receive, request.send)
        except Exception as error:  # whatever it is, it is answered and told without its text
            if request.status is None:
                told = bugs.told(bugs.log("the service", error))
                await refuse(scope, request.send, Refusal(500, "BUG", told))
            elif not request.complete:
                raise
        finally:
            self._tell(scope, request, 1000 * (time.monotonic() - begun))

    def _tell(self, scope: Scope, request: _Request, ms: float) -> None:
        if not _LOG.isEnabledFor(logging.INFO):
            return
        method = scope.get("method", "WEBSOCKET")
        viewer = next((value for name, value in scope["headers"] if name.lower() == _VIEWER), None)
        about = {
            "method": method if method in _METHODS or scope["type"] != "http" else "other",
            "path": scope["path"] if scope["path"] in self.paths else "other",
            "status": request.status,
            "ms": round(ms, 1),
            "bytes": request.size,
            "viewer": viewer and hashlib.blake2s(viewer, key=self.token.encode()[:32], digest_size=4).hexdigest(),
        }
        _LOG.info("request %(method)s %(path)s %(status)s", about)


class _Request:
    """What is sent as the answer to one request."""

    def __init__(self, send: Send) -> None:
        self.id = secrets.token_hex(6)
        self.status: int | None = None
        self.size = 0
        self.complete = False
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (REQUEST_ID, self.id.encode())]
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        elif message["type"] == "websocket.http.response.start":
            self.status = message["status"]
        elif message["type"] == "websocket.accept":
            self.status = 101
        elif message["type"] == "websocket.send":
            self.size += len(message.get("text") or message.get("bytes") or "")
        elif message["type"] == "websocket.close":
            self.status = self.status or 403
            self.complete = True
        await self._send(message)


_VIEWER: Final = executor.VIEWER.lower().encode()


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Return what a line says about a record."""
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    about: dict[str, object] = {"time": moment, "level": record.levelname.lower()}
    request = _request.get()
    if request is not None:
        about["request"] = request
    if _ours(record):
        about["event"] = record.msg.split(" ", 1)[0]
        about |= record.args if isinstance(record.args, Mapping) else {}
    else:
        about |= {"event": "library", "logger": record.name, "where": f"{record.module}:{record.lineno}"}
    if record.exc_info and record.exc_info[1] is not None:
        about |= {"error": type(record.exc_info[1]).__name__, "frames": _frames(record.exc_info[1])}
    return about


def _ours(record: logging.LogRecord) -> bool:
    return record.name == _NAME or record.name.startswith(f"{_NAME}.")


def _frames(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__))


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidInput(
            "log", f"{path} cannot be written: {error.strerror}", "a file in a folder that can"
        ) from None


def _thread_ended(about: threading.ExceptHookArgs) -> None:
    name = about.thread.name if about.thread is not None else "that is gone"
    bugs.log(f"thread {name}", about.exc_value)


def _unraisable(about: Any) -> None:  # noqa: ANN401 # a type that only type checkers can import
    if not isinstance(about.exc_value, Overtime):  # it hit what nobody can end, and is sent again
        bugs.log("a callback", about.exc_value)

"""A process that looks at what is large and new before the service does: refusing it must not hold up anybody else.

To parse and validate a document, and to decode a large body, keeps Python busy, and its threads share one interpreter.
The process only refuses: what it lets pass is checked again by the schema that executes it, and while it is not there
the schema checks alone.
"""

from __future__ import annotations

import json
import logging
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, Final

from graphsvc import child
from graphsvc.api import schema
from graphsvc.child import Child
from graphsvc.recall import budget
from graphsvc.server import exchange
from graphsvc.server.exchange import Question, Refused

SMALL: Final = 1_000  # characters of a document that is checked where it is executed
LARGE: Final = 16_384  # bytes of a body that is not even decoded there
LOOK_S: Final = 2.0  # for the process to be free, and for it to answer
PAUSE_S: Final = 10.0  # after the end of a process until the next one
_NICE: Final = 10
_FRAME: Final = struct.Struct("!??I")  # whether only queries are executed, and subscriptions too; the body's length
_READY: Final = b"\n"
_LOG: Final = logging.getLogger("graphsvc")


class Invalid(Exception):  # carries an answer
    """A document that is not executed, and the response that says why."""

    def __init__(self, response: Mapping[str, Any]) -> None:
        super().__init__()
        self.response = response


class Checker:
    """The process, begun when it is first needed. It may be used by several threads."""

    def __init__(self) -> None:
        self._turn = Lock()
        # All of these belong to whoever holds `_turn`.
        self._child: Child | None = None
        self._ready = False
        self._ended = -PAUSE_S

    def question(self, raw: bytes, *, streams: bool = False) -> Question:
        """Read a body as a GraphQL request; raise Refused for what is none, Invalid for what would not be executed.

        With `streams`, a subscription would be.
        """
        if len(raw) > LARGE:
            self._look(raw, streams=streams)
            return replace(exchange.question(raw), checked=True)
        question = exchange.question(raw)
        if _new(question):
            self._look(raw, streams=streams)
        return replace(question, checked=True)

    def checked(self, question: Question, *, streams: bool = False) -> Question:
        """Return a request that was read already; raise Invalid when it would not be executed."""
        if not question.checked and _new(question):
            asked = {"query": question.document, "variables": question.variables, "operationName": question.operation}
            self._look(json.dumps(asked).encode(), reads=question.reads, streams=streams)
        return replace(question, checked=True)

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._end()

    def _look(self, raw: bytes, *, reads: bool = False, streams: bool = False) -> None:
        """Ask the process; raise Refused or Invalid as it says."""
        if not self._turn.acquire(timeout=LOOK_S):
            return
        try:
            connection = self._there()
            if connection is None:
                return
            connection.settimeout(LOOK_S)
            connection.sendall(_FRAME.pack(reads, streams, len(raw)) + raw)
            with connection.makefile("rb") as stream:
                answer = json.loads(stream.readline())
        except (OSError, ValueError) as error:
            _LOG.warning("the checking process was ended: %(error)s", {"error": type(error).__name__})
            self._end()
            return
        except BaseException:  # out of time: what it answers now would be taken for the answer to the next
            self._end()
            raise
        finally:
            self._turn.release()
        if "refused" in answer:
            raise Refused(*answer["refused"])
        if "response" in answer:
            raise Invalid(answer["response"])

    def _there(self) -> socket.socket | None:
        """Return the connection to a process that is ready; begin one when there is none."""
        if self._child is None:
            if time.monotonic() - self._ended >= PAUSE_S:
                self._child, self._ready = child.begin("graphsvc.server.checker"), False
            return None
        connection = self._child.connection
        if not self._ready:
            connection.settimeout(0)
            try:
                self._ready = connection.recv(len(_READY)) == _READY
            except BlockingIOError:
                return None
            if not self._ready:
                raise ConnectionResetError
        return connection

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
        self._child = None
        self._ended = time.monotonic()


def _new(question: Question) -> bool:
    """Say whether a document takes long to check."""
    return len(question.document) > SMALL and not schema.known(question.document)


def answer(raw: bytes, *, reads: bool, streams: bool) -> Mapping[str, object]:
    """Say what is wrong with a body; nothing when it is to be executed."""
    try:
        question = exchange.question(raw)
        response = schema.check(question.document, question.variables, question.operation, reads=reads, streams=streams)
    except Refused as refused:
        return {"refused": [refused.refusal.status, refused.refusal.code, refused.refusal.message]}
    except Exception:  # noqa: BLE001 # whoever executes it meets the same, and tells
        return {}
    if response is None or any(error.get("extensions", {}).get("code") == "BUG" for error in response["errors"]):
        return {}
    return {"response": response}


def main() -> None:
    """Answer what is asked on standard input, a socket, until it is closed."""
    with child.asked(_NICE) as connection, connection.makefile("rb") as stream:
        connection.sendall(_READY)
        while len(head := stream.read(_FRAME.size)) == _FRAME.size:
            reads, streams, length = _FRAME.unpack(head)
            raw = stream.read(length)
            if len(raw) == length:
                connection.sendall(budget.line(answer(raw, reads=reads, streams=streams)).encode() + b"\n")


if __name__ == "__main__":
    main()

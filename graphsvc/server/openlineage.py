"""The thread that tells an OpenLineage endpoint who wrote and who read which asset, as the ledger does.

Only what all may see is sent, and no text: ids, times, tools, paths and hashes. How far it has come is kept in the
store, so a restart goes on there. What was sent shortly before the process was killed is sent again, under the same run
id: at least once, and in the order of the ledger. The ledger is the queue: in memory is a page of it.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import logging
import posixpath
import re
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from graphsvc import bugs
from graphsvc.config import Settings
from graphsvc.errors import InvalidInput
from graphsvc.lineage.escape import json_line
from graphsvc.lineage.openlineage import facet, run_event, run_id
from graphsvc.store import database, events
from graphsvc.store.database import Connection
from graphsvc.store.edges import uses
from graphsvc.store.edges.uses import Use

POLL_S: Final = 0.5  # what is stored is looked for after this time
STOP_S: Final = 5.0
REQUEST_S: Final = 10.0
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 60.0
_KEEP_S: Final = 1.0  # between two looks at the clock to keep how far it has come
_PAGE: Final = 500  # positions of the ledger
_NAME: Final = "openlineage"
_PATH: Final = "/api/v1/lineage"
_REFUSED: Final = frozenset({400, 413, 422})  # this event, whenever it comes: sending it again would stop all others
_ADDRESS: Final = "an http or https address without query, such as http://localhost:5000"
_VERSION: Final = (
    "https://openlineage.io/spec/facets/1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet"
)
_PARENT: Final = "https://openlineage.io/spec/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet"
_LOG: Final = logging.getLogger("graphsvc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where events are sent. `shown` names it without credentials; `version` changes when it is another one."""

    secure: bool
    host: str
    port: int | None
    path: str
    authorization: str | None

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}{f':{self.port}' if self.port else ''}{self.path}"

    @property
    def version(self) -> str:
        return hashlib.sha256(self.shown.encode()).hexdigest()[:16]

    def open(self) -> HTTPConnection:
        """Return a connection that is opened at its first request."""
        kind = HTTPSConnection if self.secure else HTTPConnection
        return kind(self.host, self.port, timeout=REQUEST_S)


def endpoint(url: str) -> Endpoint:
    """Read OPENLINEAGE_URL as OpenLineage's clients do; raise InvalidInput without its text: it may hold a secret."""
    if re.search(r"[\x00-\x20\x7f]", url):
        raise _invalid("it holds a space or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _invalid("its host or port cannot be read") from None
    if parts.scheme not in {"http", "https"}:
        raise _invalid("it does not begin with http:// or https://")
    if not parts.hostname:
        raise _invalid("it names no host")
    if port == 0:
        raise _invalid("port 0 is none")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise _invalid("it has a query or a fragment")
    if not (parts.hostname + parts.path).isascii():
        raise _invalid("its host or path is not ASCII; percent-encode it, and write the host as xn--")
    return Endpoint(
        secure=parts.scheme == "https",
        host=parts.hostname,
        port=port,
        path=parts.path.rstrip("/").removesuffix(_PATH) + _PATH,
        authorization=_authorization(parts),
    )


class Pusher:
    """Follows the ledger in a thread of its own, and sends what was written and read to an endpoint."""

    def __init__(self, settings: Settings, target: Endpoint) -> None:
        self._settings = settings
        self._target = target
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphsvc-openlineage", daemon=True)
        self._connection = target.open()
        self._failed = 0  # times in a row

    def start(self) -> None:
        """Begin to send, and go on until `stop`."""
        _LOG.info("openlineage %(state)s", {"state": "begins", "endpoint": self._target.shown})
        self._thread.start()

    def stop(self) -> None:
        """End after the event at hand; what is not sent yet is sent after the next start."""
        self._stopped.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with closing(database.connect(self._settings)) as db, closing(self._connection):
                    self._follow(db)
            except Exception as error:  # noqa: BLE001 # a bug at one event must not end this for ever
                bugs.log("the OpenLineage thread", error)
                self._pause()

    def _follow(self, db: Connection) -> None:
        place = uses.position(db, _NAME, self._target.version)
        while not self._stopped.is_set():
            until = min(events.position(db), place + _PAGE)
            if until <= place:
                self._connection.close()  # the other side closes what is idle, and the next event would find out
                self._stopped.wait(POLL_S)
                continue
            with database.snapshot(db):
                found = uses.between(db, place, until)
            place = self._send(db, found, place, until)

    def _send(self, db: Connection, found: Iterable[Use], place: int, until: int) -> int:
        """Send a page, position by position; return and keep how far it came, also when something breaks."""
        kept = time.monotonic()
        sent = place
        try:
            for position, some in itertools.groupby(found, lambda use: use.position):
                for event in told(some):
                    if not self._delivered(json_line(event), position):
                        return sent
                sent = position
                if time.monotonic() - kept > _KEEP_S:
                    uses.advance(db, _NAME, self._target.version, sent)
                    kept = time.monotonic()
            sent = until
        finally:
            if sent > place:
                uses.advance(db, _NAME, self._target.version, sent)
        return sent

    def _delivered(self, body: str, position: int) -> bool:
        """Send an event until it is taken or refused for good; return False when the service stops first."""
        while not self._stopped.is_set():
            answer = self._post(body.encode())
            if answer in _REFUSED or (isinstance(answer, int) and 200 <= answer < 300):
                if self._failed:
                    _LOG.warning("openlineage %(state)s", {"state": "works again", "endpoint": self._target.shown})
                self._failed = 0
                if answer in _REFUSED:
                    about = {"state": "refused", "status": answer, "position": position}
                    _LOG.warning("openlineage %(state)s", {**about, "endpoint": self._target.shown})
                return True
            if not self._failed:
                about = {"state": "fails", "answer": answer, "position": position}
                _LOG.warning("openlineage %(state)s", {**about, "endpoint": self._target.shown})
            self._pause()
        return False

    def _post(self, body: bytes) -> int | str:
        """Return the status of the answer, or what kind of error there was instead."""
        headers = {"Content-Type": "application/json", "User-Agent": "graphsvc"}
        if self._target.authorization is not None:
            headers["Authorization"] = self._target.authorization
        try:
            self._connection.request("POST", self._target.path, body, headers)
            with closing(self._connection.getresponse()) as response:
                response.read(65_536)
                whole = response.isclosed()
                status = response.status
        except (OSError, HTTPException) as error:
            self._connection.close()
            return type(error).__name__
        if not whole:
            self._connection.close()
        return status

    def _pause(self) -> None:
        self._stopped.wait(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._failed, 10)))
        self._failed += 1


def told(found: Iterable[Use]) -> list[dict[str, object]]:
    """Return a RunEvent for each call: its outputs are the versions that it wrote, its inputs what it read."""
    runs: dict[int, list[Use]] = {}
    for use in found:
        runs.setdefault(use.event, []).append(use)
    return [_run_event(some) for some in runs.values()]


def _run_event(some: list[Use]) -> dict[str, object]:
    call = some[0]
    session = {"runId": run_id(f"session-{call.session_id}")}
    parent = {"run": session, "job": {"namespace": "graphsvc", "name": f"session-{call.session_id}"}}
    return run_event(
        type="COMPLETE",
        at=call.at,
        run=run_id(call.project, call.origin),
        job=call.tool or "asset",
        facets={
            "parent": facet(_PARENT, **parent),
            "graphsvc_source": facet("Source", id=f"event-{call.event}", session=call.session_id, project=call.project),
        },
        inputs=[_dataset(use) for use in some if use.version is None],
        outputs=[_dataset(use) for use in some if use.version is not None],
    )


def _dataset(use: Use) -> dict[str, object]:
    """Return an asset as a dataset: a file goes by its path, as OpenLineage names local files."""
    path = posixpath.join(use.asset_project, use.path)
    local = path.startswith("/")
    facets = {"graphsvc_source": facet("Source", id=f"asset-{use.asset}", project=use.asset_project)}
    if use.version is not None:
        facets["graphsvc_source"]["hash"] = use.hash
        facets["version"] = facet(_VERSION, datasetVersion=f"event-{use.version}")
    return {
        "namespace": "file" if local else use.asset_project,
        "name": path if local else use.path,
        "facets": facets,
    }


def _authorization(parts: SplitResult) -> str | None:
    if parts.username is None and parts.password is None:
        return None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _invalid(problem: str) -> InvalidInput:
    return InvalidInput("OPENLINEAGE_URL", problem, _ADDRESS)

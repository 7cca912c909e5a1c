"""The thread that keeps the word index at the end of the ledger, and cleans the files of what was forgotten."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Final

from graphsvc import bugs
from graphsvc.config import Settings
from graphsvc.memory.erase.clean import clean
from graphsvc.recall import index
from graphsvc.store import database
from graphsvc.store.erase import traces

POLL_S: Final = 0.5  # what others store is indexed after this time
STOP_S: Final = 5.0  # a large text may take longer; the process ends without it, and it is indexed at the next start
_SLICE_MS: Final = 500  # between two looks whether to stop
_MOST_PAUSES: Final = 6  # each twice as long as the one before


class Indexer:
    """Keeps the word index at the end of the ledger, in a thread of its own: a large text takes its time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphsvc-index", daemon=True)

    def start(self) -> None:
        """Begin to index, and go on until `stop`."""
        self._thread.start()

    def wake(self) -> None:
        """Say that something was stored."""
        self._woken.set()

    def stop(self) -> None:
        """End after the text at hand."""
        self._stopped.set()
        self._woken.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        failed = 0
        while not self._stopped.is_set():
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 # a bug at one text must not end the index
                bugs.log("the index", error)
                failed = min(failed + 1, _MOST_PAUSES)
                self._stopped.wait(POLL_S * 2**failed)

    def _follow(self) -> None:
        with closing(database.connect(self._settings)) as db:
            while not self._stopped.is_set():
                self._woken.clear()
                if traces.remains(db):
                    clean(db, patience_s=POLL_S)
                if not index.catch_up(db, _SLICE_MS):
                    self._woken.wait(POLL_S)

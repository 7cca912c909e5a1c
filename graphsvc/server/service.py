"""The process of the service: one a home, on loopback and on a unix socket in the home, until a signal ends it."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import json
import logging
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn

from graphsvc import __version__
from graphsvc.client import executor
from graphsvc.client.token import make_token
from graphsvc.config import Settings, make_home, write_whole
from graphsvc.errors import InvalidInput, StoreError
from graphsvc.memory import rebuild
from graphsvc.server import log
from graphsvc.server.app import REQUEST_S, application
from graphsvc.server.connections import ENDING, MOST, HttpConnection, SocketConnection
from graphsvc.server.exchange import MAX_BODY
from graphsvc.server.guard import hosts

_LOG: Final = logging.getLogger("graphsvc")
_TURN_S: Final = 0.0005
LOOPBACK: Final = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready_file: Path | None = None,
    log_file: Path | None = None,
    ready: Callable[[Mapping[str, object]], None] = lambda _: None,
) -> None:
    """Serve this home until SIGINT or SIGTERM; when it answers, write `ready_file` and call `ready` with the same.

    What happens is logged to `log_file`, else to standard error.
    """
    if host not in LOOPBACK:
        raise InvalidInput("host", f"{host!r} can be reached by other machines", ", ".join(LOOPBACK))
    if not 0 <= port <= 65_535:
        raise InvalidInput("port", f"{port} is none", "0 (any free one) to 65535")
    if ready_file is not None and not (ready_file.parent.is_dir() and os.access(ready_file.parent, os.W_OK)):
        raise InvalidInput("ready_file", f"{ready_file.parent} cannot be written", "a file in a folder that can")
    make_home(settings)
    with ExitStack() as stack:
        stack.enter_context(log.written(settings.log, log_file))
        stack.enter_context(_only_one(settings))
        # One that a killed service left would be taken for ours.
        _remove(ready_file)
        stack.callback(_remove, ready_file)
        rebuild.connect(settings).close()  # what cannot be opened is refused here, in one line
        token = make_token(settings)
        tcp = stack.enter_context(_tcp_socket(host, port))
        unix = stack.enter_context(_unix_socket(settings.socket))
        bound = tcp.getsockname()[1]
        url = f"http://{'[::1]' if host == '::1' else host}:{bound}"
        stopping = asyncio.Event()
        app = application(settings, token=token, names=hosts(bound), url=url, stopping=stopping)
        config = uvicorn.Config(
            app,
            http=HttpConnection,
            log_config=None,
            log_level=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="on",
            ws=SocketConnection,
            ws_max_size=MAX_BODY,
            ws_per_message_deflate=False,  # nothing to save on one machine
            limit_concurrency=MOST + ENDING,
            timeout_graceful_shutdown=int(REQUEST_S),
        )
        about = {
            "url": url,
            "socket": str(settings.socket),
            "token_file": str(settings.token_file),
            "pid": os.getpid(),
        }
        server = _Server(config, stopping, ready_file, about, ready)
        stack.enter_context(_ends_on_signals(server))
        _LOG.info("start %(version)s", {"version": __version__, "pid": os.getpid(), "port": bound})
        with _prompt():
            server.run([tcp, unix])
        _LOG.info("stop %(pid)s", {"pid": os.getpid()})


class _Server(uvicorn.Server):
    """Uvicorn that says when it answers, and ends its streams when it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        stopping: asyncio.Event,
        ready_file: Path | None,
        about: Mapping[str, object],
        ready: Callable[[Mapping[str, object]], None],
    ) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._ready_file = ready_file
        self._about = about
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file is not None:
            write_whole(self._ready_file, f"{json.dumps(self._about)}\n".encode())
        self._ready(self._about)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


@contextmanager
def _only_one(settings: Settings) -> Iterator[None]:
    """Hold the lock of this home's service; the kernel releases it however the process ends."""
    handle = os.open(settings.home / "service.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _already(settings.socket) from None
        yield
    finally:
        os.close(handle)


@contextmanager
def _unix_socket(path: Path) -> Iterator[socket.socket]:
    """Listen at a socket file that only its owner may use; replace one that nobody listens at."""
    _remove_stale(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with executor.address(path) as name:
            listener.bind(name)
        try:
            path.chmod(0o600)  # nobody can connect before listen
            listener.listen(MOST)
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StoreError(f"{path} is in the way of the service's socket; move it")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            with executor.address(path) as name:
                probe.connect(name)
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError as error:  # a full backlog is alive too
            raise _already(path) from error
    raise _already(path)


def _already(path: Path) -> StoreError:
    return StoreError(f"a service answers at {path} already; stop it, or set GRAPHSVC_HOME to serve another home")


@contextmanager
def _tcp_socket(host: str, port: int) -> Iterator[socket.socket]:
    with socket.socket(LOOPBACK[host], socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1" if host == "localhost" else host, port))
        except OSError as error:
            raise StoreError(f"port {port} of {host} cannot be used: {error.strerror}; choose another, or 0") from error
        listener.listen(MOST)
        yield listener


@contextmanager
def _prompt() -> Iterator[None]:
    """Let small requests have their turn while large ones keep Python busy.

    A thread that computes gives way ten times as often as usual, and what was imported is not looked through each time
    that garbage is collected: either kept the event loop waiting for a tenth of a second.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)


@contextmanager
def _ends_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """End with exit code 0: uvicorn raises a signal again after its shutdown, and that one ends here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _remove(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)

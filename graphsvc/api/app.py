"""The service: one Starlette app behind one guard, on loopback and on a unix socket in the home."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import secrets
import signal
import socket
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graphsvc import __version__, clock, resources
from graphsvc.api import client, exchange, schema
from graphsvc.api.access import App, Guard, hosts, make_token
from graphsvc.api.connections import MOST, HttpConnection
from graphsvc.api.exchange import Question, Refused
from graphsvc.api.workers import Busy, Indexer, Workers
from graphsvc.config import Settings, make_home
from graphsvc.errors import InvalidInput, StoreError
from graphsvc.recall.scope import Asker
from graphsvc.store import database
from graphsvc.store.database import Connection

REQUEST_S: Final = 5.0
CAPTURE_S: Final = 60.0  # a batch is up to sixteen times as large, and stopping it only repeats it
LOOPBACK: Final = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}
_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE_HEADERS: Final = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_ASSETS: Final = {
    "/graphql/console.js": ("console.js", "text/javascript"),
    "/graphql/console.css": ("console.css", "text/css"),
}
_DOCUMENTS: Final = "/graphql/documents.json"
_OPEN: Final = frozenset({"/graphql", "/health", _DOCUMENTS, *_ASSETS})
_WEB: Final = Path(__file__).resolve().parent.parent / "web"


def application(settings: Settings, *, token: str, names: frozenset[str]) -> App:
    """Build the app of this home behind its guard. `names` are the Host values it answers to."""
    workers, indexer = Workers(settings), Indexer(settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        indexer.start()
        yield
        await asyncio.to_thread(indexer.stop)
        await asyncio.to_thread(workers.close)

    async def graphql(request: Request) -> Response:
        if request.method != "POST":
            return _page(request)
        try:
            return await _graphql(request, workers, indexer)
        except Refused as refused:
            return _refused(refused)

    routes = [
        Route("/graphql", graphql, methods=["GET", "POST"]),
        Route("/health", _health, methods=["GET"]),
        Route(_DOCUMENTS, _documents, methods=["GET"]),
        *(Route(path, _asset, methods=["GET"]) for path in _ASSETS),
    ]
    handlers = {HTTPException: _not_served, Exception: _bug}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    return Guard(app=app, token=token, hosts=names, open_paths=_OPEN)


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready_file: Path | None = None,
    ready: Callable[[Mapping[str, object]], None] = lambda _: None,
) -> None:
    """Serve this home until SIGINT or SIGTERM; when it answers, write `ready_file` and call `ready` with the same."""
    if host not in LOOPBACK:
        raise InvalidInput("host", f"{host!r} can be reached by other machines", ", ".join(LOOPBACK))
    if not 0 <= port <= 65_535:
        raise InvalidInput("port", f"{port} is none", "0 (any free one) to 65535")
    if ready_file is not None and not (ready_file.parent.is_dir() and os.access(ready_file.parent, os.W_OK)):
        raise InvalidInput("ready_file", f"{ready_file.parent} cannot be written", "a file in a folder that can")
    make_home(settings)
    with ExitStack() as stack:
        stack.enter_context(_only_one(settings))
        # One that a killed service left would be taken for ours.
        _remove(ready_file)
        stack.callback(_remove, ready_file)
        database.connect(settings).close()  # what cannot be opened is refused here, in one line
        token = make_token(settings)
        tcp = stack.enter_context(_tcp_socket(host, port))
        unix = stack.enter_context(_unix_socket(settings.socket))
        bound = tcp.getsockname()[1]
        app = application(settings, token=token, names=hosts(bound))
        config = uvicorn.Config(
            app,
            http=HttpConnection,
            log_config=None,
            log_level=logging.CRITICAL,  # uvicorn prints the text of errors; `_bug` logs where they happened
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="on",
            ws="none",
            limit_concurrency=MOST,
            timeout_graceful_shutdown=int(REQUEST_S),
        )
        url = f"http://{'[::1]' if host == '::1' else host}:{bound}"
        about = {
            "url": url,
            "socket": str(settings.socket),
            "token_file": str(settings.token_file),
            "pid": os.getpid(),
        }
        server = _Server(config, ready_file, about, ready)
        stack.enter_context(_ends_on_signals(server))
        server.run([tcp, unix])


class _Server(uvicorn.Server):
    """Uvicorn that says when it answers."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready_file: Path | None,
        about: Mapping[str, object],
        ready: Callable[[Mapping[str, object]], None],
    ) -> None:
        super().__init__(config)
        self._ready_file = ready_file
        self._about = about
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file is not None:
            _write_whole(self._ready_file, json.dumps(self._about) + "\n")
        self._ready(self._about)


async def _graphql(request: Request, workers: Workers, indexer: Indexer) -> Response:
    media_type = exchange.accepted_type(request.headers.get("accept"))
    exchange.check_content_type(request.headers.get("content-type"))
    capturing = client.CAPTURE.lower() in request.headers
    seconds = CAPTURE_S if capturing else REQUEST_S
    limit = exchange.MAX_CAPTURE if capturing else exchange.MAX_BODY
    try:
        raw = await exchange.body(request.stream(), request.headers.get("content-length"), limit, seconds)
        question = exchange.question(raw)
        asker = _asker(request)
        content = await workers.run(lambda db: _respond(db, question, asker, media_type), seconds)
        if client.MUTATION.search(question.document):
            indexer.wake()
    except TimeoutError:
        raise Refused(504, "DEADLINE", f"not done within {seconds:.0f} s; ask for less") from None
    except Busy:
        raise Refused(503, "BUSY", "too many requests at once; try again in a second") from None
    except ClientDisconnect:
        return Response(status_code=400)
    status, body = content
    return Response(body, status, {"Cache-Control": "no-store", "Content-Type": f"{media_type}; charset=utf-8"})


def _respond(db: Connection, question: Question, asker: Asker, media_type: str) -> tuple[int, bytes]:
    context = schema.Context(db=db, asker=asker, clock=clock.system)
    response = schema.respond(question.document, question.variables, question.operation, context)
    return exchange.status(response, media_type), exchange.encoded(response)


def _asker(request: Request) -> Asker:
    """Say who asks. The token is the owner's; the headers narrow what the owner asks as and about."""
    session_id, project, cwd = (_header(request, name) for name in (client.VIEWER, client.PROJECT, client.CWD))
    return Asker(owner=True, session_id=session_id, project=project, cwd=cwd)


def _header(request: Request, name: str) -> str | None:
    values = request.headers.getlist(name)
    if len(values) > 1:
        raise Refused(400, "BAD_REQUEST", f"{name} is given twice")
    try:
        value = unquote(values[0], errors="strict") if values else ""
    except UnicodeDecodeError:
        value = "\0"
    if "\0" in value:
        raise Refused(400, "BAD_REQUEST", f"{name} must be percent-encoded UTF-8")
    return value or None


def _page(request: Request) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        message = "send documents by POST; a browser gets a page here"
        return _refused(Refused(405, "METHOD", message), {"Allow": "POST"})
    return Response((_WEB / "console.html").read_bytes(), headers=_PAGE_HEADERS, media_type="text/html")


def _asset(request: Request) -> Response:
    name, media_type = _ASSETS[request.url.path]
    return Response((_WEB / name).read_bytes(), headers=_PAGE_HEADERS, media_type=media_type)


def _documents(_: Request) -> Response:
    found = [
        {"name": Path(name).stem, "text": resources.text(name)} for name in resources.names("queries/tool", ".graphql")
    ]
    return JSONResponse(found, headers=_PAGE_HEADERS)


def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok", "version": __version__}, headers={"Cache-Control": "no-store"})


def _refused(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    refusal = refused.refusal
    body = {"errors": [{"message": refusal.message, "extensions": {"code": refusal.code}}]}
    retry = {"Retry-After": "1"} if refusal.status == 503 else {}
    return JSONResponse(body, refusal.status, {"Cache-Control": "no-store", **retry, **(headers or {})})


def _not_served(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    return _refused(Refused(status, "NOT_SERVED", "this service has /graphql and /health"), headers)


def _bug(_: Request, error: Exception) -> Response:
    correlation = secrets.token_hex(6)
    schema.log_bug(correlation, "the service", error)
    return _refused(Refused(500, "BUG", f"a bug of graphsvc; its log tells more under {correlation}"))


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
        with client.address(path) as name:
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
            with client.address(path) as name:
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
    with socket.socket(LOOPBACK[host], socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1" if host == "localhost" else host, port))
        except OSError as error:
            raise StoreError(f"port {port} of {host} cannot be used: {error.strerror}; choose another, or 0") from error
        listener.listen(MOST)
        yield listener


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


def _write_whole(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, "utf-8")
    new.replace(path)


def _remove(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)

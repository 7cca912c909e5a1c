"""What is served: one Starlette app behind one guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from graphsvc import __version__, bugs, clock
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.api.limits import LIMITS
from graphsvc.client import executor
from graphsvc.client.operation import mutates
from graphsvc.config import Settings
from graphsvc.graph.mirror import Mirror, Status
from graphsvc.memory.apply import VERSION
from graphsvc.model import TokenKind
from graphsvc.recall.scope import Asker
from graphsvc.server import access, exchange, pages
from graphsvc.server.access import Keys, Locked
from graphsvc.server.checker import Checker, Invalid
from graphsvc.server.exchange import Question, Refused
from graphsvc.server.guard import App, Guard, asked, on_socket, written
from graphsvc.server.indexer import Indexer
from graphsvc.server.log import Requests
from graphsvc.server.openlineage import Pusher, endpoint
from graphsvc.server.pages import File
from graphsvc.server.streams.answers import Streams, refused
from graphsvc.server.streams.sockets import Conversation
from graphsvc.server.streams.sse import EventStream
from graphsvc.server.workers import Busy, Workers
from graphsvc.store.database import Connection

REQUEST_S: Final = float(LIMITS["seconds"].most)
CAPTURE_S: Final = float(LIMITS["capture_seconds"].most)  # a large batch takes its time; stopping it only repeats it


def application(
    settings: Settings,
    *,
    token: str,
    names: frozenset[str],
    url: str | None = None,
    stopping: asyncio.Event | None = None,
) -> App:
    """Build the app behind its guard: it answers to the Host values `names`, and a browser finds it at `url`.

    Streams end when `stopping` is set: a server that stops waits for them. Raise InvalidInput when the settings name no
    address for OpenLineage.
    """
    workers, checker, indexer, served = Workers(settings), Checker(), Indexer(settings), pages.files()
    mirror, keys = Mirror(settings, VERSION), Keys(workers, token)

    def wrote() -> None:
        indexer.wake()
        mirror.wake()

    streams = Streams(workers, checker, wrote, stopping or asyncio.Event(), mirror)
    pusher = Pusher(settings, endpoint(settings.openlineage)) if settings.openlineage else None

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        indexer.start()
        if pusher is not None:
            pusher.start()
        mirror.begin()
        watching = [asyncio.create_task(streams.tail.watch()), asyncio.create_task(keys.watch())]
        yield
        streams.stopping.set()
        for task in watching:
            task.cancel()
        await asyncio.to_thread(indexer.stop)
        if pusher is not None:
            await asyncio.to_thread(pusher.stop)
        await asyncio.to_thread(mirror.close)
        await asyncio.to_thread(workers.close)
        checker.close()

    async def graphql(request: Request) -> Response:
        if request.method != "POST" and not asked(request.scope):
            return _page(request, served[pages.PAGE])
        try:
            return await _graphql(request, workers, checker, streams, keys, mirror)
        except Refused as refused:
            return _refused(refused)

    async def talk(websocket: WebSocket) -> None:
        await Conversation(websocket, streams, keys).run()

    async def health(request: Request) -> Response:
        return _health(request, url, mirror.status())

    async def file(request: Request) -> Response:
        return pages.respond(served[request.url.path], request)

    routes = [
        Route(pages.PAGE, graphql, methods=["GET", "POST"]),
        WebSocketRoute(pages.PAGE, talk),
        Route("/health", health, methods=["GET"]),
        *(Route(path, file, methods=["GET"]) for path in served.keys() - {pages.PAGE}),
    ]
    handlers = {HTTPException: _not_served, Exception: _bug}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    paths = frozenset({"/health", *served})
    guard = _guarded(Locked(app=app, keys=keys, open_paths=paths), settings.origins, names)
    return Requests(app=guard, token=token, paths=paths)


def _guarded(locked: App, origins: frozenset[str], names: frozenset[str]) -> App:
    """Put what is served behind its guard. A page of a listed origin may read answers, refusals for its token too."""
    shared = CORSMiddleware(
        locked,
        allow_origins=sorted(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", executor.VIEWER, executor.PROJECT, executor.CWD, executor.CAPTURE],
        expose_headers=["Retry-After"],
        allow_private_network=True,
    )
    return Guard(app=shared if origins else locked, hosts=names, origins=origins)


async def _graphql(
    request: Request, workers: Workers, checker: Checker, streams: Streams, keys: Keys, mirror: Mirror
) -> Response:
    accept = request.headers.get("accept")
    media_type = exchange.accepted_type(accept)
    token = request.scope[access.SHOWN]
    capturing = executor.CAPTURE.lower() in request.headers and token.kind is not TokenKind.READ
    seconds = CAPTURE_S if capturing else REQUEST_S
    limit = exchange.MAX_CAPTURE if capturing else exchange.MAX_BODY
    try:
        asker = exchange.asker(request.headers.getlist, token)
        workers.check(asker.who)
        streaming = media_type == exchange.STREAM
        read = await _reader(request, checker, limit, seconds, streams=streaming)
        if streaming:
            return await _streamed(request, workers, streams, keys, read, asker)
        try:
            answer = await workers.run(lambda db: _respond(db, read, asker, media_type, mirror), seconds, asker.who)
        except schema.Subscribes:
            return await _streamed(request, workers, streams, keys, read, asker)
    except TimeoutError:
        raise Refused(504, "DEADLINE", f"not done within {seconds:.0f} s; ask for less") from None
    except Busy as busy:
        exceeded = LIMITS[busy.limit]
        raise Refused(503, "BUSY", f"{exceeded.most} {exceeded.what} already; {exceeded.advice}") from None
    except ClientDisconnect:
        return Response(status_code=400)
    status, body, stores = answer
    if stores:
        streams.wrote()
    headers = {"Cache-Control": "no-store", "Content-Type": f"{media_type}; charset=utf-8"}
    return Response(body, status, headers | ({"Allow": "POST"} if status == 405 else {}))


async def _streamed(
    request: Request, workers: Workers, streams: Streams, keys: Keys, read: Callable[[], Question], asker: Asker
) -> Response:
    """Answer by an event stream, when the client asks for one."""
    if not exchange.streamed(request.headers.get("accept")):
        how = f"send 'Accept: {exchange.STREAM}', or use a WebSocket at this path"
        raise Refused(406, "ACCEPT", f"a subscription has no one answer: {how}")
    if request.method != "POST":
        raise Refused(406, "ACCEPT", "an event stream is the answer to a POST")
    keys.check(asker.token)
    try:
        question = await workers.run(lambda db: _question(db, read, asker), REQUEST_S, asker.who)
    except Invalid as invalid:
        return EventStream(refused(invalid.response), streams.stopping, keys.held(asker.token))
    return EventStream(streams.answers(question, asker), streams.stopping, keys.held(asker.token))


async def _reader(
    request: Request, checker: Checker, limit: int, seconds: float, *, streams: bool
) -> Callable[[], Question]:
    """Receive what is asked and return how to read it: that takes time when it is large, and happens off the loop."""
    if request.method != "POST":
        return lambda: checker.checked(exchange.asked(asked(request.scope)))
    exchange.check_content_type(request.headers.get("content-type"))
    raw = await exchange.body(request.stream(), request.headers.get("content-length"), limit, seconds)
    return partial(checker.question, raw, streams=streams)


def _question(db: Connection, read: Callable[[], Question], asker: Asker) -> Question:
    _check_token(db, asker)
    return read()


def _respond(
    db: Connection, read: Callable[[], Question], asker: Asker, media_type: str, mirror: Mirror
) -> tuple[int, bytes, bool]:
    """Return status, body, and whether something may have been stored."""
    _check_token(db, asker)
    try:
        question = read()
    except Invalid as invalid:
        return exchange.status(invalid.response, media_type), exchange.encoded(invalid.response), False
    context = Context(db=db, asker=asker, clock=clock.system, mirror=mirror)
    response = schema.respond(question.document, question.variables, question.operation, context, reads=question.reads)
    stores = not question.reads and mutates(question.document)
    return exchange.status(response, media_type), exchange.encoded(response), stores


def _check_token(db: Connection, asker: Asker) -> None:
    """Refuse what a token asks that holds no longer: it may have been revoked while the request arrived."""
    lost = access.refusal(db, asker.token)
    if lost is not None:
        raise Refused(lost.status, lost.code, lost.message)


def _page(request: Request, file: File) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        message = "send documents by POST; a browser gets a page here"
        return _refused(Refused(405, "METHOD", message), {"Allow": "POST"})
    return pages.respond(file, request)


def _health(request: Request, url: str | None, graph: Status) -> Response:
    # Who asks on the socket may not know where a browser finds the service; who asks over TCP does.
    where = {"url": url} if on_socket(request.scope) else {}
    progress = {"done": graph.done, "expected": graph.expected} if graph.expected else {}
    mirror = {"status": graph.state, "position": graph.position, **progress}
    told = {"status": "ok", "version": __version__, "graph": mirror, **where}
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


def _refused(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    body, about = written(refused.refusal)
    return Response(body, refused.refusal.status, {**about, **(headers or {})})


def _not_served(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    return _refused(Refused(status, "NOT_SERVED", "this service has /graphql and /health"), headers)


def _bug(_: Request, error: Exception) -> Response:
    return _refused(Refused(500, "BUG", bugs.told(bugs.log("the service", error))))

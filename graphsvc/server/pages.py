"""What a browser gets at /graphql: GraphiQL when it was packed, else a small page of our own, and what both load.

All of it is text of the package, so it needs no token, and nothing of it comes from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from graphsvc.web.documents import documents

PAGE: Final = "/graphql"
WEB: Final = Path(__file__).resolve().parent.parent / "web"
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json"}
_POLICY: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
# GraphiQL's dialogs insert a style element, and its style sheet holds its fonts.
_GRAPHIQL_POLICY: Final = _POLICY | {
    "style-src": "'self' 'unsafe-inline'",
    "font-src": "data:",
}
_PARTS: Final = {
    "graphiql": ("graphiql.js", "graphiql.css", "access.js", "documents.js"),
    "console": ("console.js", "console.css", "access.js"),
}
_REVALIDATE: Final = "no-cache"
_FOREVER: Final = "public, max-age=31536000, immutable"  # of a path that names a version
_TAGS: Final = {
    ".js": '<script src="{path}" integrity="{digest}" defer></script>',
    ".css": '<link rel="stylesheet" href="{path}" integrity="{digest}">',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """What is served at one path."""

    content: bytes
    media_type: str
    tag: str
    policy: Mapping[str, str]
    cached: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file of the lock: what it is called here, and what it must be."""

    name: str
    digest: str

    @property
    def path(self) -> str:
        return f"{PAGE}/assets/{self.name}"

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix


def files(web: Path = WEB) -> dict[str, File]:
    """Return everything a page consists of, by path; `PAGE` itself is GraphiQL when all its assets are there."""
    assets = packed(web)
    page, policy = ("graphiql", _GRAPHIQL_POLICY) if assets else ("console", _POLICY)
    served = {f"{PAGE}/{name}": _own((web / name).read_bytes(), name, policy) for name in _PARTS[page]}
    served[f"{PAGE}/documents.json"] = _own(_documents(), "documents.json", policy)
    served[PAGE] = _own(_html(web / f"{page}.html", assets), f"{page}.html", policy)
    for asset in assets:
        served[asset.path] = File(
            content=(web / "assets" / asset.name).read_bytes(),
            media_type=_TYPES[asset.suffix],
            tag=f'"{asset.digest}"',
            policy=policy,
            cached=_FOREVER,
        )
    return served


def packed(web: Path = WEB) -> list[Asset]:
    """List what GraphiQL consists of; nothing when a part of it is missing."""
    assets = locked(web)
    return assets if all((web / "assets" / asset.name).is_file() for asset in assets) else []


def locked(web: Path = WEB) -> list[Asset]:
    """List the scripts and styles of the lock in the order they are loaded."""
    lock = json.loads((web / "assets.lock.json").read_text("utf-8"))
    assets = [Asset(name=name, digest=source["integrity"]) for name, source in lock.items()]
    return [asset for asset in assets if asset.suffix in _TAGS]


def respond(file: File, request: Request) -> Response:
    """Answer with the file, or with 304 when the browser has it."""
    headers = {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in file.policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": file.cached,
        "ETag": file.tag,
    }
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if file.tag in known:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


def _own(content: bytes, name: str, policy: Mapping[str, str]) -> File:
    tag = base64.b64encode(hashlib.sha256(content).digest()).decode()
    return File(
        content=content, media_type=_TYPES[Path(name).suffix], tag=f'"{tag}"', policy=policy, cached=_REVALIDATE
    )


def _html(path: Path, assets: list[Asset]) -> bytes:
    """Put the assets where the page says; a browser refuses one that is not what the lock names."""
    tags = [_TAGS[asset.suffix].format(path=asset.path, digest=asset.digest) for asset in assets]
    return path.read_text("utf-8").replace("<!-- assets -->", "\n".join(tags)).encode()


def _documents() -> bytes:
    return json.dumps([asdict(document) for document in documents()], ensure_ascii=False).encode()

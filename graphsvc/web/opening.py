"""Start the browser at an address that holds a secret."""

from __future__ import annotations

import html
import os
import secrets
import webbrowser

from graphsvc.config import Settings


def opened(settings: Settings, url: str) -> bool:
    """Open the address in the browser; False when there is none to start."""
    # Every user of the machine reads the arguments of a process. So the browser is given a file that leads on.
    path = settings.home / "open.html"
    new = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>graphsvc</title>'
            f'<meta http-equiv="refresh" content="0; url={html.escape(url)}">\n'
        )
    new.replace(path)
    return webbrowser.open(path.as_uri())

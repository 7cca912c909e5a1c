"""Looks for the traces of a text in the files of a home: as it is, and in whatever is compressed."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from pathlib import Path


def holders(home: Path, texts: Iterable[str]) -> set[str]:
    """Return the files below a folder that hold a byte string of one of the texts, in any case."""
    wanted = [text.lower().encode() for text in texts]
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and any(text in data for data in _read(path) for text in wanted)
    }


def _read(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [data.lower(), *(one.lower() for one in unpacked(data))]


def unpacked(data: bytes) -> Iterable[bytes]:
    """Yield what every zlib stream that begins anywhere in these bytes holds, as far as it can be read."""
    for match in re.finditer(rb"x[\x01\x5e\x9c\xda]", data):
        stream = zlib.decompressobj()
        try:
            yield stream.decompress(data[match.start() :])
        except zlib.error:
            continue

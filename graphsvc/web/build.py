"""Build hook: put GraphiQL into what is built, from the exact npm packages of `assets.lock.json`.

Files wait in `assets/` beside this module, which git ignores; an editable install serves them from there. Without npm
nothing fails: the small page serves instead. A file that is not the one the lock names ends the build.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOM: Final = Path("graphsvc", "web")
PACK_S: Final = 180
# npm would wait more than a minute for a network that is not there.
_PACK: Final = ("pack", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000")

Lock = Mapping[str, Mapping[str, str]]  # name here → package, path in the package, integrity


class NotPacked(Exception):  # what happened, not a kind of error
    """The packages could not be had."""


class AssetsHook(BuildHookInterface):  # type: ignore[type-arg]  # of any builder
    """Fetches what is missing, checks everything, and adds it to the wheel and the sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the assets to this build, or say why they are left out."""
        folder = Path(self.root, ROOM, "assets")
        lock: Lock = json.loads(Path(self.root, ROOM, "assets.lock.json").read_text("utf-8"))
        try:
            missing = {name: source for name, source in lock.items() if not (folder / name).is_file()}
            if missing:
                _fetch(folder, missing)
        except NotPacked as reason:
            self.app.display_warning(f"graphsvc is built without GraphiQL, a small page serves instead: {reason}")
            return
        for name, source in lock.items():
            check(name, (folder / name).read_bytes(), source["integrity"])
            if version != "editable":
                build_data["force_include"][str(folder / name)] = (ROOM / "assets" / name).as_posix()


def check(name: str, content: bytes, integrity: str) -> None:
    """End the build unless the content is what the lock names."""
    found = f"sha384-{base64.b64encode(hashlib.sha384(content).digest()).decode()}"
    if found != integrity:
        raise SystemExit(
            f"{name} is not the file that {ROOM / 'assets.lock.json'} names: {found} instead of {integrity}. Nothing"
            f" was built. Remove {ROOM / 'assets'} to fetch it again; if that does not help, do not trust the registry."
        )


def _fetch(folder: Path, lock: Lock) -> None:
    """Pack the packages with npm, which runs no script of theirs, and keep the files that the lock names."""
    packages = {source["package"]: source["package"].replace("@", "-") for source in lock.values()}
    with tempfile.TemporaryDirectory(prefix="graphsvc-assets-") as temporary:
        _pack(Path(temporary), list(packages))
        for name, source in lock.items():
            with tarfile.open(Path(temporary, f"{packages[source['package']]}.tgz")) as archive:
                content = _member(archive, f"package/{source['path']}")
            check(name, content, source["integrity"])
            _keep(folder / name, content)


def _pack(folder: Path, packages: list[str]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotPacked("there is no npm; install Node.js and install graphsvc again")
    try:
        ran = subprocess.run(  # noqa: S603 # npm of the PATH, with arguments of the lock file
            [npm, *_PACK, *packages],
            cwd=folder,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=PACK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotPacked(f"npm pack did not end well ({error})") from error
    if ran.returncode:
        said = ran.stderr.decode("utf-8", "replace").strip()
        raise NotPacked(f"npm pack failed: {said.splitlines()[0] if said else ran.returncode}")


def _member(archive: tarfile.TarFile, path: str) -> bytes:
    """Read a file of a package; one that is not there reads as empty, which no lock names."""
    try:
        file = archive.extractfile(path)
    except KeyError:
        file = None
    return b"" if file is None else file.read()


def _keep(path: Path, content: bytes) -> None:
    """Write the file whole: builds of the same checkout may run at once."""
    new = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content)
        new.replace(path)
    except OSError as error:
        raise NotPacked(f"{path.parent} cannot be written ({error})") from error

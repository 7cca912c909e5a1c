"""The build hook: what it packs, and when it refuses. npm is a script here that hands over packages of the test."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCK = json.loads((ROOT / "graphsvc" / "web" / "assets.lock.json").read_text("utf-8"))
CONTENT = {"dist/page.js": b"let page = 1;\n", "dist/page.css": b"p { color: red }\n", "LICENSE": b"MIT\n"}
ASSETS = {f"graphsvc/web/assets/page-1.2.3/{name.rpartition('/')[2]}" for name in CONTENT}
NPM = """#!/bin/sh
echo "$*" >> {folder}/calls
case "$*" in *--ignore-scripts*) ;; *) exit 9 ;; esac
{then}
"""


def integrity(content):
    return f"sha384-{base64.b64encode(hashlib.sha384(content).digest()).decode()}"


@dataclass(frozen=True)
class Checkout:
    """A copy of this checkout without assets, whose lock names one package: page@1.2.3."""

    folder: Path
    programs: Path
    packages: Path

    def npm(self, then="cp {folder}/*.tgz ."):
        """Put an npm on the path that does this."""
        script = self.programs / "npm"
        script.write_text(NPM.format(folder=self.packages, then=then.format(folder=self.packages)))
        script.chmod(0o755)

    def pack(self, content):
        """Let npm hand over a package with these files."""
        with tarfile.open(self.packages / "page-1.2.3.tgz", "w:gz") as archive:
            for name, data in content.items():
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))

    @property
    def calls(self):
        file = self.packages / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def build(self, target="wheel", path="/usr/bin:/bin", cwd=None):
        """Build as pip does; return the process and the names in what was built."""
        dist = self.folder.parent / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        process = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(dist)],
            cwd=cwd or self.folder,
            env={**os.environ, "PATH": f"{self.programs}:{path}"},
            capture_output=True,
            text=True,
            check=False,
        )
        built = list(dist.iterdir()) if dist.exists() else []
        return process, built


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "assets")
    for name in ("graphsvc", "schema", "queries", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    lock = {
        f"page-1.2.3/{path.rpartition('/')[2]}": {
            "package": "page@1.2.3", "path": path, "integrity": integrity(content),
        }
        for path, content in CONTENT.items()
    }  # fmt: skip
    (folder / "graphsvc" / "web" / "assets.lock.json").write_text(json.dumps(lock))
    for name in ("programs", "packages"):
        (tmp_path / name).mkdir()
    found = Checkout(folder, tmp_path / "programs", tmp_path / "packages")
    found.pack(CONTENT | {"evil.js": b"not in the lock"})
    found.npm()
    return found


def in_wheel(built):
    [wheel] = built
    return {name for name in zipfile.ZipFile(wheel).namelist() if "/assets/" in name}


def test_what_the_lock_names_is_packed_with_its_licence(checkout):
    process, built = checkout.build()

    assert process.returncode == 0, process.stderr
    assert in_wheel(built) == ASSETS
    assert [call.split()[-1] for call in checkout.calls] == ["page@1.2.3"]


def test_what_was_fetched_stays_in_the_checkout_and_is_not_fetched_again(checkout):
    checkout.build()
    fetched = {path.relative_to(checkout.folder).as_posix() for path in checkout.folder.glob("graphsvc/web/assets/*/*")}
    process, built = checkout.build()

    assert process.returncode == 0, process.stderr
    assert fetched == in_wheel(built) == ASSETS
    assert len(checkout.calls) == 1


def test_sdist_carries_the_assets_to_where_no_npm_is(checkout, tmp_path):
    _, [sdist] = checkout.build("sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (checkout.programs / "npm").unlink()

    [unpacked] = (tmp_path / "unpacked").iterdir()
    process, built = checkout.build(path="/nowhere", cwd=unpacked)

    assert process.returncode == 0, process.stderr
    assert in_wheel(built) == ASSETS
    assert "without GraphiQL" not in process.stderr


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (None, "there is no npm"),
        ("echo 'npm error network is unreachable' >&2; exit 1", "network is unreachable"),
        ("exit 7", "npm pack failed: 7"),
    ],
)
def test_without_the_packages_the_build_succeeds_and_says_so(checkout, then, reason):
    (checkout.programs / "npm").unlink()
    if then:
        checkout.npm(then)
    process, built = checkout.build(path="/bin:/usr/bin" if then else "/nowhere")

    assert process.returncode == 0, process.stderr
    assert in_wheel(built) == set()
    assert "built without GraphiQL" in process.stderr
    assert reason in process.stderr


def flipped(content):
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize("name", CONTENT)
def test_a_flipped_byte_in_a_package_ends_the_build(checkout, name):
    checkout.pack(CONTENT | {name: flipped(CONTENT[name])})

    process, built = checkout.build()

    assert process.returncode != 0
    assert built == []
    assert f"page-1.2.3/{name.rpartition('/')[2]} is not the file" in process.stderr


def test_a_file_that_a_package_lacks_ends_the_build(checkout):
    checkout.pack({name: content for name, content in CONTENT.items() if name != "LICENSE"})

    process, built = checkout.build()

    assert process.returncode != 0
    assert built == []


def test_a_flipped_byte_in_what_was_fetched_before_ends_the_build(checkout):
    checkout.build()
    file = checkout.folder / "graphsvc/web/assets/page-1.2.3/page.js"
    file.write_bytes(flipped(file.read_bytes()))

    process, built = checkout.build()

    assert process.returncode != 0
    assert built == []
    assert "Remove graphsvc/web/assets" in process.stderr


def test_lock_names_exact_versions_their_licences_and_no_registry():
    for name, source in LOCK.items():
        package, version = re.fullmatch(r"([a-z-]+)@(\d+\.\d+\.\d+)", source["package"]).groups()
        assert name == f"{package}-{version}/{source['path'].rpartition('/')[2]}"
        assert len(base64.b64decode(source["integrity"].removeprefix("sha384-"), validate=True)) == 48
        assert LOCK[f"{package}-{version}/LICENSE"]
        assert set(source) == {"package", "path", "integrity"}


def test_locks_of_npm_name_no_registry():
    for lock in ROOT.glob("tests/**/package-lock.json"):
        packages = json.loads(lock.read_text("utf-8"))["packages"]
        assert [name for name, package in packages.items() if "resolved" in package] == []
        assert all(package.get("integrity") for name, package in packages.items() if name)


def test_nothing_fetched_is_committed():
    listed = subprocess.run(["git", "ls-files", "graphsvc/web"], cwd=ROOT, capture_output=True, check=False)  # noqa: S607 # found on PATH
    if listed.returncode:
        pytest.skip("no git checkout")

    assert b"graphsvc/web/assets.lock.json" in listed.stdout
    assert b"graphsvc/web/assets/" not in listed.stdout

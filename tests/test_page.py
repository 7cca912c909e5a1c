"""What a browser gets: the page with or without GraphiQL, its headers, the documents, and the address of it all."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from graphql import OperationDefinitionNode, build_schema, parse
from starlette.requests import Request

from graphsvc import resources
from graphsvc.client.token import make_token, read_token
from graphsvc.server import pages
from graphsvc.server.app import application
from graphsvc.server.guard import hosts
from graphsvc.web.documents import documents, read

PORT = 8123
CHECKOUT = Path(__file__).resolve().parent.parent
OWN = ("access.js", "console.js", "documents.js", "graphiql.js", "console.html", "graphiql.html")


@pytest.fixture
def web(tmp_path):
    """The room `web` with assets of the test in the place of GraphiQL's."""
    folder = tmp_path / "web"
    shutil.copytree(pages.WEB, folder, ignore=shutil.ignore_patterns("assets", "__pycache__"))
    lock = json.loads((folder / "assets.lock.json").read_text("utf-8"))
    for name, source in lock.items():
        content = f"/* {name} */".encode()
        source["integrity"] = f"sha384-{base64.b64encode(hashlib.sha384(content).digest()).decode()}"
        (folder / "assets" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "assets" / name).write_bytes(content)
    (folder / "assets.lock.json").write_text(json.dumps(lock))
    return folder


@pytest.fixture
def get(settings):
    """Ask the app for something without a token."""
    app = application(settings, token=make_token(settings), names=hosts(PORT))

    def get(path, **headers):
        async def send():
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as opened:
                return await opened.get(path, headers={name.replace("_", "-"): text for name, text in headers.items()})

        return asyncio.run(send())

    return get


def answer(file, **headers):
    """Answer with a file as the app does."""
    sent = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return pages.respond(file, Request({"type": "http", "headers": sent}))


def scripts(files):
    return re.findall(r'<script src="([^"]+)"', files[pages.PAGE].content.decode())


def test_page_is_graphiql_when_all_its_assets_are_packed(web):
    files = pages.files(web)

    loaded = [path.rpartition("/")[2] for path in scripts(files)]
    assert loaded == ["react.production.min.js", "react-dom.production.min.js", "graphiql.min.js", "graphiql.js"]
    assert set(scripts(files)) < set(files)


@pytest.mark.parametrize("name", [asset.name for asset in pages.locked()])
def test_page_is_the_small_one_when_an_asset_is_missing(web, name):
    (web / "assets" / name).unlink()

    files = pages.files(web)

    assert scripts(files) == ["/graphql/console.js"]
    assert set(files) == {"/graphql", "/graphql/access.js", "/graphql/documents.json"} | {
        f"/graphql/console.{kind}" for kind in ("js", "css")
    }


def test_browser_is_told_what_each_asset_must_be(web):
    files = pages.files(web)
    tags = re.findall(
        r'(?:src|href)="(/graphql/assets/[^"]+)" integrity="sha384-([^"]+)"', files[pages.PAGE].content.decode()
    )

    assert len(tags) == 4
    for path, digest in tags:
        assert base64.b64encode(hashlib.sha384(files[path].content).digest()).decode() == digest


@pytest.mark.parametrize("packed", [True, False])
def test_every_file_says_that_nothing_comes_from_elsewhere(web, packed):
    if not packed:
        shutil.rmtree(web / "assets")
    for file in pages.files(web).values():
        headers = answer(file).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))

        assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert ("'unsafe-inline'" in policy["style-src"]) is packed
        assert not any(":" in value.replace("data:", "") or "*" in value for value in policy.values())
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", OWN)
def test_our_own_files_keep_to_that(name):
    text = (pages.WEB / name).read_text("utf-8")

    assert not re.search(r"https?:", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|localStorage", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=", text)


def test_assets_are_kept_by_the_browser_and_our_own_files_are_asked_for_again(web):
    for path, file in pages.files(web).items():
        first = answer(file)
        again = answer(file, if_none_match=f'"other", W/{first.headers["etag"]}')

        assert ("immutable" in first.headers["cache-control"]) is path.startswith("/graphql/assets/")
        assert (again.status_code, again.body) == (304, b"")
        assert again.headers["content-security-policy"]
        assert answer(file, if_none_match='"other"').body == file.content


def test_changed_file_has_another_tag(web):
    before = pages.files(web)["/graphql/graphiql.js"]
    with (web / "graphiql.js").open("a") as file:
        file.write("// changed\n")

    assert answer(pages.files(web)["/graphql/graphiql.js"], if_none_match=before.tag).status_code == 200


def test_everything_a_page_loads_needs_no_token_but_our_name(get):
    for path, file in pages.files().items():
        response = get(path, accept="text/html" if path == pages.PAGE else "*/*")

        assert response.status_code == 200, path
        assert response.content == file.content
        assert response.headers["content-type"].startswith(file.media_type)
        assert get(path, host="evil.example").status_code == 421


def test_path_that_leads_out_of_the_package_is_not_served(get):
    for path in ("/graphql/assets/", "/graphql/assets/../pages.py", "/graphql/%2e%2e/build.py", "/graphql/build.py"):
        assert get(path).status_code == 401, path


def test_page_is_for_browsers_only(get):
    response = get("/graphql", accept="application/json")

    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


def test_every_document_is_served_with_what_it_is_for(get):
    served = {one["name"]: one for one in get("/graphql/documents.json").json()}

    files = {path.relative_to(resources.ROOT / "queries") for path in (resources.ROOT / "queries").rglob("*.graphql")}
    assert set(served) == {path.with_suffix("").as_posix() for path in files}
    assert list(served) == sorted(served)
    assert [name for name, one in served.items() if not one["about"]] == []


@pytest.mark.parametrize("document", documents(), ids=lambda document: document.name)
def test_example_variables_are_those_of_the_document(document):
    [operation] = [one for one in parse(document.text).definitions if isinstance(one, OperationDefinitionNode)]
    declared = {variable.variable.name.value for variable in operation.variable_definitions or ()}

    assert set(document.variables or {}) <= declared
    assert operation.name.value == document.name.rpartition("/")[2], "the tab is named as the file is"


def test_document_says_what_it_is_for_and_with_what_to_try_it():
    text = (
        '# 每天的事件,\n# per day.\n# variables: {"zone": "Asia/Shanghai"}\nquery days { x }\n# variables: {"no": 1}\n'
    )

    document = read("dashboard/days", text)

    assert document.about == "每天的事件, per day."
    assert document.variables == {"zone": "Asia/Shanghai"}
    assert document.text == text
    assert read("x/y", "query y { x }").variables is None


@pytest.mark.parametrize("line", ["{", "[1]", "null", '{"a": 1}\n# variables: {"a": 2}'])
def test_variables_that_are_none_are_an_error_that_names_the_document(line):
    with pytest.raises(ValueError, match="dashboard/days"):
        read("dashboard/days", f"# variables: {line}\nquery days {{ x }}")


@pytest.fixture
def service(settings, tmp_path):
    """A running service, as its ready file describes it."""
    ready = tmp_path / "ready.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "graphsvc", "serve", "--port", "0", "--ready-file", str(ready)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "GRAPHSVC_HOME": str(settings.home)},
    )
    end = time.monotonic() + 30
    while not ready.exists():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    yield json.loads(ready.read_text())
    process.kill()
    process.wait()


def test_ui_prints_the_address_of_the_page_with_the_token(run, service, settings):
    address = f"{service['url']}/graphql#token={read_token(settings)}"

    assert run("ui").out == f"{address}\n"
    assert run("ui", "--json").json == {"url": address}
    assert httpx.get(address, headers={"Accept": "text/html"}).text.startswith("<!doctype html>")


def test_only_who_asks_on_the_socket_is_told_the_address(service):
    transport = httpx.HTTPTransport(uds=service["socket"])
    with httpx.Client(transport=transport) as client:
        assert client.get("http://localhost/health").json()["url"] == service["url"]

    assert "url" not in httpx.get(f"{service['url']}/health").json()


@pytest.mark.parametrize("killed", [False, True])
def test_ui_without_a_service_says_how_to_start_one(run, settings, service, killed):
    os.kill(service["pid"], 9 if killed else 15)
    end = time.monotonic() + 30
    while (ran := run("ui")).code == 0:
        assert time.monotonic() < end

    assert (ran.code, ran.out) == (3, "")
    assert "graphsvc serve" in ran.err
    assert "graphsvc serve" in run("ui", "--json").json["error"]["message"]


def test_ui_opens_the_browser_without_showing_the_token_to_other_users(program, service, settings, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$*" > {tmp_path}/arguments\n')
    browser.chmod(0o755)

    ran = program("ui", "--open", env={"BROWSER": str(browser)})

    token = read_token(settings)
    given = (tmp_path / "arguments").read_text().strip()
    file = Path(given.removeprefix("file://"))
    assert ran.code == 0, ran.err
    assert token not in given
    assert f"{service['url']}/graphql#token={token}" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_ui_without_a_browser_still_prints_the_address(program, service):
    ran = program("ui", "--open", env={"BROWSER": "/nowhere/browser"})

    assert "#token=" in ran.out
    assert ran.code == 3
    assert "open the address yourself" in ran.err


def test_the_small_page_asks_for_types_as_deep_as_they_are():
    """What it does not ask for is missing where it writes a type, and then no type is listed."""

    def depth(kind) -> int:
        return 1 + depth(kind.of_type) if hasattr(kind, "of_type") else 0

    types = build_schema((CHECKOUT / "schema" / "graphsvc.graphql").read_text("utf-8")).type_map.values()
    fields = [field for one in types for field in getattr(one, "fields", {}).values()]
    kinds = [one.type for field in fields for one in (field, *getattr(field, "args", {}).values())]

    asked = (CHECKOUT / "graphsvc" / "web" / "console.js").read_text("utf-8").count("ofType {")
    assert max(map(depth, kinds)) <= asked

"""Every document in `queries/` runs as it stands, with the variables in its second line, against the demo."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from graphql import OperationDefinitionNode, OperationType, parse

from graphsvc import resources
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.config import Settings
from graphsvc.graph import mirror
from graphsvc.importers import run as importing
from graphsvc.memory import capture, rebuild
from graphsvc.memory.apply import VERSION
from graphsvc.recall import index
from graphsvc.recall.scope import Asker

ROOT = resources.ROOT
DOCUMENTS = sorted((ROOT / "queries").rglob("*.graphql"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT / "queries").with_suffix(""))


def operation(path: Path) -> OperationDefinitionNode:
    [found] = [node for node in parse(path.read_text("utf-8")).definitions if isinstance(node, OperationDefinitionNode)]
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Settings:
    """A home that holds the demo, indexed."""
    settings = Settings(home=tmp_path_factory.mktemp("demo") / "home")
    with closing(rebuild.connect(settings)) as db:
        importing.import_files(
            [ROOT / "examples" / "demo"],
            capture=lambda batch: capture.capture(db, batch, history=True),
            known=lambda _: None,
            record=lambda *_: None,
        )
        while index.catch_up(db):
            pass
    return settings


@pytest.fixture
def ask(demo, tmp_path, clock) -> Iterator[Callable[..., dict]]:
    """Execute a document on a copy of the demo: `ask(path)` takes the variables from its second line."""
    shutil.copytree(demo.home, tmp_path / "home")
    settings = Settings(home=tmp_path / "home")
    with closing(rebuild.connect(settings)) as db:

        def ask(path: Path) -> dict:
            text = path.read_text("utf-8")
            variables = json.loads(text.splitlines()[1].removeprefix("# variables: "))
            kept = partial(mirror.kept, settings, VERSION)
            context = Context(db=db, asker=Asker(), clock=clock, begin_mirror=kept)
            return schema.respond(text, variables, None, context)

        yield ask


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_a_document_has_a_title_example_variables_and_one_operation_of_its_name(path):
    title, variables = path.read_text("utf-8").splitlines()[:2]

    assert title.startswith("# ")
    assert variables.startswith("# variables: {")
    assert isinstance(json.loads(variables.removeprefix("# variables: ")), dict)
    found = operation(path)
    assert found.name is not None
    assert found.name.value == path.stem


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if operation(path).operation is not OperationType.SUBSCRIPTION], ids=name
)
def test_a_document_runs_as_it_stands(ask, path, snapshot):
    answer = ask(path)

    assert "errors" not in answer
    assert json.dumps(answer, ensure_ascii=False, indent=1) == snapshot

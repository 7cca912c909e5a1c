"""Defects that other implementations of the protocol had: each check passes here, and fails on a mutant that has it.

A mutant replaces one function of ours for the length of a check. Behind them stand leaks that are planted one at a
time: the differential proof of `test_isolation` has to find each.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import stories

from graphsvc.audit import asking, proof, reads
from graphsvc.client import executor
from graphsvc.client import tool as api_tool
from graphsvc.errors import NotFoundError
from graphsvc.lineage import reach, walk
from graphsvc.memory import capture
from graphsvc.model import Event, EventKind
from graphsvc.recall import content, scope, search, targets
from graphsvc.recall.scope import Asker
from graphsvc.store import assets, counts, events, lists
from graphsvc.store.index import words
from graphsvc.store.visibility import Viewer, clause

ELSEWHERE = "/srv/talk/island"


@pytest.fixture
def mutate(monkeypatch):
    """Replace functions as `monkeypatch` does, and say that a check fails then."""

    def mutate(check, *changes):
        check()
        with monkeypatch.context() as patch:
            for module, name, value in changes:
                patch.setattr(module, name, value)
            with pytest.raises(AssertionError):
                check()
        check()

    return mutate


@pytest.fixture
def ask(db):
    """Ask a document as somebody: `ask("s2", document, variables)` returns its data as text; None is the owner."""

    def ask(viewer, document, **variables):
        asker = Asker(session_id=viewer) if viewer else Asker(project="all")
        [answer] = asking.carry(asking.Place(db), asker)(document, variables, False)
        assert "errors" not in answer, answer
        return json.dumps(answer["data"], ensure_ascii=False)

    return ask


@pytest.fixture
def story(db, talk):
    """`s1` isolates itself and says, decides and writes what `s2` beside it and `s3` elsewhere must not learn."""
    talk.user("The ferry timetable is public.")
    talk.session("s2").user("What is planned?")
    talk.project = ELSEWHERE
    talk.session("s3").user("Another island.")
    talk.project = stories.HERE
    talk.session("s1").isolated()
    talk.user("We decided: use the vermilion ledger.")
    talk.wrote("docs/secret.md", "# Vermilion\n\nThe vermilion plan.\n")
    talk.ran("cat keys", "vermilion output")
    return talk


def everywhere(mutant):
    """Return the changes that put a mutant of `clause` wherever the store reads."""
    return [
        (module, "clause", mutant)
        for name, module in sorted(sys.modules.items())
        if name.startswith("graphsvc.store.") and getattr(module, "clause", None) is clause
    ]


def sees_all(viewer, event):
    return "1", []


def _seen(db, viewer, event):
    return True


def test_defect_01_cat_by_id_ignores_isolation(db, story, tool, mutate):
    number = db.execute("SELECT MAX(event) AS event FROM asset_versions").fetchone()["event"]

    def check():
        for nav in ("cat", "cd", "ls"):
            for target in (f"asset-{number}", str(number)):
                answer = json.dumps(tool(nav=nav, target=target, viewer="s2"), ensure_ascii=False)
                assert "ermilion" not in answer
                assert targets.HIDDEN in answer

    mutate(check, (assets, "clause", sees_all))
    mutate(check, (targets, "visible", _seen))


def test_defect_02_the_viewer_is_who_the_caller_says(story, tool, mutate, settings):
    """`session_id` is what is asked about, never who asks."""

    def check():
        asked = ({"query": "vermilion"}, {"nav": "cat", "target": "s1"}, {"kind": "candidate"}, {"nav": "ls"})
        for viewer in (None, "s2"):
            for one in asked:
                given = {**one, "session_id": "s1"} if "target" not in one else one
                answer = json.dumps(tool(viewer=viewer, **given), ensure_ascii=False)
                assert "ermilion" not in answer.replace('"vermilion"', "")

    real = api_tool.call

    def believing(arguments, execute):
        named = arguments.get("session_id") or arguments.get("target")
        return real(arguments, executor.in_process(settings, Asker(session_id=named)))

    mutate(check, (api_tool, "call", believing))


def test_defect_03_without_a_viewer_everything_is_shown(story, tool, mutate, ask):
    def check():
        shown = [
            json.dumps(tool(nav="ls", target="s1")),
            json.dumps(tool(nav="grep", query="plan")),
            ask(None, "{ assets { edges { node { id title } } } todos { totalCount } }"),
            ask(None, "{ events(first: 100) { edges { node { body { text } } } } }"),
        ]
        assert "ermilion" not in "".join(shown)

    def open_to_nobody(viewer, event):
        return clause(viewer, event) if viewer.session is not None else ("1", [])

    mutate(check, *everywhere(open_to_nobody))


def test_defect_04_cat_reads_any_file_of_the_machine(story, tool, mutate, tmp_path):
    outside = tmp_path / "canary.txt"
    outside.write_text("a canary that nobody registered")

    def check():
        answer = tool(nav="cat", target=str(outside))
        assert answer.get("status") == "not-found"
        assert "canary that" not in json.dumps(answer)

    def reading(db, viewer, target, verb):
        try:
            return targets_resolve(db, viewer, target, verb)
        except NotFoundError:
            known = next(iter(assets.at_path(db, Viewer(everywhere=True), "README.md")))
            return targets.Found(targets.NodeId(targets.NodeType.ASSET, "1"), replace(known, path=target))

    def _any_file(root, path):
        return Path(path).read_text(), None

    story.isolated(on=False)
    story.wrote("README.md", "# Read me\n")
    targets_resolve = targets.resolve
    mutate(check, (content, "resolve", reading), (content, "live", _any_file))


def test_defect_05_tool_results_of_isolated_sessions_are_shared(db, clock, ask, mutate):
    told = iter(range(100))

    def check():
        name = f"own-{next(told)}"

        def event(kind, body, **meta):
            number = next(told)
            return Event(
                session_id=name,
                kind=EventKind(kind),
                origin=f"{name}:{number}",
                body=body,
                project=stories.HERE,
                meta=meta,
            )

        said = [
            event("user_message", "begin"),
            event("isolation", "on", action="on"),
            event("tool_call", "{}", tool_name="Bash", tool_use_id="call-1"),
            event("tool_result", "vermilion output", tool_name="Bash", tool_use_id="call-1"),
        ]
        capture.capture(db, said, now=clock)
        shown = ask(
            None, "query ($s: String) { events(session_id: $s) { edges { node { kind body { text } } } } }", s=name
        )
        assert "begin" in shown
        assert "vermilion output" not in shown

    isolated = capture._isolated

    def shares(view, event, session):
        return event.kind is not EventKind.TOOL_RESULT and isolated(view, event, session)

    check()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture, "_isolated", shares)
        with pytest.raises(AssertionError):
            check()


def test_defect_06_isolated_candidates_are_listed_to_others(story, ask, tool, mutate):
    def check():
        for viewer in (None, "s2"):
            listed = ask(
                viewer, "{ candidates { totalCount edges { node { text } } } stats { records { name count } } }"
            )
            assert json.loads(listed)["candidates"] == {"totalCount": 0, "edges": []}
            assert "candidate" not in listed.replace('"candidates"', "")
        assert "results" in (answer := tool(kind="candidate", viewer="s2"))
        assert answer["results"] == []

    assert json.loads(ask("s1", "{ candidates { totalCount } }")) == {"candidates": {"totalCount": 1}}
    mutate(check, (lists, "clause", sees_all))
    mutate(check, (counts, "clause", sees_all))


def test_defect_08_what_supersedes_another_sessions_decision_is_lost(db, clock, talk, ask):
    """And nothing is deleted by it."""

    def check(number):
        old = talk.session("s1").decided(f"Tea is free. {number}")
        at = db.execute("SELECT id FROM events WHERE origin = ?", (old,)).fetchone()["id"]
        talk.session("s2").event("decision", f"Tea has a price. {number}", action="supersede", id=at)
        listed = json.loads(ask(None, "{ decisions { edges { node { text status superseded_by { text } } } } }"))
        found = [edge["node"] for edge in listed["decisions"]["edges"] if edge["node"]["text"].endswith(str(number))]
        assert sorted(one["status"] for one in found) == ["active", "superseded"]

    subject = capture._subject

    def own_only(view, event, project, session):
        found = subject(view, event, project, session)
        if found.session != session:
            raise NotFoundError(str(found.id), "a decision of this session")
        return found

    check(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture, "_subject", own_only)
        with pytest.raises(AssertionError):
            check(2)


def test_defect_09_projects_bleed_into_each_other(story, talk, ask, tool, mutate):
    """A session sees its own project, whatever its neighbours' is called."""
    talk.session("s1").isolated(on=False)
    talk.decided("The harbor opens at nine.")
    talk.wrote("docs/harbor.md", "# Harbor\n")

    def check():
        shown = [
            ask("s3", "{ decisions { edges { node { text } } } assets { edges { node { path } } } }"),
            ask("s3", "{ goals { totalCount } feedback { totalCount } sessions { edges { node { project } } } }"),
            *(
                json.dumps(tool(viewer="s3", **one))
                for one in ({"kind": "decision"}, {"nav": "ls"}, {"query": "opens"})
            ),
            json.dumps(tool(viewer="s3", nav="cat", target="docs/harbor.md")),
        ]
        assert not any(word in "".join(shown) for word in ("opens at nine", "/srv/talk/harbor", "# Harbor"))

    resolve = scope.resolve

    def of_all(db, asker, project):
        viewer, notes = resolve(db, asker, project)
        return replace(viewer, project=None, everywhere=True), notes

    mutate(check, (scope, "resolve", of_all))


def test_defect_18_grep_forgets_who_asks(story, tool, mutate):
    def check():
        own = tool(nav="grep", query="vermilion", viewer="s1", session_id="s1")
        assert any("vermilion" in item["label"] for item in own["items"])
        others = tool(nav="grep", query="vermilion", viewer="s2")
        assert others["items"] == []

    find = search._find

    def _as_nobody(db, viewer, request):
        return find(db, replace(viewer, session=None), request)

    mutate(check, (search, "_find", _as_nobody))
    mutate(check, *everywhere(sees_all))


def test_defect_28_an_origin_names_another_sessions_event(db, clock, story, ask, monkeypatch):
    """The same origin in another project is another event; its content is nobody else's."""
    secret = db.execute(
        "SELECT e.id, e.origin FROM events e JOIN hidden h ON h.event = e.id WHERE e.kind = 'user_message'"
    ).fetchall()[-1]
    body = events.get(db, secret["id"]).body

    def check(session):
        again = Event(
            session_id=session,
            kind=EventKind.USER_MESSAGE,
            origin=secret["origin"],
            body=body,
            project=f"/srv/{session}",
        )
        capture.capture(db, [again], now=clock)
        own = json.loads(ask(session, "{ events { edges { node { session_id project } } } }"))["events"]["edges"]
        assert {(edge["node"]["session_id"], edge["node"]["project"]) for edge in own} == {(session, f"/srv/{session}")}
        assert len(own) >= 1

    def anywhere(db, project, origin):
        row = db.execute("SELECT id FROM events WHERE origin = ? ORDER BY id LIMIT 1", (origin,)).fetchone()
        return events.get(db, row["id"]) if row else None

    check("s4")
    settled = capture._settled
    with monkeypatch.context() as patch:
        patch.setattr(events, "by_origin", anywhere)
        # Before its project is known, too, as a store without projects looks.
        patch.setattr(capture, "_settled", lambda db, project, event: settled(db, project or 0, event))
        events.intern_project(db, "/srv/s5")
        with pytest.raises(AssertionError):
            check("s5")


@pytest.fixture(scope="module")
def told_twice(tmp_path_factory):
    with stories.worlds(stories.tell(22), tmp_path_factory.mktemp("twice")) as worlds:
        yield worlds


def leaks(worlds, wanted, named=""):
    """Return what the differential proof finds in the calls that are wanted, about ids that begin like this.

    As a session and as the owner, who is nobody's.
    """
    told, blank = worlds
    found, pool = [], stories.pool(told)
    pool = pool.some(tuple(one for one in pool.ids if one.startswith(named)))
    for name in ("a session beside", "the owner"):
        asker = stories.VIEWERS[name]
        calls = [one for one in reads.calls(pool, stories.dice(1), often=6) if wanted(one)]
        calls = [one for one in calls if proof.applies(one, asker, mirrored=False)]
        for way in asking.WAYS:
            with way.open(told, asker) as here, way.open(blank, asker) as there:
                found += [leak for _, leak, _ in proof.compare(calls, way, name, here, there) if leak]
    return found


def _scores(postings, places, position, real=search._scores):
    """Scores that depend on all that holds a word, whoever may see it."""
    held = set().union(*postings.values())
    return {event: round(score / (1 + len(held)), 6) for event, score in real(postings, places, position).items()}


def _both_tables(self, viewer):
    return [(self.db, one) for one in words.TABLES]


def _kept(db, viewer, root, *about):
    """Name a walk by what the store keeps its root under."""
    return f"{root[1]:x}"


PLANTED = {
    "nav by id": (
        lambda call: call.sort is reads.Sort.TOOL and "target" in call.variables,
        [(targets, "visible", _seen)],
        {"nav"},
    ),
    "search score": (
        lambda call: call.field == "search" and "query" in call.variables and "count_only" not in call.variables,
        [
            (search, "_scores", _scores),
            (words.Reader, "_tables", _both_tables),
        ],
        {"search"},
    ),
    "count": (lambda call: call.field == "stats", [(counts, "clause", sees_all)], {"stats"}),
    "cursor": (
        lambda call: call.field in {"lineage", "impact", "lineage_export"},
        [(walk, "digest", _kept), (reach, "digest", _kept)],
        {"lineage", "impact", "lineage_export"},
    ),
    "subscription": (
        lambda call: call.field == "events_captured",
        [(events, "clause", sees_all)],
        {"events_captured"},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_leak_is_found(told_twice, monkeypatch, name):
    wanted, changes, fields = PLANTED[name]
    named = "asset" if name == "cursor" else ""

    assert leaks(told_twice, wanted, named) == []
    with monkeypatch.context() as patch:
        for module, attribute, value in changes:
            patch.setattr(module, attribute, value)
        found = leaks(told_twice, wanted, named)
    print(f"{name}: {len(found)} leaks, such as: {found[0] if found else None}")

    assert found
    assert {leak.field for leak in found} <= fields

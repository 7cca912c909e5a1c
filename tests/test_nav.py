"""Navigation through the tool: one story, walked by its ids."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from jsonschema import Draft202012Validator

from graphsvc import render, resources
from graphsvc.client import executor, tool
from graphsvc.errors import Forbidden, NotFoundError
from graphsvc.recall import budget, scope
from graphsvc.recall.scope import Asker
from graphsvc.store import visibility

ENVELOPE = Draft202012Validator(json.loads(resources.text("schema/nav_result.json")))
MARKER = "[已隔离: 内容仅其所属会话可见]"


@pytest.fixture
def ask(settings, db):
    """Call the tool as a session (or as the owner): the answer, checked against the contract, and its exit code."""

    def ask(viewer=None, **arguments):
        line, code = tool.call(arguments, executor.in_process(settings, Asker(session_id=viewer)))
        answer = json.loads(line)
        if "nav" in arguments and code != 2:
            ENVELOPE.validate(answer)
        assert code == 2 or budget.tokens(line) <= arguments.get("token_budget", 4000)
        return answer, code

    return ask


@pytest.fixture
def story(talk):
    talk.user("Write the design. We decided: sessions use JWT, no cookies.")
    talk.wrote("docs/设计.md", "# Sign-in design\n\nCode: [login](../src/login.py)\n")
    talk.wrote("src/login.py", "def sign_in():\n    ...\n")
    talk.ran("git add -A && git commit -m 'Sign in'", "[main 1a2b3c4] Sign in")
    talk.failed()
    talk.tool("TodoWrite", {"todos": [{"content": "refresh tokens", "status": "pending"}]})
    old = talk.decided("sessions use JWT")
    talk.session("s2").user("决定改用服务端会话")
    talk.edited("docs/设计.md", "Sign-in design", "Login design")
    talk.superseded(old, "sessions live on the server")
    talk.compacted("The module moved to server sessions.")
    return talk


def _ids(answer):
    return [item["id"] for item in answer["items"]]


def test_ls_of_a_session_shows_outputs_and_pending_todos(ask, story, snapshot):
    assert ask(nav="ls", target="s1")[0] == snapshot


def test_cd_of_a_document_leads_to_its_writes_sessions_commit_and_linked_code(ask, story, snapshot):
    assert ask(nav="cd", target="docs/设计.md")[0] == snapshot


def test_cd_of_a_decision_shows_evidence_and_what_replaced_it(ask, story, snapshot):
    answer, _ = ask(query="sessions use JWT", kind="decision")

    assert ask(nav="cd", target=answer["results"][0]["id"])[0] == snapshot


def test_cd_of_a_session_shows_its_records_and_checkpoints(ask, story, snapshot):
    assert ask(nav="cd", target="s2")[0] == snapshot


def test_cd_of_an_event_shows_its_neighbours(ask, story, snapshot):
    assert ask(nav="cd", target="event-2")[0] == snapshot


@pytest.mark.parametrize("target", ["s1", "session-s1"])
def test_a_session_is_named_bare_or_by_its_id(ask, story, target):
    assert ask(nav="ls", target=target)[0]["context"] == {"session_id": "s1"}


def test_hosts_may_have_session_ids_that_begin_like_ours(ask, talk):
    talk.session("session-x").user("hello")

    for target in ("session-x", "session-session-x"):
        assert ask(nav="cd", target=target)[0]["context"]["session_id"] == "session-x"
        assert ask(session_id=target, query="hello")[0]["status"] == "found"


def test_ls_without_a_target_takes_the_most_recent_active_session(ask, story):
    assert ask(nav="ls")[0]["context"] == {"session_id": "s2"}
    assert ask("s1", nav="ls")[0]["context"] == {"session_id": "s1"}
    story.ended()
    assert ask(nav="ls")[0]["context"] == {"session_id": "s1"}
    story.session("s1").ended()
    assert _ids(ask(nav="ls")[0]) == ["session-s1", "session-s2"]


def test_an_empty_store_is_an_empty_list_not_an_error(ask):
    answer, code = ask(nav="ls")

    assert (code, answer["kind"], answer["items"]) == (0, "list", [])
    assert "graphsvc import" in answer["notes"][0]


def test_every_id_printed_anywhere_works_as_a_target(ask, story):
    seen, queue = set(), ["s1", "s2"]
    while queue:
        target = queue.pop()
        if target in seen:
            continue
        seen.add(target)
        for verb in ("ls", "cd", "cat"):
            answer, code = ask(nav=verb, target=target)
            assert code == 0, (verb, target, answer)
            assert "status" not in answer
            queue += _ids(answer)
            queue += answer.get("context", {}).get("evidence", [])
            queue += [item["ref"] for item in answer["items"] if re.fullmatch(r"[a-z]+-\d+", item.get("ref", ""))]
    assert len(seen) > 30


@pytest.mark.parametrize("nav", ["ls", "cd", "cat"])
@pytest.mark.parametrize(
    "target",
    [
        "asset-404",
        "event-404",
        "decision-2",
        "404",
        "s9",
        "docs/nowhere.md",
        "goal-",
        "x" * 3000,
        "event-" + "9" * 18,
        "9" * 40,
    ],
)
def test_a_missing_target_suggests_a_call_that_runs(ask, story, nav, target):
    answer, code = ask(nav=nav, target=target)

    assert (code, answer["status"], answer["items"]) == (1, "not-found", [])
    assert ask(**json.loads(answer["suggestion"]))[1] == 0


def test_a_misspelled_document_is_suggested(ask, story):
    assert json.loads(ask(nav="cat", target="src/logn.py")[0]["suggestion"]) == {"nav": "cat", "target": "src/login.py"}
    assert json.loads(ask(nav="cd", target="old/login.py")[0]["suggestion"])["target"] == "src/login.py"


@pytest.mark.parametrize("target", ["src/login.py", "login.py", "/srv/talk/harbor/src/login.py", "./src/login.py"])
def test_a_document_is_named_by_path_or_unique_suffix(ask, story, target):
    assert ask(nav="cd", target=target)[0]["title"].endswith("src/login.py · login.py")


def test_a_suffix_of_several_documents_is_a_list_not_a_guess(ask, talk):
    talk.wrote("a/notes.md")
    talk.wrote("b/notes.md")
    answer, code = ask(nav="cat", target="notes.md")

    assert (code, answer["kind"], len(answer["items"])) == (0, "list", 2)
    assert ask(nav="cd", target="otes.md")[1] == 1


def test_a_bare_number_is_an_asset_first_and_the_event_is_named(ask, story):
    asset = _ids(ask(nav="ls", target="s1")[0])[0]
    number = asset.removeprefix("asset-")
    answer, _ = ask(nav="cd", target=number)

    assert answer["context"]["asset_id"] == int(number)
    assert json.loads(answer["suggestion"]) == {"nav": "cd", "target": f"event-{number}"}
    assert ask(nav="cd", target="1")[0]["title"].startswith("event-1 ")


def test_a_long_list_comes_in_pages_without_repeats_or_gaps(ask, talk):
    for number in range(60):
        talk.wrote(f"docs/{number:02}.md", f"# Title {number}\n")
    found, cursor = [], None
    while True:
        answer, _ = ask(nav="ls", target="s1", limit=7, token_budget=200, **({"cursor": cursor} if cursor else {}))
        found += _ids(answer)
        cursor = answer.get("cursor")
        if cursor is None:
            break

    whole = _ids(ask(nav="ls", target="s1", limit=50)[0])
    assert len(found) == len(set(found)) == 60
    assert found[:50] == whole


@pytest.mark.parametrize("cursor", ["x", "!!!", "ojEdMjg", "AAAA", "é"])
def test_a_cursor_of_another_call_is_refused(ask, story, cursor):
    answer, code = ask(nav="ls", target="s1", cursor=cursor)

    assert (code, answer["error"]["field"]) == (2, "cursor")


def test_an_isolated_session_is_a_marker_for_others_and_open_to_itself(ask, story):
    story.session("s3").isolated()
    story.user("the secret plan")
    story.wrote("docs/plan.md", "# Secret plan\n")
    story.decided("secretly use bcrypt")
    listing, _ = ask(nav="ls", target="s3")
    own, _ = ask("s3", nav="ls", target="s3")

    assert [item["label"] for item in listing["items"]] == [MARKER]
    assert [item["label"].split(" ")[0] for item in own["items"]] == ["docs/plan.md"]
    for asked in ({"target": own["items"][0]["id"]}, {"target": "docs/plan.md"}, {"target": "s3"}, {"target": "s1"}):
        for verb in ("ls", "cd", "cat"):
            for viewer in (None, "s1"):
                assert "ecret" not in json.dumps(ask(viewer, nav=verb, **asked)[0])
    assert ask(nav="cd", target=own["items"][0]["id"]) == (
        {
            **ask(nav="cd", target=own["items"][0]["id"])[0],
            "items": [{"id": own["items"][0]["id"], "type": "asset", "label": MARKER}],
        },
        0,
    )
    assert ask(nav="cd", target="docs/plan.md")[1] == 1
    assert "isolated sessions exist" in " ".join(ask(nav="ls", target="s1")[0]["notes"])
    assert ask("s3", nav="cat", target="docs/plan.md")[1] == 0


def test_an_isolated_version_does_not_show_through_a_shared_asset(ask, story, tmp_path):
    story.session("s3").isolated()
    story.wrote("docs/设计.md", "# Hidden title\n")
    shared, _ = ask(nav="cd", target="docs/设计.md")
    own, _ = ask("s3", nav="cd", target="docs/设计.md")

    assert "Hidden title" not in json.dumps(shared)
    assert "Login design" in shared["title"]
    assert "Hidden title" in own["title"]
    captured = json.loads(ask(nav="cat", target="docs/设计.md")[0]["suggestion"])
    assert "Login design" in ask(**captured)[0]["items"][0]["label"]


def test_a_session_sees_its_own_project_only(ask, story):
    story.project = "/srv/talk/other"
    story.session("t1").user("in the other project")
    story.wrote("other.md", "# Other\n")

    assert ask("t1", nav="cd", target="s1")[1] == 1
    assert ask("t1", nav="cd", target="event-1")[1] == 1
    assert ask("t1", nav="cat", target="docs/设计.md")[1] == 1
    assert ask(nav="cd", target="t1")[1] == 0
    assert ask("t1", nav="ls", project="/srv/talk/harbor")[0]["error"]["field"] == "project"
    assert ask(nav="ls", project="/srv/nowhere")[0]["error"]["field"] == "project"
    assert ask("nobody", nav="ls")[1] == 1


def _pages(ask, viewer=None, **arguments):
    found, cursor = [], None
    while True:
        answer, code = ask(viewer, **arguments, **({"cursor": cursor} if cursor else {}))
        assert code == 0
        found += answer["items"]
        cursor = answer.get("cursor")
        if cursor is None:
            return found


@pytest.mark.parametrize("host_id", ["event-1", "asset-9", "1", "session-s1", "y ", " y", "a/b.md"])
def test_a_printed_session_id_opens_that_session_and_hides_no_other_id(ask, story, host_id):
    story.session(host_id).user("a session named like something else")

    assert ask(nav="cd", target=f"session-{host_id}")[0]["context"]["session_id"] == host_id
    assert ask(nav="ls", session_id=host_id)[0]["context"]["session_id"] == host_id
    assert ask(session_id=host_id, limit=1)[0]["results"][0]["session_id"] == host_id
    assert ask(host_id, nav="ls")[0]["context"]["session_id"] == host_id
    assert ask(nav="cd", target="event-1")[0]["title"].startswith("event-1 · user_message")
    assert ask(nav="cd", target="session-s1")[0]["context"]["session_id"] == "s1"


def test_a_session_of_another_project_hides_no_id_of_this_one(ask, story):
    story.project = "/srv/talk/other"
    story.session("event-1").user("elsewhere")
    story.session("session-s2").user("elsewhere too")

    for viewer in ("s1", None):
        assert "Write the design" in json.dumps(ask(viewer, nav="cd", target="event-1")[0])
    assert ask("s1", nav="ls", session_id="session-s2")[0]["context"]["session_id"] == "s2"
    assert ask("s1", session_id="session-s2", limit=1)[0]["results"][0]["session_id"] == "s2"


def test_a_session_named_bare_is_found_when_no_typed_id_is_meant(ask, talk):
    talk.session("event-99").user("hello")

    assert ask(nav="cd", target="event-99")[0]["context"]["session_id"] == "event-99"
    assert ask(nav="cd", target=" event-99\n")[0]["context"]["session_id"] == "event-99"


def test_what_other_projects_hold_decides_nothing_for_a_session(ask, story):
    before = ask("s1", nav="cd", target="设计.md"), ask("s1", nav="cat", target="harbor/docs/设计.md")
    near = ask("s1", nav="cd", target="event-404"), ask("s1", nav="cd", target="s9")
    story.project = "/srv/talk/other"
    story.session("t1").isolated()
    story.isolated(on=False)
    story.wrote("设计.md")
    story.wrote("harbor/docs/设计.md")
    story.session("s9x").user("elsewhere")

    assert (ask("s1", nav="cd", target="设计.md"), ask("s1", nav="cat", target="harbor/docs/设计.md")) == before
    assert (ask("s1", nav="cd", target="event-404"), ask("s1", nav="cd", target="s9")) == near
    assert before[0][1] == 0


def test_a_parent_in_another_project_is_no_edge_for_a_session(ask, story):
    story.project = "/srv/talk/other"
    story.session("t1").event("session_start", "", parent="s1", relation="resume", title="Elsewhere")

    assert "session-t1" in _ids(ask(nav="cd", target="session-s1")[0])
    assert "t1" not in json.dumps(ask("s1", nav="cd", target="session-s1")[0])


def test_a_node_with_many_edges_lists_all_of_them_what_was_made_of_it_first(ask, talk):
    talk.wrote("docs/b.md")
    for _ in range(420):
        talk.read("docs/b.md")
    talk.wrote("docs/a.md", "# A\n\nsee docs/b.md\n")
    listed = _pages(ask, nav="ls", target="docs/b.md", limit=50, token_budget=20_000)
    shown, _ = ask(nav="cd", target="docs/b.md")

    assert len(listed) == len({item["id"] for item in listed}) == 423  # the session, the link, the write, the reads
    assert [item["type"] for item in listed[:3]] == ["session", "asset", "event"]
    assert "docs/a.md" in json.dumps(shown["items"])


def test_cd_says_how_many_edges_it_leaves_out(ask, talk):
    replaced = [talk.user(f"message {number}") for number in range(430)]
    talk.compacted("all of that", replaces=replaced)
    first, _ = ask(nav="cd", target="event-431", token_budget=20_000)

    assert "30 more edges are left out; ls has all" in first["notes"]
    assert any("context names 20 of" in note for note in first["notes"])
    assert len(_pages(ask, nav="ls", target="event-431", limit=50)) == 430


def test_isolated_ends_are_one_row_behind_all_others(ask, talk):
    told = [talk.user(f"message {number}") for number in range(4)]
    talk.isolated()
    hidden = talk.user("hidden")
    talk.isolated(on=False)
    talk.compacted("all of that", replaces=[*told, hidden])
    number = talk.captured[-1].position

    for limit in (1, 2, 3, 4, 5, 50):
        listed = _pages(ask, nav="ls", target=f"event-{number}", limit=limit)
        assert [item["label"] == MARKER for item in listed] == [False] * 4 + [True]
    assert len(_pages(ask, "s1", nav="ls", target=f"event-{number}", limit=2)) == 5
    assert "hidden" not in json.dumps(listed)


def test_every_document_that_ends_with_a_path_is_listed(ask, talk):
    for number in range(60):
        talk.wrote(f"part-{number}/README.md")

    assert len(_pages(ask, nav="cd", target="README.md", limit=50)) == 60


def test_a_session_that_comes_in_between_two_pages_moves_nothing(ask, talk):
    for number in range(30):
        talk.session(f"s{number}").user("hello")
        talk.ended()
    first, _ = ask(nav="ls", limit=10)
    talk.session("new").user("hello")
    talk.ended()
    rest = _ids(ask(nav="ls", limit=50, cursor=first["cursor"])[0])

    assert [*_ids(first), *rest] == [f"session-s{number}" for number in reversed(range(30))]


def test_the_title_of_a_session_that_hides_something_is_its_own(ask, story):
    story.session("s3").isolated()
    story.user("hidden talk")
    story.isolated(on=False)
    story.user("go on", title="All about the hidden talk")

    for target in ("session-s3", f"event-{story.captured[-1].position}"):
        assert "All about" not in json.dumps(ask(nav="cd", target=target)[0])
        assert "All about" not in json.dumps(ask("s1", nav="cd", target=target)[0])
    assert "All about" in json.dumps(ask("s3", nav="cd", target="session-s3")[0])


def test_an_isolated_id_says_nothing_about_its_type(ask, story):
    story.session("s3").isolated()
    story.decided("secretly use bcrypt")
    number = story.captured[-1].position

    for kind in ("event", "asset", "decision", "todo", "goal"):
        answer, code = ask(nav="cd", target=f"{kind}-{number}")
        assert (code, answer["items"][0]["label"]) == (0, MARKER)
        assert ask("s3", nav="cd", target=f"{kind}-{number}")[1] == (kind not in {"event", "decision"})


@pytest.mark.parametrize("arguments", [{"nav": "ls"}, {"nav": "cd", "target": "s1"}, {"query": "design"}])
def test_an_unknown_viewer_is_told_so_with_a_call_that_runs_without_it(ask, story, arguments):
    answer, code = ask("s9", **arguments)

    assert (code, answer["status"]) == (1, "not-found")
    assert "the viewer is no session" in answer["notes"][0]
    assert ask(**json.loads(answer["suggestion"]))[1] == 0


def test_a_scoped_asker_neither_chooses_a_project_nor_hears_of_others(db, story):
    story.project = "/srv/talk/other"
    story.session("t1").user("elsewhere")
    here = Asker(owner=False, project="/srv/talk/harbor")

    for project in ("/srv/talk/other", "all", "/srv/nowhere"):
        with pytest.raises(Forbidden, match="bound to one project") as refused:
            scope.resolve(db, here, project)
        assert "other" not in refused.value.allowed
    with pytest.raises(NotFoundError) as unknown:
        scope.resolve(db, Asker(owner=False, session_id="t"), None)
    assert "t1" not in unknown.value.suggestion


@pytest.mark.parametrize(
    "command",
    [
        ("search", "--kind", "decision", "--", "--frobnicate"),
        ("ls", "--viewer", "zz"),
        ("search", "--viewer", "zz", "design"),
        ("cd", "--", "-x"),
    ],
)
def test_a_suggestion_in_the_terminal_runs_as_it_is_written(run, story, command):
    ran = run(*command)
    [suggested] = [line.removeprefix("try: ") for line in ran.err.splitlines() if line.startswith("try: ")]

    assert ran.code == 1
    assert run(*shlex.split(suggested)[1:]).code == 0


def test_names_that_begin_with_a_dash_are_typed_behind_two():
    assert render.typed({"query": "--frobnicate", "limit": 3}, ["--project", "all"]) == (
        "graphsvc search --limit 3 --project all -- --frobnicate"
    )


@pytest.mark.parametrize("field", ["sessions { edges { cursor } notes }", "stats { events notes }"])
def test_a_field_without_outcomes_names_the_unknown_viewer(settings, story, field):
    answer = executor.in_process(settings, Asker(session_id="nope"))(f"{{ {field} }}", {})

    [found] = answer["data"].values()
    assert found["notes"] == [visibility.NO_VIEWER]
    assert not found.get("edges")
    assert not found.get("events")


def test_a_document_written_in_isolation_first_has_the_number_of_its_first_shared_write(ask, story):
    story.session("s3").isolated()
    story.wrote("docs/plan.md", "# Hidden plan\n")
    own = ask("s3", nav="ls", target="s3")[0]["items"][0]["id"]
    story.session("s1").wrote("docs/plan.md", "# Shared plan\n")
    shared = f"asset-{story.captured[-1].position}"

    for viewer in (None, "s1"):
        assert shared in _ids(ask(viewer, nav="ls", target="s1")[0])
        assert [hit["id"] for hit in ask(viewer, query="plan", kind="asset")[0]["results"]] == [shared]
        assert "Shared plan" in ask(viewer, nav="cd", target=shared)[0]["title"]
        assert ask(viewer, nav="cd", target=own)[0]["items"][0]["label"] == MARKER
    for target in (own, shared):
        assert ask("s3", nav="ls", target=target)[1] == ask("s3", nav="cd", target=target)[1] == 0
        assert "docs/plan.md" in ask("s3", nav="cd", target=target)[0]["title"]

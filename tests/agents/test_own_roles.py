"""Agents of a project's own roles: slung, addressed, and held to what their file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from actions import ask_hook, ask_shell_hook, ask_tool_hook
from agent_rows import Agent
from conftest import Rook
from den import DONE, Den
from rookery.hooks import service as hooks
from rookery.hooks.model import DENIED
from support import everyone, wait_until, write_role

WRITER = "extends: builder\naliases: [author]\npurpose: writes the documentation\nends_with: [result]"


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def test_a_role_of_the_project_is_slung_by_its_alias(rook: Rook) -> None:
    write_role(rook.folder, "writer", f"{WRITER}\nmodel: quill\nprofile: relaxed", "# Writer\n\nYou write.\n")
    task = rook.json("task", "create", "Write").data["id"]
    session = rook.json("sling", task, "--role", "author").data["agents"][0]
    assert (session["agent"], session["role"], session["model"], session["profile"]) == (
        "writer-1",
        "writer",
        "quill",
        "relaxed",
    )
    instructions = Path(rook.folder, ".rookery", "sessions", session["id"], "instructions.md").read_text()
    assert "# Writer\n\nYou write.\n" in instructions
    assert "--type result" in instructions
    assert "--type worker_done" not in instructions
    rook("stop", "writer-1")


@pytest.mark.slow
def test_what_ends_a_role_ends_its_agents(den: Den) -> None:
    write_role(den.rook.folder, "writer", WRITER)
    say = {"mail": {"to": "{parent}", "type": "status", "subject": "Begun"}}
    task = den.task("Write", [say, DONE, {"mail": {"to": "{parent}", "type": "result", "subject": "Written"}}])
    den.sling(task, "--role", "writer", "--name", "ink")
    den.wait_for("ink", "completed")
    assert "said result" in den.rook.json("inspect", "ink").out.decode()


@pytest.mark.slow
def test_an_agent_outlives_a_mistake_in_the_file_of_its_role(den: Den) -> None:
    den.sling(den.task("Wait", [{"wait": "mail"}, {"wait": "mail"}, DONE]), "--name", "bee")
    den.wait_for("bee", "waiting")
    path = write_role(den.folder, "builder", "extends: wizard")
    den.rook("mail", "send", "bee", "--subject", "Hello", "--body", "Are you there?")
    wait_until(lambda: den.agent("bee")["turns"] == 2)
    den.wait_for("bee", "waiting")
    path.unlink()
    den.rook("mail", "send", "bee", "--subject", "Hello", "--body", "Go on.")
    den.wait_for("bee", "completed")


def test_roles_of_the_project_are_discovered(rook: Rook) -> None:
    write_role(rook.folder, "writer", WRITER)
    (role,) = rook.json("agents", "discover", "--role", "author").data
    assert (role["role"], role["aliases"], role["purpose"]) == ("writer", ["author"], "writes the documentation")
    assert "writer" in [role["role"] for role in rook.json("agents", "discover").data]
    refused = rook.json("agents", "discover", "--role", "wizard").error
    assert refused["code"] == "invalid_input"
    assert "writer" in refused["hint"]


def test_mail_reaches_the_groups_of_roles_and_aliases(rook: Rook) -> None:
    write_role(rook.folder, "writer", WRITER)
    Agent(rook.folder, "ink", "writer")
    Agent(rook.folder, "bee")
    for group, name in (("@writers", "ink"), ("@authors", "ink"), ("@workers", "bee")):
        sent = rook.json("mail", "send", group, "--subject", "Hello", "--body", "All well?").data
        assert [message["to"] for message in sent["messages"]] == [name], group
    assert rook.json("group", "create", "writers", "bee").error["code"] == "invalid_input"
    assert rook.json("mail", "send", "@poets", "--subject", "x", "--body", "x").error["code"] == "unknown_recipient"


def test_a_broken_role_cannot_be_slung_and_harms_nothing_else(rook: Rook) -> None:
    agent = Agent(rook.folder, "bee")
    path = write_role(rook.folder, "writer", "extends: wizard")
    task = rook.json("task", "create", "Write").data["id"]
    refused = rook.json("sling", task, "--role", "writer").error
    assert refused["code"] == "role_invalid"
    assert f"{path}:2:" in refused["message"]
    assert "rook doctor" in refused["hint"]
    report = rook.json("doctor", "--category", "roles")
    assert report.status == 1
    assert str(path) in report.out.decode()
    for words in (("agents", "discover"), ("status",), ("mail", "send", "@builders", "--subject", "x", "--body", "x")):
        assert rook(*words).status == 0, words
    assert ask_shell_hook(agent, "ls").status == 0


def test_an_agent_whose_role_cannot_be_read_may_use_no_tool(rook: Rook) -> None:
    agent = Agent(rook.folder, "bee")
    assert ask_hook(agent, ["status"]).status == 0
    path = write_role(rook.folder, "builder", "extends: wizard")
    for answer in (ask_hook(agent, ["status"]), ask_tool_hook(agent, "Read", {"file_path": "a"})):
        assert answer.status == DENIED
        assert str(path) in answer.err
    ran = rook.json("status", env=agent.env)
    assert ran.error["code"] == "role_invalid"
    after = b'{"tool_name": "Bash", "tool_input": {}}'
    assert hooks.handle(str(rook.folder), agent.session_id, "post-tool", after).status == 0
    path.unlink()
    assert ask_hook(agent, ["status"]).status == 0


def test_an_agent_whose_role_cannot_be_read_still_ends_and_its_task_is_open_again(rook: Rook) -> None:
    agent = Agent(rook.folder, "bee")
    for words in (("turn", "begin"), ("mail", "send", "human", "--type", "worker_done", "--subject", "Done")):
        assert rook(*words, env=agent.env).status == 0, words
    write_role(rook.folder, "builder", "extends: wizard")
    assert rook("turn", "end", env=agent.env).status == 0
    (agent_row,) = everyone(rook.json("status", "--all").data)
    assert (agent_row["state"], agent_row["outcome"]) == ("ended", "completed")
    assert rook.json("task", "get", agent.task).data["state"] == "PENDING"


def test_a_role_in_a_worktree_counts_for_nothing(rook: Rook) -> None:
    agent = Agent(rook.folder, "bee")
    write_role(agent.worktree, "builder", "extends: builder\nrights: {run.write: any}")
    assert ask_hook(agent, ["run", "complete"]).status == DENIED
    assert rook.json("run", "complete", env=agent.env).error["code"] == "not_permitted"


def test_only_people_sling_a_role_that_changes_agents_of_others(rook: Rook) -> None:
    write_role(rook.folder, "lead", "extends: lead\nslings: [builder, boss]")
    write_role(rook.folder, "boss", "extends: coordinator")
    lead = Agent(rook.folder, "queen", "lead")
    task = rook.json("task", "create", "More", "--parent", lead.task).data["id"]
    refused = rook.json("sling", task, "--role", "boss", env=lead.env)
    assert refused.error["code"] == "not_allowed_to_spawn"


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Edit", {"file_path": "notes.md"}),
        ("WebFetch", {"url": "https://example.org"}),
        ("mcp__moon__phase", {}),
        ("Bash", {"command": "ls"}),
        ("Bash", {"command": "rook status > notes.md"}),
        ("Bash", {"command": "rook status; ls"}),
        ("Bash", {"command": "rook mail send human --subject x --body $(ls)"}),
        ("Bash", {"command": "X=1 rook status"}),
        ("Bash", {"command": "time rook status"}),
        ("Bash", {"command": "(rook status)"}),
        ("Bash", {"command": "python -m rookery status"}),
    ],
)
def test_a_tool_that_a_sling_took_away_is_denied(rook: Rook, tool: str, tool_input: dict[str, str]) -> None:
    agent = Agent(rook.folder, "bee", tools=("Read", "Grep"))
    other = Agent(rook.folder, "ant", tools=("Read", "Edit", "WebFetch", "Bash", "mcp__moon"))
    answer = ask_tool_hook(agent, tool, tool_input)
    assert answer.status == DENIED
    assert f"{tool} is not among your tools" in answer.err
    assert "not among your tools" not in ask_tool_hook(other, tool, tool_input).err


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Read", {"file_path": "notes.md"}),
        ("TodoWrite", {}),
        ("mcp__rookery__status", {}),
        ("Bash", {"command": "rook mail send human --type worker_done --subject 'It is done' --body \"All of it\""}),
    ],
)
def test_what_is_left_and_what_an_agent_reports_by_is_allowed(
    rook: Rook, tool: str, tool_input: dict[str, str]
) -> None:
    agent = Agent(rook.folder, "bee", tools=("Read", "Grep"))
    assert ask_tool_hook(agent, tool, tool_input).status == 0


def test_a_role_without_a_tool_is_denied_it_and_no_sling_gives_it_back(rook: Rook) -> None:
    write_role(rook.folder, "writer", "extends: builder\ntools: [Read, Edit, Bash]")
    agent = Agent(rook.folder, "ink", "writer")
    assert "WebFetch is not among your tools" in ask_tool_hook(agent, "WebFetch", {"url": "x"}).err
    task = rook.json("task", "create", "Write").data["id"]
    refused = rook.json("sling", task, "--role", "writer", "--tools", "Read,WebFetch").error
    assert (refused["code"], refused["message"]) == ("invalid_input", "a writer has no WebFetch")
    denied = rook.json("guard", "explain", "writer").data["denied"]
    assert "WebFetch" in next(rule for rule in denied if "does not have" in rule["what"])["names"]


def test_the_narrowed_tools_are_kept_and_told(rook: Rook) -> None:
    task = rook.json("task", "create", "Look").data["id"]
    session = rook.json("sling", task, "--role", "scout", "--tools", "Read,Grep", "--tools", "Glob").data["agents"][0]
    assert session["settings"]["tools"] == ["Read", "Grep", "Glob"]
    instructions = Path(rook.folder, ".rookery", "sessions", session["id"], "instructions.md").read_text()
    assert "use only Read, Grep, Glob" in instructions
    call = ("guard", "test", "scout", "Bash", '{"command": "ls"}', "--worktree", session["worktree"])
    assert rook.json(*call).data["rule"] == "tool"
    rook("stop", session["agent"])

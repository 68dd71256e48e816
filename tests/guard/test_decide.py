"""Tools, paths, scope, and calls that are no calls at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.base import secret_paths
from rookery.guard.decide import decide
from rookery.guard.model import ALLOW, ASK, DENY, Bounds, Call, Verdict
from rookery.roles import tools
from rookery.roles.catalog import builtin_roles
from rookery.roles.model import NOTHING, PROFILES, RELAXED, STRICT, YOLO

READERS = [role for role in builtin_roles().values() if role.writes == NOTHING]


def call(bounds: Bounds, role: str, tool: str, profile: str | None = None, **tool_input: Any) -> Verdict:
    return decide(builtin_roles()[role], profile or builtin_roles()[role].profile, bounds, Call(tool, tool_input))


@pytest.mark.parametrize("tool", tools.FORBIDDEN)
def test_native_and_blocking_tools_are_denied_with_the_right_way(bounds: Bounds, tool: str) -> None:
    for role in builtin_roles():
        for profile in PROFILES:
            verdict = call(bounds, role, tool, profile)
            assert (verdict.verdict, bool(verdict.hint), bool(verdict.rule)) == (DENY, True, True)


@pytest.mark.parametrize(
    ("tool", "way"),
    [
        ("Task", "rook sling"),
        ("SendMessage", "rook mail send"),
        ("AskUserQuestion", "--type question"),
        ("ScheduleWakeup", "rook mail wait"),
        ("TaskCreate", "rook task"),
    ],
)
def test_the_right_way_is_named(bounds: Bounds, tool: str, way: str) -> None:
    assert way in call(bounds, "builder", tool).hint


@pytest.mark.parametrize("tool", sorted(tools.HARMLESS))
def test_harmless_tools_are_allowed(bounds: Bounds, tool: str) -> None:
    assert all(call(bounds, role, tool, STRICT).verdict == ALLOW for role in builtin_roles())


@pytest.mark.parametrize("tool", ["WebFetch", "WebSearch", "mcp__github__get_issue", "Skill"])
def test_what_reaches_out_is_a_matter_of_profile(bounds: Bounds, tool: str) -> None:
    assert [call(bounds, "scout", tool, profile).verdict for profile in (STRICT, RELAXED, YOLO)] == [DENY, ASK, ALLOW]


def test_our_own_server_is_judged_by_the_registry(bounds: Bounds) -> None:
    assert call(bounds, "scout", "mcp__rookery__mail__send", STRICT).verdict == ALLOW


@pytest.mark.parametrize("tool", ["Frobnicate", "", "bash", "write", "MCP__x", "Bash ", "x" * 10_000])
def test_an_unknown_tool_is_denied_in_every_profile(bounds: Bounds, tool: str) -> None:
    for profile in PROFILES:
        verdict = call(bounds, "builder", tool, profile, command="ls", file_path="x")
        assert verdict.verdict == DENY
        assert len(verdict.reason) < 300


@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit", "NotebookEdit"])
def test_only_writers_write_and_only_in_their_worktree(bounds: Bounds, tool: str) -> None:
    name = "notebook_path" if tool == "NotebookEdit" else "file_path"
    inside, absolute = {name: "src/new.py"}, {name: f"{bounds.worktree}/src/new.py"}
    assert call(bounds, "builder", tool, **inside).verdict == ALLOW
    assert call(bounds, "builder", tool, **absolute).verdict == ALLOW
    for role in READERS:
        verdict = call(bounds, role.name, tool, **absolute)
        assert (verdict.verdict, verdict.rule) == (DENY, "read-only")
        assert ("rook sling" in verdict.hint) == role.can_spawn


OUTSIDE = [
    "{worktree}/../..",
    "{worktree}/../../../x",
    "{worktree}/../other/x.py",
    "{root}/src/x.py",
    "../x",
    "src/../../x",
    "/etc/passwd",
    "~/x",
    "src/out/x",
    "src/passwd",
    "{worktree}/src/out/../x",
    "/",
    "",
]
HELD = [
    ".git",
    ".git/config",
    ".GIT/hooks/pre-commit",
    "src/.git/config",
    ".rookery/x",
    ".claude/settings.json",
    ".claude/CLAUDE.md",
    ".mcp.json",
    ".envrc",
    "AGENTS.md",
    "CLAUDE.md",
    "agents.md",
    "src/../.git",
    "./.claude/x",
]


@pytest.mark.parametrize("path", OUTSIDE + HELD)
def test_no_tool_writes_outside_or_what_steers_agents(bounds: Bounds, path: str) -> None:
    place = path.format(worktree=bounds.worktree, root=bounds.root)
    for tool in ("Write", "Edit"):
        verdict = call(bounds, "builder", tool, file_path=place)
        assert (verdict.verdict, bool(verdict.hint)) == (DENY, True), verdict


def test_a_symbolic_link_made_later_is_followed(tmp_path: Path) -> None:
    root, worktree = tmp_path / "main", tmp_path / "main" / ".rookery" / "worktrees" / "bee"
    worktree.mkdir(parents=True)
    bounds = Bounds(str(root), str(worktree), "b", "main", temp=())
    assert call(bounds, "builder", "Write", file_path="link/x").verdict == ALLOW
    (worktree / "link").symlink_to(tmp_path)
    assert call(bounds, "builder", "Write", file_path="link/x").rule == "outside"


def test_a_worktree_named_by_a_link_is_the_same_place(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "src").mkdir(parents=True)
    (tmp_path / "named").symlink_to(real)
    bounds = Bounds(str(tmp_path / "main"), str(tmp_path / "named"), "b", "main", temp=())
    for path in ("src/x", f"{real}/src/x", f"{tmp_path}/named/src/x"):
        assert call(bounds, "builder", "Write", file_path=path).verdict == ALLOW
    assert call(bounds, "builder", "Write", file_path=f"{tmp_path}/x").verdict == DENY


def test_the_folder_of_the_shell_counts(bounds: Bounds) -> None:
    in_src = bounds.replace(cwd=f"{bounds.worktree}/src")
    outside = bounds.replace(cwd=bounds.root)
    assert call(in_src, "builder", "Bash", command="rm a.py").verdict == ALLOW
    assert call(in_src, "builder", "Bash", command="rm ../../x").rule == "outside"
    assert call(outside, "builder", "Bash", command="rm x").rule == "outside"
    assert call(outside, "builder", "Bash", command="git commit -m x").rule == "git-elsewhere"
    assert call(outside, "builder", "Bash", command="make").rule == "outside"
    assert call(outside, "builder", "Bash", command=f"cd {bounds.worktree} && make").verdict == ALLOW


@pytest.mark.parametrize(
    ("scope", "path", "verdict"),
    [
        (("src/**",), "src/a.py", ALLOW),
        (("src/**",), "src/deep/er/a.py", ALLOW),
        (("src",), "src/a.py", ALLOW),
        (("src/",), "src/a.py", ALLOW),
        (("src/*.py",), "src/a.py", ALLOW),
        (("src/*.py",), "src/deep/a.py", DENY),
        (("src/a.py",), "src/a.py", ALLOW),
        (("src/a.py",), "src/b.py", DENY),
        (("**/*.md",), "docs/x/y.md", ALLOW),
        (("**/*.md",), "y.md", ALLOW),
        (("**/*.md",), "y.py", DENY),
        (("docs", "src/a.py"), "src/a.py", ALLOW),
        (("src/**",), "README.md", DENY),
        (("src/**",), "src/../README.md", DENY),
        (("src/**",), "srcx/a.py", DENY),
        (("AGENTS.md",), "AGENTS.md", ALLOW),
        (("**",), "AGENTS.md", DENY),
    ],
)
def test_scope(bounds: Bounds, scope: tuple[str, ...], path: str, verdict: str) -> None:
    scoped = bounds.replace(scope=scope)
    assert call(scoped, "builder", "Write", file_path=path).verdict == verdict
    assert call(scoped, "builder", "Bash", command=f"echo x > {path}").verdict == verdict


def test_scope_holds_for_commands(bounds: Bounds) -> None:
    scoped = bounds.replace(scope=("src/api/**",))
    allowed = ["mkdir -p src/api/v1", "mkdir src", "touch src/api/x", "git add -A", "git commit -m x", "pytest"]
    denied = ["touch src/x", "rm -rf src", "sed -i s/a/b/ src/*.py", "git checkout -- README.md", "git rm src/a.py"]
    for command in allowed:
        assert call(scoped, "builder", "Bash", command=command).verdict == ALLOW, command
    for command in denied:
        assert call(scoped, "builder", "Bash", command=command).rule == "scope", command


def test_files_outside_the_scope_can_be_put_back_as_they_are_in_the_base(bounds: Bounds) -> None:
    scoped = bounds.replace(scope=("src/api/**",))
    for source in (bounds.base, "0123456789ab"):
        for command in (f"git checkout {source} -- README.md", f"git checkout --no-overlay {source} -- README.md"):
            assert call(scoped, "builder", "Bash", command=command).verdict == ALLOW, command
        for path in (".claude/settings.json", "../x"):
            assert call(scoped, "builder", "Bash", command=f"git checkout {source} -- {path}").verdict == DENY, path
    for source in ("HEAD", "other", '"$X"'):
        assert call(scoped, "builder", "Bash", command=f"git checkout {source} -- README.md").verdict == DENY, source


def test_temporary_folders_are_open_to_all_agents(bounds: Bounds, tmp_path: Path) -> None:
    for role in builtin_roles():
        assert call(bounds, role, "Write", file_path="/tmp/note-of-bee.txt").verdict == ALLOW
        assert call(bounds.replace(temp=()), role, "Write", file_path="/tmp/note-of-bee.txt").verdict == DENY
        assert call(bounds, role, "Write", file_path="/tmp/rookery-0/x.sock").verdict == DENY
    own = bounds.replace(temp=(str(tmp_path),))
    assert call(own, "scout", "Bash", command=f"ls > {tmp_path}/x").verdict == ALLOW


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Read", {"file_path": "~/.ssh/id_rsa"}),
        ("Read", {"file_path": "/etc/shadow"}),
        ("Read", {"file_path": "/proc/self/environ"}),
        ("Read", {"file_path": "{root}/.rookery/sessions/ses_1/token"}),
        ("Grep", {"pattern": "x", "path": "~"}),
        ("Grep", {"pattern": "x", "path": "/"}),
        ("Grep", {"pattern": "x", "path": "~/.aws"}),
        ("Glob", {"pattern": "~/.ssh/*"}),
        ("Glob", {"pattern": "**", "path": "~/.gnupg"}),
    ],
)
def test_secrets_are_not_read(bounds: Bounds, tool: str, tool_input: dict[str, str]) -> None:
    filled = {name: value.format(root=bounds.root) for name, value in tool_input.items()}
    assert call(bounds, "builder", tool, **filled).rule == "secret"


@pytest.mark.parametrize("path", [*(f"~/{path}" for path in secret_paths.IN_HOME), *secret_paths.OF_THE_SYSTEM])
def test_every_secret_of_the_list_is_denied(bounds: Bounds, path: str) -> None:
    assert call(bounds, "builder", "Read", file_path=path).rule == "secret"
    assert call(bounds, "builder", "Bash", command=f"cat {path}/x").rule == "secret"


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Read", {"file_path": "src/a.py"}),
        ("Read", {"file_path": "/usr/include/stdio.h"}),
        ("Read", {"file_path": "{root}/.rookery/worktrees/other/x.py"}),
        ("Read", {"file_path": "{root}/README.md"}),
        ("Grep", {"pattern": "x"}),
        ("Grep", {"pattern": "x", "path": "src"}),
        ("Glob", {"pattern": "**/*.py"}),
        ("LS", {"path": "{root}"}),
    ],
)
def test_everything_else_is_read_by_all(bounds: Bounds, tool: str, tool_input: dict[str, str]) -> None:
    filled = {name: value.format(root=bounds.root) for name, value in tool_input.items()}
    for role in builtin_roles():
        assert call(bounds, role, tool, STRICT, **filled).verdict == ALLOW


def test_the_sandbox_is_not_left(bounds: Bounds) -> None:
    assert call(bounds, "builder", "Bash", command="ls", dangerouslyDisableSandbox=True).rule == "sandbox"


def test_what_runs_in_the_background_may_go_on(bounds: Bounds) -> None:
    assert call(bounds, "builder", "Bash", command="sleep 60", run_in_background=True).verdict == ALLOW
    assert call(bounds, "builder", "Bash", command="git push", run_in_background=True).verdict == DENY


def test_a_builder_that_is_strict_is_asked_about_what_is_not_known(bounds: Bounds) -> None:
    assert call(bounds, "builder", "Bash", STRICT, command="frobnicate src").verdict == ASK
    assert call(bounds, "builder", "Bash", STRICT, command="frobnicate src; git push").verdict == DENY


GARBAGE: list[Any] = [
    None,
    [],
    "x",
    7,
    {},
    {"command": None},
    {"command": 7},
    {"command": ["git", "push"]},
    {"command": {"x": 1}},
    {"command": "a\0b"},
    {"command": "git \ud800 push"},
    {"command": "\ud800"},
    {"command": "(" * 5000},
    {"command": "$(" * 3000 + ")" * 3000},
    {"command": "{a,b}" * 40},
    {"command": "x" * 2_000_000},
    {"command": "echo \x07"},
    {"command": "if " * 2000},
    {"command": "cat <<EOF"},
    {"command": "; ".join(f"x{i + 1}=$x{i}$x{i}" for i in range(60)) + "; rm $x60"},
    {"command": "; ".join(f"a{i + 1}=$a{i}$b{i}; b{i + 1}=$b{i}$a{i}" for i in range(40)) + "; rm $a40"},
    {"command": "f0() { rm ../x; }; " + "; ".join(f"f{i + 1}() {{ f{i}; f{i}; }}" for i in range(40)) + "; f40"},
    {"command": "while cd ..; do " * 8 + "rm x" + "; done" * 8},
    {"file_path": None},
    {"file_path": 7},
    {"file_path": "a\0b"},
    {"file_path": "x" * 100_000},
    {"file_path": "\ud800/../.."},
    {"file_path": ["x"]},
    {1: 2},
]


@pytest.mark.parametrize("tool", ["Bash", "Write", "Edit", "NotebookEdit"])
@pytest.mark.parametrize("tool_input", GARBAGE, ids=lambda value: repr(value)[:30])
def test_garbage_is_denied_and_never_raises(bounds: Bounds, tool: str, tool_input: Any) -> None:
    for role in ("builder", "scout"):
        verdict = decide(builtin_roles()[role], YOLO, bounds, Call(tool, tool_input))
        assert (verdict.verdict, bool(verdict.hint)) == (DENY, True)


@pytest.mark.parametrize("tool", [None, 7, ["Bash"], {"a": 1}, b"Bash"])
def test_a_tool_without_a_name_is_denied(bounds: Bounds, tool: Any) -> None:
    assert decide(builtin_roles()["builder"], YOLO, bounds, Call(tool, {"command": "ls"})).verdict == DENY


def test_an_unknown_profile_is_denied(bounds: Bounds) -> None:
    assert decide(builtin_roles()["builder"], "reckless", bounds, Call("Bash", {"command": "ls"})).verdict == DENY


def test_bounds_without_a_worktree_are_denied() -> None:
    for worktree in ("", "relative"):
        bounds = Bounds("/srv/main", worktree, "b", "main", temp=())
        assert call(bounds, "builder", "Write", file_path="x").verdict == DENY
        assert call(bounds, "builder", "Bash", command="touch x").verdict == DENY


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(bounds: Bounds, text: str) -> None:
    for tool in ("Bash", "Write", "Read", text):
        for value in (text, f"git {text}", f"{text} git push"):
            verdict = decide(
                builtin_roles()["builder"], YOLO, bounds, Call(tool, {"command": value, "file_path": value})
            )
            assert verdict.verdict in (ALLOW, ASK, DENY)
            assert verdict.verdict == ALLOW or (verdict.reason and verdict.hint and verdict.rule)


def test_characters_beyond_ascii_are_letters(bounds: Bounds) -> None:
    """The parser itself reads beyond a table for them, which ended the process one time in ten."""
    hard = ("echo \U0001f600é", "cat <<\U0001f600\nx\n\U0001f600", "x=\U0001f600 y[\U0001f600]=1", "a\U0010ffffb *")
    for text in hard:
        assert call(bounds, "builder", "Bash", command=text + "\necho").verdict in (ALLOW, ASK, DENY)
    assert call(bounds, "builder", "Bash", command="touch Größe.txt && git add Größe.txt").verdict == ALLOW
    assert call(bounds, "builder", "Bash", command="touch ../../Größe.txt").verdict == DENY
    assert call(bounds, "builder", "Bash", command="é=1 git push").verdict == DENY

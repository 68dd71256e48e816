"""Which branch of which remote a base follows, and remotes that fail, hang or are hostile."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import git

from .team import Team

pytestmark = pytest.mark.slow


def test_the_branch_that_gits_settings_name_goes_first(team: Team) -> None:
    theirs = team.push_theirs(b_txt="b\n")
    git(team.other, "push", "-q", "origin", "main:trunk")
    git(team.bare, "update-ref", "refs/heads/main", f"{theirs}^")
    git(team.yard.folder, "fetch", "-q")
    git(team.yard.folder, "branch", "-q", "--set-upstream-to=origin/trunk", "main")
    assert team.synced()["upstream"] == "origin/trunk"
    assert team.yard.main() == theirs
    mine = team.yard.commit(own_txt="o\n")
    team.synced("--push")
    assert git(team.bare, "rev-parse", "trunk", "main").split() == [mine, git(team.bare, "rev-parse", f"{theirs}^")]


def test_origin_goes_before_other_remotes_and_an_only_one_needs_no_name(team: Team) -> None:
    folder = team.yard.folder
    git(folder, "remote", "add", "fork", str(team.bare))
    assert team.synced()["upstream"] == "origin/main"
    git(folder, "remote", "rename", "origin", "elsewhere")
    error = team.sync().error
    assert (error["code"], "--set-upstream-to" in error["hint"]) == ("no_upstream", True)
    git(folder, "remote", "remove", "elsewhere")
    assert team.synced()["upstream"] == "fork/main"


@pytest.mark.parametrize("remote", [".", "--upload-pack=touch evil", "ext::sh -c 'touch evil'", "/some/path"])
def test_an_upstream_that_is_no_remote_is_refused(team: Team, remote: str) -> None:
    before = team.yard.main()
    git(team.yard.folder, "config", "branch.main.remote", remote)
    git(team.yard.folder, "config", "branch.main.merge", "refs/heads/main")
    for words in ((), ("--push",), ("--dry-run",)):
        assert team.sync(*words).error["code"] == "no_upstream"
    assert team.yard.main() == before
    assert not list(team.yard.folder.rglob("evil"))


@pytest.mark.parametrize(
    ("name", "url"),
    [("-x", "--upload-pack=touch evil"), ("odd", "ext::sh -c 'touch evil'"), ("odd", "ssh://-oProxyCommand=evil/x")],
)
def test_hostile_urls_and_names_meet_gits_own_protection(team: Team, name: str, url: str) -> None:
    folder = team.yard.folder
    git(folder, "remote", "remove", "origin")
    with (folder / ".git" / "config").open("a") as config:
        config.write(f'[remote "{name}"]\n\turl = "{url}"\n')
    team.yard.commit(own_txt="o\n")
    for words in ((), ("--push",), ("--dry-run",)):
        assert team.sync(*words).error["code"] == "remote_failed"
    assert not list(folder.rglob("evil"))


def test_a_remote_whose_name_looks_like_an_option_works(team: Team) -> None:
    folder = team.yard.folder
    git(folder, "remote", "remove", "origin")
    with (folder / ".git" / "config").open("a") as config:
        config.write(f'[remote "-x"]\n\turl = {team.bare}\n\tfetch = +refs/heads/*:refs/remotes/-x/*\n')
    theirs = team.push_theirs(b_txt="b\n")
    assert team.synced()["commit"] == theirs
    mine = team.yard.commit(own_txt="o\n")
    team.synced("--push")
    assert team.upstream() == mine


@pytest.fixture
def ssh(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `ssh` that notes how it was called and fails; returns where it notes that."""
    git(team.yard.folder, "remote", "set-url", "origin", "ssh://host.invalid/repo")
    noted, folder = tmp_path / "noted", tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\necho "$GIT_TERMINAL_PROMPT $SSH_AUTH_SOCK $*" >> {noted}\nexit 255\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin", prepend=None)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/the/agent")
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    return noted


def test_ssh_asks_nothing_and_has_the_persons_agent(team: Team, ssh: Path) -> None:
    error = team.sync().error
    assert (error["code"], "git fetch origin" in error["hint"]) == ("remote_failed", True)
    assert ssh.read_text().startswith("0 /the/agent -o BatchMode=yes ")
    ssh.unlink()
    git(team.yard.folder, "config", "core.sshCommand", "ssh -v")
    assert team.sync().error["code"] == "remote_failed"
    assert "BatchMode" not in ssh.read_text()
    assert "-v" in ssh.read_text()


def test_a_remote_that_does_not_answer_in_time(team: Team, ssh: Path) -> None:
    before = team.yard.main()
    git(team.yard.folder, "config", "core.sshCommand", "sleep 100 #")
    error = team.sync("-c", "remote.timeout=0.5s").error
    assert (error["code"], "remote.timeout" in error["hint"]) == ("remote_failed", True)
    assert team.yard.main() == before
    assert not list((team.yard.folder / ".git").rglob("*.lock"))


def test_a_password_in_a_url_is_not_shown(team: Team) -> None:
    url = "https://ada:hunter2@127.0.0.1:1/repo"
    git(team.yard.folder, "remote", "set-url", "origin", url)
    for key, value in {"remote.origin.url": url, "branch.main.remote": url}.items():
        git(team.yard.folder, "config", "branch.main.merge", "refs/heads/main")
        git(team.yard.folder, "config", key, value)
        ran = team.sync()
        assert ran.status == 1
        assert b"hunter2" not in ran.out + ran.err


def test_a_base_that_gets_another_upstream_begins_with_nothing_known(team: Team, tmp_path: Path) -> None:
    """What one remote has says nothing of another: not that it was there, and not that it was rewritten."""
    yard, first = team.yard, team.yard.main()
    yard.commit(own_txt="o\n")
    assert team.synced("--push")["push"]["state"] == "pushed"
    fork, empty = tmp_path / "fork.git", tmp_path / "empty.git"
    git(tmp_path, "clone", "-q", "--bare", str(team.bare), str(fork))
    git(fork, "update-ref", "refs/heads/main", first)
    git(tmp_path, "init", "-q", "--bare", str(empty))
    for name, url in (("fork", fork), ("empty", empty)):
        git(yard.folder, "remote", "add", name, str(url))
    git(yard.folder, "config", "branch.main.merge", "refs/heads/main")
    for name, before in (("fork", "ahead"), ("empty", "unpublished")):
        git(yard.folder, "config", "branch.main.remote", name)
        synced = team.synced()
        assert (synced["state"], synced["is_rewritten"], synced["has_dropped"]) == (before, False, False)
        assert team.synced("--push")["push"]["state"] == "pushed"
    for bare in (fork, empty):
        assert git(bare, "rev-parse", "main") == yard.main()
    assert team.events("remote.synced") == []  # nothing of theirs was new


def test_a_tag_that_is_another_one_here_keeps_no_commit_away(team: Team) -> None:
    folder = team.yard.folder
    git(folder, "config", "remote.origin.tagOpt", "--tags")
    mine = team.yard.main()
    git(folder, "tag", "v1")
    theirs = team.push_theirs(b_txt="b\n")
    git(team.other, "tag", "v1")
    git(team.other, "push", "-q", "origin", "v1")
    assert team.synced()["commit"] == theirs
    assert git(folder, "rev-parse", "v1") == mine


@pytest.mark.parametrize("key", ["remote.origin.pushurl", "url.{fork}.pushInsteadOf"])
def test_pushing_to_another_repository_says_nothing_of_the_one_that_is_fetched(
    team: Team, tmp_path: Path, key: str
) -> None:
    yard, before = team.yard, team.upstream()
    fork = tmp_path / "fork.git"
    git(tmp_path, "clone", "-q", "--bare", str(team.bare), str(fork))
    git(yard.folder, "config", key.format(fork=fork), str(fork if key.endswith("url") else team.bare))
    for name in ("a_txt", "b_txt"):
        yard.commit(**{name: "x\n"})
        for words, state in (([], None), (["--push"], "pushed")):
            synced = team.synced(*words)
            assert (synced["state"], synced["is_rewritten"]) == ("ahead", False)
            assert synced["push"] is None or synced["push"]["state"] == state
        assert git(fork, "rev-parse", "main") == yard.main()
    assert team.upstream() == before
    assert team.events("remote.synced") == []
    yard.branch("work", work_txt="w\n")
    yard.merge("--branch", "work")
    team.synced("--push")
    team.synced()
    assert yard.merge("undo", "work").data["landings"][0]["how"] == "reverted"  # others have it

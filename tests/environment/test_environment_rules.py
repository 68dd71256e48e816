"""What of a shell's environment is kept for the project, what of it is a credential, and what has changed."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_secrets import SECRETS
from rookery.environment.model import (
    ADDED,
    CHANGED,
    CREDENTIAL,
    NOTHING,
    PLAIN,
    REMOVED,
    Change,
    Environment,
    Variables,
    add_to,
    compare,
    is_credential,
    is_kept,
    replace_only,
    sort_out,
)


@pytest.mark.parametrize(
    "name",
    [
        *("TERM", "COLORTERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX", "SSH_TTY", "SSH_CONNECTION", "COLUMNS"),
        *("PWD", "OLDPWD", "SHLVL", "_", "PS1", "BASH_FUNC_which%%", "DIRENV_DIFF"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_SESSION_ID"),
        *("INVOCATION_ID", "NOTIFY_SOCKET", "CLAUDECODE", "ROOKERY_TEST_KILL", "ROOKERY_SCRATCH"),
        *("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE", "GIT_REFLOG_ACTION", "GIT_TRACE_CURL", "GIT_PUSH_OPTION_0"),
        *("GIT_LITERAL_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_ATTR_SOURCE", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH"),
        *("", "A=B", "A\0B"),
    ],
)
def test_what_belongs_to_less_than_the_project_is_not_kept(name: str) -> None:
    assert not is_kept(name, "x")


def test_what_git_itself_calls_a_repository_s_own_is_not_kept() -> None:
    names = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    own = set(names.stdout.split()) - {"GIT_CONFIG_COUNT"}
    assert {"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"} <= own
    assert [name for name in own if is_kept(name, "x")] == []


def settings(*pairs: tuple[str, str]) -> dict[str, str]:
    """Settings for git, as variables."""
    variables = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


ABBREV, EDITOR = ("core.abbrev", "10"), ("core.editor", "vi")


def test_settings_for_git_are_kept_as_a_whole() -> None:
    whole = settings(ABBREV, EDITOR)
    assert sort_out(whole) == Variables(dict(sorted(whole.items())), {})
    for missing in whole:
        assert sort_out({name: value for name, value in whole.items() if name != missing}) == NOTHING
    assert sort_out({**settings(ABBREV), "GIT_CONFIG_KEY_7": "x"}) == Variables(settings(ABBREV), {})
    for count in ("", "-1", "x", "²", "9" * 30):
        assert sort_out({**whole, "GIT_CONFIG_COUNT": count}) == NOTHING, count
    assert sort_out({"GIT_CONFIG_COUNT": "0"}).plain == {"GIT_CONFIG_COUNT": "0"}


@pytest.mark.parametrize(
    "secret",
    [
        ("http.extraHeader", "Authorization: Bearer abcdefgh"),
        ("http.https://git.example/.extraHeader", "X-Mine: abc"),
        ("url.https://ada:hunter2@git.example/.insteadOf", "https://git.example/"),
        ("http.proxy", "http://ada:hunter2@proxy:3128"),
        ("credential.helper", "!f() { echo x; }; f"),
    ],
)
def test_one_secret_makes_all_settings_credentials(secret: tuple[str, str]) -> None:
    whole = settings(ABBREV, secret)
    assert sort_out(whole) == Variables({}, dict(sorted(whole.items())))


_SETTINGS = st.one_of(
    st.none(), st.lists(st.sampled_from([ABBREV, EDITOR, ("http.extraHeader", "Bearer abcdefgh")]), max_size=3)
)


@given(_SETTINGS, _SETTINGS, st.sets(st.sampled_from(["GIT_CONFIG_COUNT", "GIT_CONFIG_VALUE_0", "A"])))
def test_settings_for_git_are_replaced_as_a_whole(
    first: list[tuple[str, str]] | None, second: list[tuple[str, str]] | None, names: set[str]
) -> None:
    one, two = (sort_out({} if pairs is None else settings(*pairs)) for pairs in (first, second))
    for result in (add_to(one, two), replace_only(one, two, names)):
        assert result.whole in (one.whole, two.whole)
        assert not (result.plain and result.credentials)


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LANG", "LC_ALL", "XDG_STATE_HOME", "SSH_AUTH_SOCK", "HTTP_PROXY", "ü"]
)
def test_everything_else_is_kept(name: str) -> None:
    assert is_kept(name, "x")
    assert is_kept(name, "")


def test_what_no_program_can_be_started_with_is_not_kept() -> None:
    assert is_kept("A", "x" * 131_069)
    assert not is_kept("A", "x" * 131_070)
    assert not is_kept("A", "x\0y")
    assert not is_kept("A", "\ud800")  # no byte of a file system's encoding


@pytest.mark.parametrize(
    "name",
    [
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "FAKE_KEY"),
        *("GEMINI_API_KEY", "COPILOT_PROVIDER_API_KEY", "ANTHROPIC_CUSTOM_HEADERS", "GH_TOKEN", "GITHUB_PAT"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MYSQL_PWD", "SENTRY_DSN", "npm_config__auth"),
        *("LDAP_BIND_PW", "ROOTPW", "DBPASS", "SMTP_CRED", "AZURE_CREDS", "SLACK_WEBHOOK", "STORAGEACCOUNTKEY"),
    ],
)
def test_a_name_tells_a_credential(name: str) -> None:
    assert is_credential(name, "")


@pytest.mark.parametrize("value", [*SECRETS.values(), "postgres://ada:hunter2@db/x"])
def test_a_value_tells_a_credential(value: str) -> None:
    assert is_credential("PLAIN", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/opt/token-tool/bin:/usr/bin"),
        ("PATH", "/home/ada/sk-aaaaaaaaaaaaaaaaaaaa/bin"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-x/agent.1"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8900"),
        ("KEYBOARD", "us"),
        ("MONKEY", "x"),
        ("GIT_ASKPASS", "/bin/true"),
        ("PWD", "/work"),
    ],
)
def test_what_only_sounds_so_is_plain(name: str, value: str) -> None:
    assert not is_credential(name, value)


def test_a_sling_takes_the_shell_but_drops_no_credential() -> None:
    recorded = Variables({"A": "1", "GONE": "x"}, {"ONE_KEY": "1", "TWO_KEY": "2", "URL": "http://a:b@c/"})
    shell = sort_out({"A": "2", "TWO_KEY": "3", "NEW_KEY": "4", "URL": "http://c/", "TERM": "xterm"})
    result = add_to(recorded, shell)
    assert result.plain == {"A": "2", "URL": "http://c/"}
    assert result.credentials == {"NEW_KEY": "4", "ONE_KEY": "1", "TWO_KEY": "3"}


def test_only_what_is_named_is_replaced() -> None:
    recorded = Variables({"A": "1", "B": "1"}, {"ONE_KEY": "1", "TWO_KEY": "2"})
    shell = sort_out({"A": "2", "B": "2", "ONE_KEY": "9"})
    result = replace_only(recorded, shell, {"A", "TWO_KEY"})
    assert result == Variables({"A": "2", "B": "1"}, {"ONE_KEY": "1"})


def test_changes_are_shown_by_name() -> None:
    old, new = Variables({"A": "1", "B": "1"}, {"K": "1"}), Variables({"A": "1"}, {"K": "2", "L": "1"})
    assert compare(old, new) == (
        Change("B", PLAIN, REMOVED),
        Change("K", CREDENTIAL, CHANGED),
        Change("L", CREDENTIAL, ADDED),
    )


_ENVIRONS = st.dictionaries(st.sampled_from(["A", "B", "A_KEY", "B_KEY", "TERM"]), st.text(max_size=3))


@given(_ENVIRONS, _ENVIRONS)
def test_any_two_shells(first: dict[str, str], second: dict[str, str]) -> None:
    one, two = sort_out(first), sort_out(second)
    slung = add_to(one, two)
    assert not slung.plain.keys() & slung.credentials.keys()
    assert one.credentials.keys() <= slung.credentials.keys()
    assert slung.whole.items() >= two.whole.items()
    assert add_to(slung, two) == slung
    assert (compare(one, two) == ()) == (one.whole == two.whole)
    assert replace_only(one, two, {*first, *second}) == two
    assert replace_only(one, two, ()) == one


def test_no_value_is_seen_in_a_traceback() -> None:
    assert "hush" not in repr(Variables({"A": "hush"}, {"B": "hush"}))
    assert "hush" not in repr(Environment({"B": "hush"}))
    assert NOTHING.whole == {}

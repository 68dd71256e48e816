"""Secrets do not get into records."""

from __future__ import annotations

import pytest

from rookery.events.redact import HIDDEN, redact, redact_all

_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("export ANTHROPIC_API_KEY=sk-ant-REDACTED", "sk-ant"),
        ("key sk-proj-abcdefghijklmnopqrstuvwx end", "sk-proj"),
        ("ghp_" + "a" * 36, "ghp_a"),
        ("github_pat_" + "B" * 30, "github_pat_B"),
        ("Authorization: Bearer abc.def-ghi_jkl", "abc.def"),
        ("curl -H 'Authorization: token 0123456789abcdef'", "0123456789"),
        (f"cat key\n{_KEY}\ndone", "MIIEow"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA cut off", "AAAA"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
        ("password: hunter2hunter2", "hunter2"),
        ('{"client_secret": "s3cr3t-value"}', "s3cr3t"),
        ("DB_PASSWORD='p4ssw0rd!'", "p4ssw0rd"),
        ("postgres://user:s3cr3tpass@host/db", "s3cr3tpass"),
        ("xoxb-123456789012-abcdef", "123456789012"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_def", "eyJzdWIi"),
    ],
)
def test_a_secret_is_hidden(text: str, secret: str) -> None:
    kept = redact(text)
    assert secret not in kept
    assert HIDDEN in kept


@pytest.mark.parametrize(
    "text",
    [
        "def tokenize(text): return text.split()",
        "the token bucket algorithm",
        "git commit -m 'Add password reset'",
        "task_01M7GFMT9QF14P28HM45YB7S19",
        "sk-learn and scikit",
        "https://example.org/path?x=1",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_known_values_are_hidden_wherever_they_are() -> None:
    found = redact_all({"input": {"command": "echo zebra99"}, "list": ["zebra99", 3]}, ["zebra99"])
    assert found == {"input": {"command": f"echo {HIDDEN}"}, "list": [HIDDEN, 3]}


def test_a_key_that_names_a_secret_hides_its_value() -> None:
    assert redact_all({"api_key": "x", "name": "x"}) == {"api_key": HIDDEN, "name": "x"}

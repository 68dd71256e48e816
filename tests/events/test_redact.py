"""Secrets do not get into records."""

from __future__ import annotations

import pytest

from invented import SECRETS
from rookery.events.redact import HIDDEN, redact, redact_all


@pytest.mark.parametrize("shape", SECRETS)
def test_a_secret_is_known_by_its_shape_alone(shape: str) -> None:
    secret = SECRETS[shape]
    kept = redact(f"I found {secret}")
    assert kept == f"I found {HIDDEN}"
    assert redact_all({"output": [f"{secret}\n"]}) != {"output": [f"{secret}\n"]}


def test_what_is_around_a_secret_stays() -> None:
    assert redact(f"cat key\n{SECRETS['RSA key']}\ndone") == f"cat key\n{HIDDEN}\ndone"
    assert redact(f"key {SECRETS['OpenAI']} end") == f"key {HIDDEN} end"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-ghi_jkl", "abc.def"),
        ("curl -H 'Authorization: token 0123456789abcdef'", "0123456789"),
        ("export ACME_API_KEY=made-up-by-acme", "made-up"),
        ("password: hunter2hunter2", "hunter2"),
        ('{"client_secret": "s3cr3t-value"}', "s3cr3t"),
        ("DB_PASSWORD='p4ssw0rd!'", "p4ssw0rd"),
        ("postgres://user:s3cr3tpass@host/db", "s3cr3tpass"),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it(text: str, secret: str) -> None:
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

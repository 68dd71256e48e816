"""The glance before redaction misses nothing that redaction would change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_secrets import SECRETS
from rookery.events.redact import PATTERNS, may_hold_secret, redact

SAMPLES = [
    *SECRETS.values(),
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    "sk-" + "a1" * 15,
    "ghp_" + "a" * 30,
    "github_pat_" + "a" * 30,
    "glpat-" + "a" * 20,
    "xoxb-123456789012",
    "AKIA" + "A" * 16,
    "AIza" + "a" * 35,
    "npm_" + "a" * 36,
    "eyJ" + "a" * 12 + "." + "b" * 12 + ".c",
    "Bearer abcdefghijkl",
    "Basic abcdefghijkl",
    "API-Key: abcdefgh",
    "PASSWORD=hunter22",
    "my_credential = 'abcd'",
    "private_key: abcd",
    "postgres://user:word@host/db",
    "redis://:word@host/0",
    "\N{LATIN SMALL LETTER LONG S}ecret=abcd",
    "pr\N{LATIN SMALL LETTER DOTLESS I}vate_key=abcd",
    "toKen=abcd",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_every_kind_of_secret_is_suspected(text: str) -> None:
    assert redact(text) != text
    assert may_hold_secret(text)


@given(st.lists(st.sampled_from([*SAMPLES, "plain words", "x=1", "://", "@", "\n", " "]) | st.text(max_size=8)))
def test_what_would_be_changed_is_suspected(parts: list[str]) -> None:
    text = "".join(parts)
    assert may_hold_secret(text) or not any(pattern.search(text) for pattern, _ in PATTERNS)


def test_everyday_calls_are_not_suspected() -> None:
    assert not may_hold_secret("git status && grep -rn 'cp ' src")
    assert not may_hold_secret("see https://example.org/page")

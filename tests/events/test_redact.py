"""Secrets do not get into records."""

from __future__ import annotations

import pytest

from fake_secrets import SECRETS
from rookery.events.redact import HIDDEN, looks_secret, redact, redact_all


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
        ("redis://:s3cr3tpass@host/0", "s3cr3tpass"),
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
    redacted = redact_all({"input": {"command": "echo zebra99"}, "list": ["zebra99", 3]}, ["zebra99"])
    assert redacted == {"input": {"command": f"echo {HIDDEN}"}, "list": [HIDDEN, 3]}


def test_a_key_that_names_a_secret_hides_its_value() -> None:
    assert redact_all({"api_key": "x", "name": "x"}) == {"api_key": HIDDEN, "name": "x"}


@pytest.mark.parametrize(
    "value",
    [
        *SECRETS.values(),
        "Server=db;Database=x;User Id=sa;Password=abc",
        "Server=db;Pwd=q",
        "jdbc:mysql://db:3306/x?user=ada&password=pw",
        "AccountName=ada;AccountKey=ab/c==",
        "Endpoint=sb://bus/;SharedAccessKey=abc",
        "https://store/x?sv=1&sig=abc",
        '{"token": "x"}',
        "--password hunter2",
        "curl -u ada:hunter2 https://db",
        "Authorization: Bearer abc",
        "Basic YWRhOmh1bnRlcjI=",
        "redis://:pw@db:1/0",
        "https://abc@git.example/x",
        "postgres://ada:a/b@db/x",
        "https://example.org/hook/d41d8cd98f00b204e9800998ecf8427e",
        "d41d8cd98f00b204e9800998ecf8427e",
        "550e8400-e29b-41d4-a716-446655440000",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY",
        "id=x;d41d8cd98f00b204e9800998ecf8427e",
    ],
)
def test_a_value_that_may_be_a_secret(value: str) -> None:
    assert looks_secret(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "/usr/local/bin:/usr/bin",
        "/opt/token:/usr/share/man",
        "/nix/store/abcdefghijklmnopqrstuvwxyz012345-glibc-2.3/lib",
        "rs=0:di=01;34:ln=01;36:so=01;35:*.tar=01;31:*.pem=00;31:*.key=01;31",
        "unix:path=/run/user/1000/bus",
        "ip-10-0-0-1.eu-west-1.compute.internal",
        "localhost,127.0.0.1,.internal.example.com",
        "http://127.0.0.1:8900/simple/",
        "https://proxy.golang.org,direct",
        "ssh://git@example.org/x",
        "ssh -i ~/.ssh/id_ed25519 -o IdentitiesOnly=yes",
        "-Dfile.encoding=UTF-8 -Xmx2g",
        "x" * 5000,
    ],
)
def test_a_value_that_is_plain(value: str) -> None:
    assert not looks_secret(value)


@pytest.mark.parametrize("word", ["token", "a://:", "a.", "-", "x ", "bearer ", "=", "Aa0/", "https://", "pw"])
def test_a_long_value_takes_no_long_time(word: str) -> None:
    """Each pattern looks at a value once: where it did so again from every place, this would take minutes."""
    looks_secret((word * 130_000)[:130_000])

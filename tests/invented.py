"""Secrets of every shape, all invented. They are put together here, so that no scanner takes this file for a leak."""

from __future__ import annotations

import random
import string

_LETTERS = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits


def _random(name: str, length: int, alphabet: str = _LETTERS) -> str:
    return "".join(random.Random(name).choices(alphabet, k=length))


def _private_key(kind: str) -> str:
    lines = [_random(f"{kind} {number}", 64, _LETTERS + "+/") for number in range(3)]
    return "\n".join(["-----".join(["", f"BEGIN{kind} PRIVATE KEY", ""]), *lines, f"-----END{kind} PRIVATE KEY-----"])


SECRETS: dict[str, str] = {
    "RSA key": _private_key(" RSA"),
    "OpenSSH key": _private_key(" OPENSSH"),
    "key of no kind": _private_key(""),
    "key cut off": _private_key(" EC")[:120],
    "Anthropic": "-".join(["sk", "ant", "api03", _random("anthropic", 93, _LETTERS + "-_"), "AA"]),
    "OpenAI": "-".join(["sk", "proj", _random("openai", 48)]),
    "OpenAI, old": "-".join(["sk", _random("openai old", 48)]),
    **{f"GitHub {kind}": "_".join([f"gh{kind}", _random(f"github {kind}", 36)]) for kind in "pousr"},
    "GitHub, fine-grained": "_".join(["github", "pat", _random("github", 22), _random("github pat", 59)]),
    "GitLab": "-".join(["glpat", _random("gitlab", 20)]),
    **{
        f"Slack {kind}": "-".join([f"xox{kind}", _random(f"slack {kind}", 12, string.digits), _random(kind, 24)])
        for kind in "abposr"
    },
    "AWS": "AKIA" + _random("aws", 16, _UPPER),
    "AWS, temporary": "ASIA" + _random("aws temporary", 16, _UPPER),
    "Google": "AIza" + _random("google", 35),
    "npm": "_".join(["npm", _random("npm", 36)]),
    "JWT": ".".join(["eyJ" + _random("head", 20), "eyJ" + _random("body", 40), _random("signature", 43)]),
}

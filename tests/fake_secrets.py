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
    "Stripe": "_".join(["sk", "live", _random("stripe", 24)]),
    "Stripe, restricted": "_".join(["rk", "test", _random("stripe restricted", 24)]),
    "Stripe, webhook": "_".join(["whsec", _random("stripe webhook", 32)]),
    "Slack app": "-".join(["xapp", "1", _random("slack app", 30)]),
    "Slack webhook": "/".join(["hooks.slack.com", "services", "T0AB12CD3", "B0AB12CD3", _random("slack hook", 24)]),
    "Discord webhook": "/".join(["discord.com", "api", "webhooks", "1234567890", _random("discord", 60)]),
    "Google OAuth": ".".join(["ya29", _random("google oauth", 60)]),
    "Google client": "-".join(["GOCSPX", _random("google client", 28)]),
    "Hugging Face": "_".join(["hf", _random("hugging", 34)]),
    "Groq": "_".join(["gsk", _random("groq", 52)]),
    "xAI": "-".join(["xai", _random("xai", 80)]),
    "PyPI": "-".join(["pypi", "AgEIcHlwaS5vcmc" + _random("pypi", 60)]),
    "SendGrid": ".".join(["SG", _random("sendgrid", 22), _random("sendgrid 2", 43)]),
    "DigitalOcean": "_".join(["dop", "v1", _random("digitalocean", 64, "0123456789abcdef")]),
    "Shopify": "_".join(["shpat", _random("shopify", 32, "0123456789abcdef")]),
    "Atlassian": "ATATT3" + _random("atlassian", 80),
    "Linear": "_".join(["lin", "api", _random("linear", 40)]),
    "Vault": ".".join(["hvs", _random("vault", 90)]),
    "Tailscale": "-".join(["tskey", "auth", _random("tailscale", 30)]),
    "Sentry": "_".join(["sntrys", _random("sentry", 60)]),
    "Grafana": "_".join(["glsa", _random("grafana", 32), "0a1b2c3d"]),
    "age": "AGE-SECRET-KEY-1" + _random("age", 58, _UPPER),
    "Telegram": ":".join(["1234567890", "AA" + _random("telegram", 33)]),
    **{f"GitLab {kind}": f"gl{kind}-" + _random(kind, 20) for kind in ("dt", "rt", "cbt", "ptt", "ft", "soat")},
    "JWT": ".".join(["eyJ" + _random("head", 20), "eyJ" + _random("body", 40), _random("signature", 43)]),
}

"""Which names are names of secrets: the one list, for redaction and for the environment.

`WORDS` is narrow, because it is looked for in any text. `is_secret_name` is for the name of a variable and is wider:
`MYSQL_PWD`, `SENTRY_DSN` and `GITHUB_PAT` hold secrets too, while "key" in a sentence does not.
"""

from __future__ import annotations

WORDS = r"api[_-]?key|secret|password|passwd|token|credential|private[_-]?key"
"""Part of a regular expression, in lower case."""

_PARTS = frozenset(
    {
        *("KEY", "KEYS", "PASS", "PASSPHRASE", "PWD", "AUTH", "AUTHORIZATION", "PAT", "DSN", "COOKIE", "COOKIES"),
        *("HEADERS", "BEARER", "JWT", "APIKEY"),
    }
)
_PLAIN = frozenset({"SSH_AUTH_SOCK"})


def is_secret_name(name: str) -> bool:
    """True if a variable of that name may hold a secret."""
    import re

    if name in _PLAIN:
        return False
    if re.search(WORDS, name, re.IGNORECASE):
        return True
    return not _PARTS.isdisjoint(re.split(r"[^A-Z0-9]+", name.upper()))

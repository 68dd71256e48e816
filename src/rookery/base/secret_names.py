"""Which names are names of secrets: the one list, for redaction and for the environment.

`WORDS` is narrow, because it is looked for in any text. `is_secret_name` is for the name of a variable and is wider:
`MYSQL_PWD`, `SENTRY_DSN` and `GITHUB_PAT` hold secrets too, while "key" in a sentence does not.
"""

from __future__ import annotations

import re

WORDS = r"api[_-]?key|secret|password|passwd|token|credential|private[_-]?key"
"""Part of a regular expression, in lower case."""

_PARTS = frozenset(
    {
        *("KEY", "KEYS", "PASSPHRASE", "PASSCODE", "AUTH", "AUTHORIZATION", "PAT", "DSN", "COOKIE", "COOKIES"),
        *("HEADERS", "BEARER", "JWT", "WEBHOOK", "SAS", "OTP", "TOTP", "MNEMONIC", "SALT"),
    }
)
_ENDINGS = (
    *("PASS", "PWD", "PW", "CRED", "CREDS"),
    *("APIKEY", "AUTHKEY", "ACCESSKEY", "ACCOUNTKEY", "MASTERKEY", "SIGNINGKEY", "DEPLOYKEY", "LICENSEKEY"),
)
"""What a part of a name ends with, as in `LDAP_BIND_PW` and `DBPASS`."""
_PLAIN_PARTS = frozenset({"ASKPASS", "BYPASS", "COMPASS"})
_PLAIN = frozenset({"SSH_AUTH_SOCK", "PWD", "OLDPWD"})


def is_secret_name(name: str) -> bool:
    """True if a variable of that name may hold a secret."""
    if name in _PLAIN:
        return False
    if re.search(WORDS, name, re.IGNORECASE):
        return True
    parts = [part for part in re.split(r"[^A-Z0-9]+", name.upper()) if part not in _PLAIN_PARTS]
    return any(part in _PARTS or part.endswith(_ENDINGS) for part in parts)

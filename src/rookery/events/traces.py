"""Whether a text can hold a secret at all: a glance that costs no regular expression, for what is written all the time.

Every pattern of `redact` needs one of these words; a text without any of them comes out of it as it went in.
"""

from __future__ import annotations

_WORDS = (
    "-----begin",
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    *("sk_", "rk_", "whsec_", "xapp-", "hooks.slack.com", "/api/webhooks/", "ya29.", "gocspx-", "hf_", "gsk_", "xai-"),
    *("pypi-", "sg.", "_v1_", "shpat_", "shpca_", "shppa_", "shpss_", "atatt3", "lin_api_", "hvs.", "hvb.", "tskey-"),
    *("sntry", "glsa_", "age-secret-key-", ":aa"),
    *("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
    "xox",
    "akia",
    "asia",
    "aiza",
    "npm_",
    "eyj",
    "bearer",
    "basic",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "secret",
    "password",
    "passwd",
    "credential",
    "privatekey",
    "private_key",
    "private-key",
)


def may_hold_secret(text: str) -> bool:
    """False if `redact` would certainly leave the text as it is."""
    # As a pattern that ignores case sees it: to that, a dotless i is an i.
    plain = text.casefold().replace("\N{LATIN SMALL LETTER DOTLESS I}", "i").replace("i\N{COMBINING DOT ABOVE}", "i")
    return any(word in plain for word in _WORDS) or ("://" in plain and "@" in plain)

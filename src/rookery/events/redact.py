"""Secrets are taken out once, where records enter: by their shape, by their name, and by value where we know it.

The shapes of tokens have their one home here; `_TRACES` has a word of each. `looks_secret` judges values of variables,
which no person has to read, so in doubt it says yes; `redact` changes texts that people read, and takes out less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import log2
from typing import Any

from rookery.base.secret_names import WORDS

HIDDEN = "[redacted]"

_SHAPES = re.compile(
    r"""
    -----BEGIN[ A-Z0-9]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z0-9]*PRIVATE\ KEY-----|\Z)
    | \bsk-[A-Za-z0-9_-]{16,}
    | \b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}
    | \bwhsec_[A-Za-z0-9+/=]{16,}
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{16,}
    | \bxox[abceposr]-[A-Za-z0-9.-]{10,}
    | \bxapp-[A-Za-z0-9-]{10,}
    | \bhooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{8,}
    | \bdiscord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{8,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{30,}
    | \bya29\.[A-Za-z0-9_-]{16,}
    | \bGOCSPX-[A-Za-z0-9_-]{16,}
    | \bhf_[A-Za-z0-9]{20,}
    | \bgsk_[A-Za-z0-9]{20,}
    | \bxai-[A-Za-z0-9]{20,}
    | \bpypi-[A-Za-z0-9_-]{20,}
    | \bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | \bdo[opr]_v1_[a-f0-9]{32,}
    | \bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{20,}
    | \bATATT3[A-Za-z0-9_=-]{20,}
    | \blin_api_[A-Za-z0-9]{20,}
    | \bhv[sb]\.[A-Za-z0-9_-]{20,}
    | \btskey-[A-Za-z0-9-]{16,}
    | \bsntry[su]_[A-Za-z0-9_+/=-]{20,}
    | \bglsa_[A-Za-z0-9_]{20,}
    | \bAGE-SECRET-KEY-1[A-Z0-9]{20,}
    | \b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}
    | \bnpm_[A-Za-z0-9]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
    """,
    re.VERBOSE | re.DOTALL,
)
_BEARER = re.compile(r"(?i)\b(bearer|basic|token)(\s+)[A-Za-z0-9._~+/=-]{8,}")
_NAMED = re.compile(
    rf"""(?ix)
    ((?:[A-Za-z0-9_.-]*(?:{WORDS})[A-Za-z0-9_.-]*)
    ["']?\s*[:=]\s*["']?)
    ([^\s"',;&]{{4,}})
    """
)
_URL_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,30}://[^\s:/@]*:)[^\s@/]+@")
PATTERNS = (
    (_SHAPES, HIDDEN),
    (_BEARER, rf"\1\2{HIDDEN}"),
    (_URL_PASSWORD, rf"\1{HIDDEN}@"),
    (_NAMED, rf"\1{HIDDEN}"),
)
"""What `redact` looks for, and what it puts in its place."""
_TRACES = (
    *("-----begin", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk_", "rk_", "whsec_"),
    *("xapp-", "hooks.slack.com", "/api/webhooks/", "ya29.", "gocspx-", "hf_", "gsk_", "xai-", "pypi-", "sg."),
    *("_v1_", "shpat_", "shpca_", "shppa_", "shpss_", "atatt3", "lin_api_", "hvs.", "hvb.", "tskey-", "sntry"),
    *("glsa_", "age-secret-key-", ":aa", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
    *("xox", "akia", "asia", "aiza", "npm_", "eyj", "bearer", "basic", "token", "apikey", "api_key", "api-key"),
    *("secret", "password", "passwd", "credential", "privatekey", "private_key", "private-key"),
)
"""In lower case: without one of these, none of the patterns finds anything in a text, save passwords in URLs."""

# Of the value of a variable alone. A colon counts only where no path follows: `/opt/token:/usr/share` is a list.
_ASSIGNED = re.compile(
    rf"""(?ix)
    (?: (?:{WORDS}) [\w.-]{{0,40}}
      | (?<![a-z0-9]) (?:pwd|pw|pass|passphrase|auth|authorization|sig|signature|jwt
                       |(?:access|account|shared|client)(?:[ _-]?access)?[ _-]?key) )
    ["']? (?: \s*=\s* | :(?!/)\s* ) ["']? [^\s"',;&=]
    """
)
_OPTION = re.compile(rf"(?i)(?<![\w-])-[\w-]{{0,40}}(?:{WORDS}|pass|pwd)\s+\S|(?:^|\s)(?:-u|--user)\s+\S+:\S")
_URL_USER = re.compile(r"(?i)\b(?:https?://[^\s/@]{1,1000}@|[a-z][a-z0-9+.-]{0,30}://[^\s/@]{0,1000}:\S{1,1000}@)")
_RANDOM = re.compile(r"[A-Za-z0-9_.+~=-]+")
_BASE64 = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9+][A-Za-z0-9+/]+={0,2}")
_BETWEEN = re.compile(r"[\s:;,&?@|'\"<>(){}\[\]]+|(?<=[A-Za-z])=(?=[^=])")
_LONGEST_WORD = 20
_LEAST_BITS = 1.9
_SHORTEST_RANDOM, _LONGEST_RANDOM = 32, 4096


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text without what must not be kept."""
    for value in known:
        text = text.replace(value, HIDDEN)
    if not may_hold_secret(text):
        return text
    for pattern, hidden in PATTERNS:
        text = pattern.sub(hidden, text)
    return text


def may_hold_secret(text: str) -> bool:
    """False if `redact` would certainly leave the text as it is; twenty times as fast as its patterns."""
    # As a pattern that ignores case sees it: to that, a dotless i is an i.
    plain = text.casefold().replace("\N{LATIN SMALL LETTER DOTLESS I}", "i").replace("i\N{COMBINING DOT ABOVE}", "i")
    return any(word in plain for word in _TRACES) or ("://" in plain and "@" in plain)


def looks_secret(value: str) -> bool:
    """True if a value by itself may be a secret: a known kind of key, a password within it, or random characters."""
    patterns = (_SHAPES, _BEARER, _URL_PASSWORD, _URL_USER, _ASSIGNED, _OPTION)
    return any(pattern.search(value) for pattern in patterns) or any(map(_is_random, _parts(value)))


def _parts(value: str) -> Iterator[str]:
    """What in a value could be a token by itself. Only the address of a service has secrets between its slashes."""
    is_address = "://" in value
    for part in _BETWEEN.split(value):
        yield from part.split("/") if is_address else (part,)


def _is_random(text: str) -> bool:
    """True for 32 characters or more that no person would invent."""
    if not _SHORTEST_RANDOM <= len(text) <= _LONGEST_RANDOM:
        return False
    has_form = _RANDOM.fullmatch(text) or _BASE64.fullmatch(text)
    return bool(has_form) and _bits(text) >= _LEAST_BITS and not _is_words(text)


def _is_words(text: str) -> bool:
    """True for words and numbers with something between them, as in the name of a host or of a branch."""
    parts = [part for part in re.split(r"[-_.+~=]+", text) if part]
    return all(part.isdecimal() or (part.isalpha() and len(part) <= _LONGEST_WORD) for part in parts)


def _bits(text: str) -> float:
    """How much information a character of the text holds: 0 if all are the same, 4 for random hexadecimal digits."""
    return -sum((share := text.count(char) / len(text)) * log2(share) for char in set(text))


def redact_all(value: Any, known: Iterable[str] = ()) -> Any:
    """The same for everything inside lists and mappings; a key that names a secret hides its value."""
    known = tuple(known)
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, dict):
        return {key: _entry(str(key), content, known) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(item, known) for item in value]
    return value


def _entry(key: str, value: Any, known: tuple[str, ...]) -> Any:
    if isinstance(value, str) and value and may_hold_secret(key) and _NAMED.fullmatch(f"{key}={'x' * 8}"):
        return HIDDEN
    return redact_all(value, known)

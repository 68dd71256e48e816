"""Secrets are taken out once, where records enter: by their shape, by their name, and by value where we know it."""

from __future__ import annotations

import re

from rookery.base.secret_names import WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

HIDDEN = "[redacted]"

_SHAPES = re.compile(
    r"""
    -----BEGIN[ A-Z0-9]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z0-9]*PRIVATE\ KEY-----|\Z)
    | \bsk-[A-Za-z0-9_-]{16,}
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,}
    | \bxox[abposr]-[A-Za-z0-9-]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{30,}
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
_URL_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s@/]+@")


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text without what must not be kept."""
    for value in known:
        text = text.replace(value, HIDDEN)
    text = _SHAPES.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
    text = _URL_PASSWORD.sub(rf"\1{HIDDEN}@", text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)


def looks_secret(value: str) -> bool:
    """True if a value by itself has the form of a secret: a known kind of key, or an address with a password."""
    return bool(_SHAPES.search(value) or _URL_PASSWORD.search(value))


def redact_all(value: Any, known: Iterable[str] = ()) -> Any:
    """The same for everything inside lists and mappings; a key that names a secret hides its value."""
    known = tuple(known)
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, dict):
        return {key: _entry(str(key), each, known) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(each, known) for each in value]
    return value


def _entry(key: str, value: Any, known: tuple[str, ...]) -> Any:
    if isinstance(value, str) and value and _NAMED.fullmatch(f"{key}={'x' * 8}"):
        return HIDDEN
    return redact_all(value, known)

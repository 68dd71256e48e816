"""Identities: prefixed ULIDs such as `task_01ARZ3NDEKTSV4RRFFQ69G5FAV`, in order of making, validated on parse.

Wherever an id is accepted, so is the beginning or the end of one, of at least four characters, where it fits no other.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence

from rookery.base.errors import AmbiguousId, InvalidId, NotFound
from rookery.base.text import one_line

TASK = "task"
LEARNING = "lrn"
EVENT = "evt"
MESSAGE = "msg"
SESSION = "ses"
TURN = "trn"
RUN = "run"
MERGE = "mrg"

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_LENGTH = 26
_SHORTEST_PART = 4
_RANDOM_BITS = 80
_HANDLE_LENGTH = 6
_DESCRIBED = 60
_WORD = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_PREFIXES = frozenset((TASK, LEARNING, EVENT, MESSAGE, SESSION, TURN, RUN, MERGE))
_KINDS = {LEARNING: "learning", MESSAGE: "message", MERGE: "merge"}
_NOUNS = {LEARNING: "learning", MESSAGE: "mail", MERGE: "merge"}
_ACCEPTED = (TASK, LEARNING, MESSAGE, RUN, MERGE)
_MADE_UP = "".join(rf"(?<!no {_KINDS.get(prefix, prefix)} )" for prefix in _ACCEPTED)
_NAMED = re.compile(rf"(?<![\w/.@'-]){_MADE_UP}(?:{'|'.join(_ACCEPTED)})_[0-7][{_ALPHABET}]{{25}}(?![\w/-]|\.\w)")
"""A whole id that commands accept, where it is no part of a path or branch, and not one that a caller made up."""

_last: tuple[int, int] = (0, 0)


def new_id(prefix: str, *, at: float | None = None) -> str:
    """A fresh id that sorts after every earlier one of this process.

    Within one millisecond the random part grows by a large random step, not by one: ids stay in order and still
    differ early enough for a short prefix to tell them apart.
    """
    global _last
    millis = int((time.time() if at is None else at) * 1000)
    random = int.from_bytes(os.urandom(10), "big")
    if millis <= _last[0]:  # the same millisecond, or the clock was set back
        millis, random = _last[0], _last[1] + 1 + (random >> 16)
        if random >> _RANDOM_BITS:
            millis, random = millis + 1, random & ((1 << 64) - 1)
    _last = (millis, random)
    return f"{prefix}_{_encode(millis << _RANDOM_BITS | random)}"


def is_id(prefix: str, text: str) -> bool:
    """True if the text is a whole id of that kind."""
    head, _, ulid = text.partition("_")
    return head == prefix and len(ulid) == _ULID_LENGTH and ulid[0] <= "7" and not ulid.strip(_ALPHABET)


def handle(id: str) -> str:
    """The id as people see it: its end, which is random, in lower case. Wherever an id is accepted, so is this."""
    return id[-_HANDLE_LENGTH:].lower()


def with_handles(text: str) -> str:
    """A sentence of ours for people, with handles instead of the ids in it. Paths and branches stay as they are."""
    return _NAMED.sub(lambda match: handle(match.group()), text) if "_" in text else text


def parse_id(prefix: str, text: str) -> str:
    """The id, or a part of one, in its canonical form: with the prefix, and in upper case."""
    head, mark, ulid = text.partition("_") if "_" in text else (prefix, "", text)
    ulid = ulid.upper()
    kind, listing = _KINDS.get(prefix, prefix), _listing(prefix)
    if head.lower() in _PREFIXES - {prefix}:
        raise InvalidId(f"{text!r} is not the id of a {kind}", hint=listing)
    if head.lower() != prefix or len(ulid) > _ULID_LENGTH or ulid.strip(_ALPHABET) or _is_too_late(ulid):
        if mark and head.lower() == prefix:
            form = f"an id is {prefix}_ and {_ULID_LENGTH} letters and digits, without I, L, O and U"
            raise InvalidId(f"{text!r} is not the id of a {kind}", hint=f"{form}; {listing}")
        raise InvalidId(f"no {kind} {_quoted(text)}", hint=listing)
    if len(ulid) + (len(prefix) + 1 if mark else 0) < _SHORTEST_PART or not ulid:
        hint = f"{listing}; a part of an id has at least {_SHORTEST_PART} characters"
        raise InvalidId(f"no {kind} {_quoted(text)}", hint=hint)
    return f"{prefix}_{ulid}"


def resolve_id(
    prefix: str,
    text: str,
    lookup: Callable[[str, str, str], Sequence[str]],
    describe: Callable[[str], str] | None = None,
) -> str:
    """The one existing id that the text names, by its beginning or its end, with the prefix or without.

    `lookup(low, high, ending)` gives up to two ids between the bounds with that ending; `describe(id)` says what it
    names, so that people can tell two of them apart.
    """
    wanted = parse_id(prefix, text)
    part = wanted.removeprefix(f"{prefix}_")
    if len(part) == _ULID_LENGTH:
        ids = list(lookup(wanted, wanted + "~", ""))
    else:
        begun = lookup(wanted, wanted + "~", "")
        ended = lookup(f"{prefix}_", f"{prefix}_~", part) if len(part) >= _SHORTEST_PART else ()
        ids = list(dict.fromkeys((*ended, *begun)))
    if not ids:
        raise NotFound(f"no {_KINDS.get(prefix, prefix)} {text}", hint=_listing(prefix))
    if len(ids) > 1:
        about = [one_line(describe(one), _DESCRIBED) if describe else "" for one in ids]
        listed = [f"- {ending}  {words}".rstrip() for ending, words in zip(_endings(ids), about, strict=True)]
        kind = _KINDS.get(prefix, prefix)
        raise AmbiguousId("\n".join([f"{text} fits more than one {kind}:", *listed]))
    return ids[0]


def _endings(ids: Sequence[str]) -> list[str]:
    """The shortest endings of some ids that differ, at least as long as a handle."""
    lengths = range(_HANDLE_LENGTH, _ULID_LENGTH + 1)
    length = next((length for length in lengths if len({one[-length:] for one in ids}) == len(ids)), _ULID_LENGTH)
    return [one[-length:].lower() for one in ids]


def _is_too_late(ulid: str) -> bool:
    """True for a whole id after the year 10889, whose time would not fit."""
    return len(ulid) == _ULID_LENGTH and ulid > "8"


def _listing(prefix: str) -> str:
    """How to see what there is."""
    return f"`rook {_NOUNS.get(prefix, prefix)} list` lists them"


def _quoted(text: str) -> str:
    """A word as it is, and anything else in quotes."""
    return text if _WORD.fullmatch(text) else repr(text)


_PAIRS = [one + other for one in _ALPHABET for other in _ALPHABET]
_SHIFTS = range(120, -1, -10)


def _encode(number: int) -> str:
    """In base 32, two digits at a time."""
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])

"""The error tree. The class fixes the exit status; every error can say what to do next.

    RookError
    ├── Refused            1  the request was understood and turned down; nothing changed
    │   ├── NotFound           not_found
    │   ├── InvalidId          invalid_id
    │   ├── AmbiguousId        ambiguous_id
    │   ├── InvalidInput       invalid_input
    │   ├── InvalidState       invalid_state
    │   ├── NoRepository       no_repository
    │   ├── NotInitialised     not_initialised
    │   ├── UntrustedState     untrusted_state
    │   ├── ConfigInvalid      config_invalid
    │   ├── StorageFailed      storage_*
    │   └── ProgramFailed      program_*
    └── UsageError         2  the command line itself is wrong

Features add their own refusals under `Refused`. Anything else that escapes is our bug: exit status 3 and a log.
"""

from __future__ import annotations

REFUSED = 1
USAGE = 2
BUG = 3
INTERRUPTED = 130


class RookError(Exception):
    """An expected failure: a code for programs, a message for people, a hint on what to do instead."""

    code = "error"
    exit_status = REFUSED
    default_hint = ""

    def __init__(self, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        if code:
            self.code = code


class Refused(RookError):
    """Understood and turned down; nothing changed."""

    code = "refused"


class UsageError(RookError):
    """The command line is wrong."""

    code = "usage"
    exit_status = USAGE


class NotFound(Refused):
    """What the caller names does not exist."""

    code = "not_found"


class InvalidId(Refused):
    """The text cannot be an id of the kind that is wanted."""

    code = "invalid_id"


class AmbiguousId(Refused):
    """The part of an id fits more than one."""

    code = "ambiguous_id"
    default_hint = "use one of these, or more characters of the id"


class InvalidInput(Refused):
    """A value that no state of the project would make acceptable."""

    code = "invalid_input"


class InvalidState(Refused):
    """The thing is in a state from which this step is not allowed."""

    code = "invalid_state"


class NoRepository(Refused):
    """Version control is needed and there is none here."""

    code = "no_repository"
    default_hint = "run `git init` here, or go to a folder inside a repository"


class NotInitialised(Refused):
    """There is no Rookery project here."""

    code = "not_initialised"
    default_hint = "run `rook init` in the repository"


class UntrustedState(Refused):
    """The project's state belongs to another user, or came out of version control."""

    code = "untrusted_state"


class ConfigInvalid(Refused):
    """A configuration file or variable holds something that it may not."""

    code = "config_invalid"


class StorageFailed(Refused):
    """The database or its disk cannot do what is asked."""

    code = "storage_failed"


class ProgramFailed(Refused):
    """A program that we ran is missing, failed or took too long."""

    code = "program_failed"

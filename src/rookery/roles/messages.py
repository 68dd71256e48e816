"""The types of messages that agents send, and what a protocol message must carry.

A role names the types that end its work, and the protocol part of its prompt derives from this; `mail` sends them.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record


@dataclass(frozen=True, slots=True)
class Field(Record):
    """One entry of a payload: its type (`text`, `integer`, `list`), whether it has to be there, and what it says."""

    name: str
    kind: str
    required: bool
    help: str
    is_ours: bool = False
    """Rookery itself fills it in."""


@dataclass(frozen=True, slots=True)
class MessageType(Record):
    """A kind of message: what it is for, and what it carries."""

    name: str
    help: str
    fields: tuple[Field, ...] = ()
    is_system: bool = False
    """Only Rookery itself sends it."""


_BRANCH = Field("branch", "text", True, "the branch that holds the work")
_TASK = Field("task_id", "text", True, "the task")
_ANY_TASK = _TASK.replace(required=False)
_FILES = Field("files", "list", False, "the files that changed")
_OUTSIDE_REASON = Field(
    "outside_reason", "text", False, "why it changes files outside of `--files`, if it does: without that it is refused"
)
_OUTSIDE = Field("outside", "list", False, "the files outside of its agent's `--files`", is_ours=True)
_REASON = Field("reason", "text", True, "why")
_SPEC = Field("spec", "text", False, "where the specification is")
_STATUS = Field("exit_status", "integer", False, "0 unless it failed")
_COMMIT = Field("commit", "text", False, "the commit on the base")
_SEVERITY = Field("severity", "text", False, "warning, error or critical")
_OPTIONS = Field("options", "list", True, "what can be chosen")
_BASE = Field("base", "text", True, "what to rebase on")
_DIED = (Field("agent", "text", True, "who"), _ANY_TASK, _REASON)

_TYPES = (
    MessageType("status", "How it goes; needs no answer."),
    MessageType("question", "Something that the recipient has to decide or knows; the asker waits for the reply."),
    MessageType("result", "What was found or made, without ending the work."),
    MessageType("error", "Something blocks the work."),
    MessageType(
        "dispatch",
        "A piece of work for an agent that is there already.",
        (_ANY_TASK, _SPEC, _FILES.replace(help="the files that it may touch")),
    ),
    MessageType("assign", "A task is now the recipient's.", (_TASK,)),
    MessageType(
        "worker_done",
        "The sender's work is finished; it is the last thing that an agent says.",
        (_ANY_TASK, _BRANCH.replace(required=False), _FILES, _STATUS, _OUTSIDE_REASON, _OUTSIDE),
    ),
    MessageType("worker_died", "An agent ended without having finished; sent by Rookery.", _DIED, is_system=True),
    MessageType(
        "merge_ready", "A branch is checked and may land.", (_BRANCH, _TASK, _FILES, _OUTSIDE_REASON, _OUTSIDE)
    ),
    MessageType("merged", "A branch has landed.", (_BRANCH, _COMMIT)),
    MessageType("merge_failed", "A branch could not land.", (_BRANCH, _REASON, _FILES)),
    MessageType("escalation", "Something that an agent above, or a person, has to decide.", (_SEVERITY,)),
    MessageType("health_check", "Are you there? Answer with a status."),
    MessageType("decision_gate", "Work stops until the recipient chooses.", (_OPTIONS,)),
    MessageType("rebase_request", "The base moved under a branch; rebase it.", (_BRANCH, _BASE)),
    MessageType("review_request", "Please review a branch.", (_BRANCH, _TASK)),
)
TYPES = {kind.name: kind for kind in _TYPES}

"""What a message may be. All of it is checked before anything is stored."""

from __future__ import annotations

from typing import Any

from rookery.base.errors import InvalidInput
from rookery.base.json import dumps, loads
from rookery.base.text import check_text
from rookery.mail.model import MAX_BODY, MAX_SUBJECT, PRIORITIES, Draft, InvalidPayload
from rookery.roles.messages import TYPES, Field, MessageType

_KINDS = {"text": "text", "integer": "a whole number", "list": "a list of texts"}
_EXAMPLES = {"text": "…", "integer": 0, "list": ["…"]}


def check_draft(draft: Draft, *, from_system: bool = False) -> None:
    """Raise what is wrong with a message."""
    kind = check_type(draft.type)
    if kind.is_system and not from_system:
        raise InvalidInput(f"only Rookery itself says {kind.name}", hint="use status, error or escalation")
    if draft.priority not in PRIORITIES:
        raise InvalidInput(f"no priority {draft.priority!r}", hint="one of " + ", ".join(PRIORITIES))
    if not draft.subject.strip():
        raise InvalidInput("the subject is empty", hint="say in a few words what it is about")
    check_text("the subject", draft.subject, limit=MAX_SUBJECT)
    check_body(draft.body)
    check_payload(kind, draft.payload)


def check_type(name: str) -> MessageType:
    """The message type of that name."""
    if name not in TYPES:
        raise InvalidInput(f"no message type {name!r}", hint="one of " + ", ".join(TYPES))
    return TYPES[name]


def check_body(body: str) -> None:
    """A body fits into a prompt; what does not belongs in a file."""
    # A character has at least one byte, so its length alone may settle it.
    if len(body) > MAX_BODY or len(body.encode(errors="surrogatepass")) > MAX_BODY:
        raise InvalidInput(
            f"the body is longer than {MAX_BODY:,} bytes", hint="put it in a file, and send the file's path"
        )
    check_text("the body", body)


def read_payload(text: str | None) -> dict[str, Any] | None:
    """The payload as it is written on a command line."""
    if text is None:
        return None
    try:
        payload = loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(f"the payload is not JSON: {error}", hint='for example {"task_id": "…"}') from error
    if not isinstance(payload, dict):
        raise InvalidPayload("the payload is not a JSON object", hint='for example {"task_id": "…"}')
    return payload


def check_payload(kind: MessageType, payload: dict[str, Any] | None) -> None:
    """Raise InvalidPayload unless it holds what such a message must carry, and nothing else."""
    values = payload or {}
    hint = _hint(kind)
    fields = {field.name: field for field in kind.fields if not field.is_ours}
    missing = [field.name for field in kind.fields if field.required and field.name not in values]
    if missing:
        raise InvalidPayload(f"a {kind.name} needs {', '.join(missing)} in its payload", hint=hint)
    unknown = [str(name) for name in values if name not in fields]
    if unknown:
        raise InvalidPayload(f"a {kind.name} does not carry {', '.join(map(repr, unknown))}", hint=hint)
    for name, value in values.items():
        _check_value(kind, fields[name], value, hint)
    if len(dumps(payload).encode()) > MAX_BODY:
        raise InvalidPayload(f"the payload is longer than {MAX_BODY:,} bytes", hint="put it in a file")


def _check_value(kind: MessageType, field: Field, value: Any, hint: str) -> None:
    fits = {
        "text": isinstance(value, str),
        "integer": type(value) is int,
        "list": isinstance(value, list | tuple) and all(isinstance(item, str) for item in value),
    }
    if not fits[field.kind]:
        raise InvalidPayload(f"{field.name} of a {kind.name} is not {_KINDS[field.kind]}", hint=hint)
    if field.required and value in ("", [], ()):
        raise InvalidPayload(f"{field.name} of a {kind.name} is empty", hint=hint)
    for text in [value] if field.kind == "text" else value if field.kind == "list" else []:
        try:
            check_text(field.name, text)
        except InvalidInput as error:
            raise InvalidPayload(error.message, hint=error.hint) from error


def _hint(kind: MessageType) -> str:
    if not kind.fields:
        return f"a {kind.name} carries no payload; say it in the body"
    example = {field.name: _EXAMPLES[field.kind] for field in kind.fields if field.required} or {
        kind.fields[0].name: _EXAMPLES[kind.fields[0].kind]
    }
    optional = [field.name for field in kind.fields if not field.required and not field.is_ours]
    more = f"; it may also hold {', '.join(optional)}" if optional else ""
    return f"for example {dumps(example)}{more}"

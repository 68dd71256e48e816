"""What is kept of a token: enough to know it again, not to say it."""

from __future__ import annotations

import hashlib


def hash_token(token: str) -> str:
    """The token's SHA-256."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()

"""What is kept of a token: enough to know it again, not to say it."""

from __future__ import annotations


def hash_token(token: str) -> str:
    """The token's SHA-256."""
    # `hashlib` loads OpenSSL, which takes longer than all of our own modules; `random` goes round it the same way.
    for module in ("_sha2", "_sha256", "hashlib"):
        try:
            sha256 = __import__(module).sha256
        except ImportError:  # `_sha256` until Python 3.11, `_sha2` since, and perhaps neither
            continue
        return str(sha256(token.encode(errors="surrogateescape")).hexdigest())
    raise ImportError("this Python has no SHA-256")

"""The protocol of client and daemon. A frame is a letter, a length in four bytes, and so many bytes.

The client begins with CALL. The daemon answers TAKEN before it begins to act, then OUT, ERR and WANT in any order, and
at last EXIT. Another version of this is refused.
"""

PROTOCOL = b"1"

# From the client.
CALL = b"C"
"""The whole call: a list of fields, as `pack_call` writes them and `daemon.hello` reads them."""
INPUT = b"I"
"""What the client has read from standard input after WANT; nothing at its end."""
NO_INPUT = b"J"
"""Standard input cannot be read, and why."""
SIGNAL = b"S"
"""The number of a signal that reached the client: an interrupt, a stop, or that it goes on."""
SIZE = b"W"
"""The terminal's new size, `COLUMNSxLINES`."""

# From the daemon.
TAKEN = b"T"
"""The call is the daemon's now. A client that gives up before this may act itself: the daemon does not."""
ONLY_READS = b"r"
"""What TAKEN holds if the command changes nothing."""
OUT = b"O"
ERR = b"E"
WANT = b"N"
"""The call wants at most so many bytes of standard input."""
EXIT = b"X"
"""The exit status; nothing follows."""
BECOME = b"B"
"""The command of a program that the client goes on as, in its own terminal."""
AGAIN = b"A"
"""This daemon is leaving and has not begun: connect again, to the next one."""
YOURSELF = b"Y"
"""No daemon runs this, and it has not begun: run it in your own process."""

HEAD = 5
LONGEST = 64 * 1024 * 1024
LONGEST_CALL = 16 * 1024 * 1024

RUN, HOOK, LISTEN = b"run", b"hook", b"listen"
"""What a call is: a command, an event of an agent's program, or a sandbox's host that asks for its agent's socket."""


def pack(kind: bytes, payload: bytes = b"") -> bytes:
    """One frame."""
    return kind + len(payload).to_bytes(4, "big") + payload


def pack_call(
    kind: bytes,
    folder: bytes,
    umask: int,
    terminals: tuple[bool, ...],
    size: tuple[int, int],
    encoding: str,
    words: list[bytes],
    environ: dict[bytes, bytes],
) -> bytes:
    """The frame that begins a call. `terminals`: which of the standard streams lead to one."""
    fields = [
        PROTOCOL,
        kind,
        folder,
        b"%o" % umask,
        b"".join([b"1" if is_terminal else b"0" for is_terminal in terminals]),
        b"%dx%d" % size,
        encoding.encode(),
        b"%d" % len(words),
        *words,
        *[name + b"=" + value for name, value in environ.items()],
    ]
    return pack(CALL, pack_fields(fields))


def pack_fields(fields: list[bytes]) -> bytes:
    """A list of texts as one payload."""
    return b"".join([len(field).to_bytes(4, "big") + field for field in fields])


def unpack_fields(payload: bytes) -> list[bytes]:
    """The list again; raises ValueError where it is cut off."""
    fields = []
    at = 0
    while at < len(payload):
        end = at + 4 + int.from_bytes(payload[at : at + 4], "big")
        if end > len(payload) or at + 4 > len(payload):
            raise ValueError("a field is cut off")
        fields.append(payload[at + 4 : end])
        at = end
    return fields

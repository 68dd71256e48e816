"""What no branch may change: Rookery's own folder, whose settings decide what the next agent can reach."""

from __future__ import annotations

import unicodedata

from rookery.config.project import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def protected_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of some paths of a repository that are in Rookery's folder, on any file system."""
    return tuple(path for path in paths if _folded(path.partition("/")[0]) == FOLDER)


def _folded(name: str) -> str:
    """A name as a file system may read it that ignores case, or (as HFS+ does) characters without a shape."""
    whole = unicodedata.normalize("NFKC", name)
    return "".join(char for char in whole if unicodedata.category(char) != "Cf").casefold()

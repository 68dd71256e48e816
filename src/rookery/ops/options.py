"""The options that every command has, before or after its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rookery.base.record import Record
from rookery.ops.operation import FLAG, Param


@dataclass(frozen=True, slots=True)
class Globals(Record):
    """What holds for every command, before or after its name."""

    json: bool = False
    quiet: bool = False
    no_color: bool = False
    version: bool = False
    help: bool = False
    directory: str = ""
    config: dict[str, str] = field(default_factory=dict)


GLOBALS = (
    Param("json", "Print one JSON envelope.", kind=FLAG, default=False),
    Param("quiet", "Print ids only, or nothing.", kind=FLAG, default=False, short="q"),
    Param("no_color", "Print without colours.", kind=FLAG, default=False),
    Param("directory", "Run as if started in this folder.", short="C"),
    Param(
        "config", "Set a configuration KEY=VALUE for this command; can be given several times.", many=True, short="c"
    ),
)


class HelpAsked(Exception):
    """The words ask for help, and so for nothing else; `show` prints it."""

    def __init__(self, show: Callable[[], None]) -> None:
        super().__init__("help")
        self.show = show

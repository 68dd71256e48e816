"""Variables that an agent may not set: its identity, and those that make other programs run what they name."""

from __future__ import annotations

from rookery.guard.command import Word, names
from rookery.guard.judge import Judge

OWN = "ROOKERY_"
_STEERING = names(
    "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH BASH_ENV ENV PROMPT_COMMAND PS0 PS4 "
    "SHELLOPTS BASHOPTS IFS CDPATH GLOBIGNORE SHELL ZDOTDIR LESSOPEN LESSCLOSE MANPAGER HISTFILE CLAUDE_ENV_FILE "
    "JJ_CONFIG JJ_EDITOR NODE_OPTIONS_FILE"
)
_RUNNERS = names("EDITOR VISUAL PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER BROWSER")
_HARMLESS_RUNNERS = frozenset(["", "cat", "true", ":", "less", "more", "vi", "nano", "/bin/true", "/bin/cat"])
_GIT = names(
    "GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_AUTHOR_DATE GIT_COMMITTER_DATE GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL "
    "GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_MERGE_AUTOEDIT GIT_TRACE GIT_FLUSH"
)
_PLACES = names("HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS CLAUDE_CONFIG_DIR")


def check_name(judge: Judge, name: str, value: Word, *, for_one: bool = False, removes: bool = False) -> None:
    """Deny if an agent may not set the variable; `for_one`: for one command alone."""
    if name.startswith(OWN):
        judge.deny("identity", f"{name} says who you are, and you may not change it", "call `rook` as it is")
    if removes:
        return
    if name in _STEERING:
        judge.deny("environment", f"{name} changes what commands do", "run the command without it")
    if name in _RUNNERS and not (value.known and value.text in _HARMLESS_RUNNERS):
        judge.deny("environment", f"{name} runs another program", f"set it to `cat` or `true`, or leave {name} out")
    if name not in _RUNNERS and name.startswith("GIT_") and name not in _GIT:
        judge.deny("environment", f"{name} changes what git does", "run git without it")
    if name in _PLACES and not (for_one and judge.role.can_write):
        judge.deny("environment", f"{name} changes whose settings hold", f"leave {name} as it is")
    if name == "PATH" and not judge.role.can_write:
        judge.deny("environment", "PATH changes what commands are", "name the program by its path")

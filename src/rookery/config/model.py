"""Every setting, its type, its default and what it is for. The reference and the written configuration derive from it.

A field's default fixes its type; the string beneath it is its documentation.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """The repository that is worked on."""

    base: str = ""
    """The branch that work starts from and lands on; empty means the repository's default branch."""


@dataclass(frozen=True, slots=True)
class VcsConfig:
    """Version control."""

    backend: str = field(default="auto", metadata={"choices": ("auto", "git", "jj")})
    """Which program to use; auto takes jj where there is a `.jj` folder, else git."""
    timeout: float = field(default=120.0, metadata={"duration": True})
    """How long one git or jj command may take, hooks included."""


@dataclass(frozen=True, slots=True)
class TasksConfig:
    """The task graph."""

    lease: float = field(default=1800.0, metadata={"duration": True})
    """How long a claimed task stays its agent's own without a sign of life."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings."""

    project: ProjectConfig = field(default_factory=ProjectConfig)
    vcs: VcsConfig = field(default_factory=VcsConfig)
    tasks: TasksConfig = field(default_factory=TasksConfig)

"""Lock files: what a program writes from a manifest is made again by that program, never merged as text."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record


@dataclass(frozen=True, slots=True)
class Lockfile(Record):
    """How a lock file is made again, in the folder that holds it, once its manifest is merged."""

    name: str
    manifests: tuple[str, ...]
    """What it is made from; one of these stands beside it."""
    command: tuple[str, ...]

    @property
    def program(self) -> str:
        """The program that writes it."""
        return self.command[0]


LOCKFILES = (
    Lockfile("package-lock.json", ("package.json",), ("npm", "install", "--package-lock-only", "--ignore-scripts")),
    Lockfile("npm-shrinkwrap.json", ("package.json",), ("npm", "install", "--package-lock-only", "--ignore-scripts")),
    Lockfile("pnpm-lock.yaml", ("package.json",), ("pnpm", "install", "--lockfile-only", "--ignore-scripts")),
    # The first yarn does not know the mode and lets it be; the others do not know --ignore-scripts and fail.
    Lockfile("yarn.lock", ("package.json",), ("yarn", "install", "--mode=update-lockfile")),
    Lockfile("bun.lock", ("package.json",), ("bun", "install", "--lockfile-only")),
    Lockfile("bun.lockb", ("package.json",), ("bun", "install", "--lockfile-only")),
    Lockfile("deno.lock", ("deno.json", "deno.jsonc"), ("deno", "install")),
    Lockfile("poetry.lock", ("pyproject.toml",), ("poetry", "lock")),
    Lockfile("uv.lock", ("pyproject.toml",), ("uv", "lock")),
    Lockfile("pdm.lock", ("pyproject.toml",), ("pdm", "lock")),
    Lockfile("Pipfile.lock", ("Pipfile",), ("pipenv", "lock")),
    Lockfile("pixi.lock", ("pixi.toml", "pyproject.toml"), ("pixi", "lock")),
    Lockfile("Cargo.lock", ("Cargo.toml",), ("cargo", "update", "--workspace")),
    Lockfile("go.sum", ("go.mod",), ("go", "mod", "tidy")),
    Lockfile("go.work.sum", ("go.work",), ("go", "work", "sync")),
    Lockfile("Gemfile.lock", ("Gemfile",), ("bundle", "lock")),
    Lockfile("composer.lock", ("composer.json",), ("composer", "update", "--lock", "--no-scripts")),
    Lockfile("mix.lock", ("mix.exs",), ("mix", "deps.get")),
    Lockfile("flake.lock", ("flake.nix",), ("nix", "flake", "lock")),
    Lockfile("pubspec.lock", ("pubspec.yaml",), ("dart", "pub", "get")),
    Lockfile("Podfile.lock", ("Podfile",), ("pod", "install")),
    Lockfile("Package.resolved", ("Package.swift",), ("swift", "package", "resolve")),
)
_BY_NAME = {lockfile.name: lockfile for lockfile in LOCKFILES}


def lockfile_of(path: str) -> Lockfile | None:
    """How the lock file at a path is made again; None if it is none."""
    return _BY_NAME.get(path.rpartition("/")[2])

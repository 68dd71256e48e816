"""Lock files: what a program writes from a manifest is made anew by that program, never merged as text."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record


@dataclass(frozen=True, slots=True)
class Lockfile(Record):
    """How a lock file is made anew, in the folder that holds it, once its manifest is merged."""

    name: str
    manifests: tuple[str, ...]
    """What it is made from; one of these stands beside it."""
    program: str
    command: tuple[str, ...]


_LOCKFILES = (
    Lockfile(
        "package-lock.json", ("package.json",), "npm", ("npm", "install", "--package-lock-only", "--ignore-scripts")
    ),
    Lockfile(
        "npm-shrinkwrap.json", ("package.json",), "npm", ("npm", "install", "--package-lock-only", "--ignore-scripts")
    ),
    Lockfile("pnpm-lock.yaml", ("package.json",), "pnpm", ("pnpm", "install", "--lockfile-only", "--ignore-scripts")),
    # The first yarn does not know the mode and lets it be; the others do not know --ignore-scripts and fail.
    Lockfile("yarn.lock", ("package.json",), "yarn", ("yarn", "install", "--mode=update-lockfile")),
    Lockfile("bun.lock", ("package.json",), "bun", ("bun", "install", "--lockfile-only")),
    Lockfile("bun.lockb", ("package.json",), "bun", ("bun", "install", "--lockfile-only")),
    Lockfile("deno.lock", ("deno.json", "deno.jsonc"), "deno", ("deno", "install")),
    Lockfile("poetry.lock", ("pyproject.toml",), "poetry", ("poetry", "lock")),
    Lockfile("uv.lock", ("pyproject.toml",), "uv", ("uv", "lock")),
    Lockfile("pdm.lock", ("pyproject.toml",), "pdm", ("pdm", "lock")),
    Lockfile("Pipfile.lock", ("Pipfile",), "pipenv", ("pipenv", "lock")),
    Lockfile("pixi.lock", ("pixi.toml", "pyproject.toml"), "pixi", ("pixi", "lock")),
    Lockfile("Cargo.lock", ("Cargo.toml",), "cargo", ("cargo", "update", "--workspace")),
    Lockfile("go.sum", ("go.mod",), "go", ("go", "mod", "tidy")),
    Lockfile("go.work.sum", ("go.work",), "go", ("go", "work", "sync")),
    Lockfile("Gemfile.lock", ("Gemfile",), "bundle", ("bundle", "lock")),
    Lockfile("composer.lock", ("composer.json",), "composer", ("composer", "update", "--lock", "--no-scripts")),
    Lockfile("mix.lock", ("mix.exs",), "mix", ("mix", "deps.get")),
    Lockfile("flake.lock", ("flake.nix",), "nix", ("nix", "flake", "lock")),
    Lockfile("pubspec.lock", ("pubspec.yaml",), "dart", ("dart", "pub", "get")),
    Lockfile("Podfile.lock", ("Podfile",), "pod", ("pod", "install")),
    Lockfile("Package.resolved", ("Package.swift",), "swift", ("swift", "package", "resolve")),
)
_BY_NAME = {lockfile.name: lockfile for lockfile in _LOCKFILES}


def lockfile_of(path: str) -> Lockfile | None:
    """How the lock file at a path is made anew; None if it is none."""
    return _BY_NAME.get(path.rpartition("/")[2])

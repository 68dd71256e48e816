"""Where a user's secrets lie: the one list. The guard denies reading them, the sandbox hides them."""

from __future__ import annotations

IN_HOME = (
    *(".ssh", ".gnupg", ".password-store", ".local/share/keyrings", ".config/op"),
    *(".netrc", ".git-credentials", ".config/git/credentials", ".config/gh"),
    *(".aws", ".azure", ".config/gcloud", ".kube", ".docker"),
    *(".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".pgpass"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".copilot"),
    *(".mozilla", ".config/chromium", ".bash_history", ".zsh_history"),
    *(".config/rookery", ".local/state/rookery"),
)
"""Files, and folders with all that is in them, in the home folder."""

OF_THE_SYSTEM = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d")
"""Readable where an agent runs as root, as it does in many containers."""

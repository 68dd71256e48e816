"""The branch of a remote that a base follows: which one it is, fetching it, comparing with it, pushing to it.

Git runs with the caller's own environment, settings and hooks, as in the caller's shell, but never waits for a
password: no person would see it ask. Remotes are named, never written out as a URL, and stand after `--`. Nothing is
forced.

What is fetched goes to `refs/rookery/fetched/<base>@<upstream>`, so that no other fetch is mistaken for ours; git
brings `refs/remotes/…` along. `refs/rookery/upstream/<base>@<upstream>` is the last commit of the upstream that is
known: if a later one does not contain it, the upstream was rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from shlex import quote

from rookery.base.errors import InvalidState, ProgramFailed, Refused
from rookery.base.record import Record
from rookery.config.environ import child_environ
from rookery.processes.process import Finished
from rookery.vcs.git.merging import Merging
from rookery.vcs.git.moves import keep_refs
from rookery.vcs.git.repository import GitStore
from rookery.vcs.ref_names import FETCHED, HEADS, SAVED, UPSTREAMS, upstream_ref_name

EQUAL, BEHIND, AHEAD, DIVERGED = "equal", "behind", "ahead", "diverged"
UNPUBLISHED, GONE = "unpublished", "gone"
"""The remote has no such branch: not yet, or not any more."""

Show = Callable[[str, int], object]
"""Called with what git is doing, and how many percent of that are done; with nothing at the end."""

_FETCH = ("fetch", "--progress", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head")
_PUSH = ("push", "--porcelain", "--progress", "--no-follow-tags")
_PERCENT = re.compile(r"(?:remote: )?([A-Z][A-Za-z -]+):\s+(\d+)%")
_LOGIN = re.compile(r"(\w+://)[^/@\s']+@")
_REMOTE = "remote:"
"""What git puts before each line that the remote's own hooks print."""
_MOST_WORDS = 10
_CLOBBERED = "would clobber existing tag"
_RACES = ("failed to update ref", "cannot lock ref", "incorrect old value")
"""Why a remote refuses a push if another one was there between its answer and the push."""
_TRIES = 3


class NoUpstream(InvalidState):
    """Nothing says which branch of which remote a base follows."""

    code = "no_upstream"


class RemoteFailed(ProgramFailed):
    """Git could not fetch from a remote, or push to it."""

    code = "remote_failed"


class PushRejected(Refused):
    """The remote did not take the push; nothing was changed there."""

    code = "push_rejected"


@dataclass(frozen=True, slots=True)
class Upstream(Record):
    """A branch of a remote."""

    remote: str
    branch: str

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.remote}/{self.branch}"

    @property
    def ref(self) -> str:
        """Its whole name in the remote's own repository."""
        return HEADS + self.branch

    @property
    def tracking(self) -> str:
        """Where git usually keeps what it last saw of it."""
        return f"refs/remotes/{self.remote}/{self.branch}"

    def push_by_hand(self, base: str) -> str:
        """The command that pushes a base to it."""
        return f"git push {quote(self.remote)} {quote(base if base == self.branch else f'{base}:{self.branch}')}"


@dataclass(frozen=True, slots=True)
class Comparison(Record):
    """How a base and its upstream have come apart."""

    base: str
    upstream: Upstream
    tip: str
    """The base's commit."""
    theirs: str | None
    """The upstream's commit; None if the remote has no such branch."""
    known: str | None
    """The upstream's commit when it was last seen."""
    ahead: int
    """How many commits only the base has."""
    behind: int
    """How many commits only the upstream has."""
    is_rewritten: bool = False
    """The upstream has lost commits that it had."""
    has_dropped: bool = False
    """The base still has some of these."""

    @property
    def state(self) -> str:
        """The same in one word."""
        if self.theirs is None:
            return UNPUBLISHED if self.known is None else GONE
        if self.ahead and self.behind:
            return DIVERGED
        return AHEAD if self.ahead else BEHIND if self.behind else EQUAL


def find_upstream(store: GitStore, base: str) -> Upstream:
    """The branch that git's settings name, else the one of that name at `origin` or at the only remote."""
    remotes = store.read("remote").splitlines()
    named, ref = (store.ask("config", "--get", f"branch.{base}.{key}") for key in ("remote", "merge"))
    set_it = f"`git branch --set-upstream-to=REMOTE/{quote(base)} {quote(base)}`"
    if named and ref:
        if named in remotes and ref.startswith(HEADS):
            return Upstream(named, ref.removeprefix(HEADS))
        place = "a branch of this repository" if named == "." else f"{ref!r} of {_public(named)!r}, not of a remote"
        raise NoUpstream(f"the upstream of {base} is {place}", hint=f"{set_it} names another")
    origin = Upstream("origin", base)
    if origin.remote in remotes and store.ref(origin.tracking) is not None:
        return origin
    if len(remotes) == 1:
        return Upstream(remotes[0], base)
    if not remotes:
        raise NoUpstream("this repository has no remote", hint="`git remote add origin URL` names one")
    raise NoUpstream(
        f"{base} has no upstream, and there are several remotes: {', '.join(remotes)}",
        hint=f"{set_it} names one, after `git fetch REMOTE`; `git push -u REMOTE {quote(base)}` makes one there",
    )


class Remote:
    """The upstream of one base. `show` is called with git's progress."""

    def __init__(self, merging: Merging, base: str, timeout: float, show: Show = lambda _what, _percent: None) -> None:
        self.base = base
        self._merging = merging
        self._store = replace(merging.store, timeout=timeout)
        self._show = show
        self.upstream = find_upstream(self._store, base)

    def ref_name(self, kind: str) -> str:
        """What is kept of this upstream under `refs/rookery/`."""
        return upstream_ref_name(kind, self.base, self.upstream.name)

    def fetch(self) -> str | None:
        """Fetch the upstream, and nothing else but the tags that git follows; None if the remote has no such branch."""
        into = SAVED + self.ref_name(FETCHED)
        options = [*_FETCH, "--no-auto-maintenance"]
        for left in reversed(range(_TRIES)):
            done = self._run(self._store, *options, "--", self.upstream.remote, f"+{self.upstream.ref}:{into}")
            if done.ok:
                return self._store.ref(into)
            if "couldn't find remote ref" in done.stderr:
                return None
            if _CLOBBERED in done.stderr:  # the user has git fetch all tags, and one is another one here
                options.append("--no-tags")
            elif not left or "cannot lock ref" not in done.stderr:
                break  # another fetch may have been faster
        raise self._failure("fetch", done)

    def peek(self, trial: GitStore) -> str | None:
        """The same, but no ref is written and all objects go to the trial's own folder."""
        trial = replace(trial, timeout=self._store.timeout)
        listed = self._run(trial, "ls-remote", "--", self.upstream.remote, self.upstream.ref)
        if not listed.ok:
            raise self._failure("ls-remote", listed)
        rows = [line.split("\t") for line in listed.stdout.splitlines()]
        theirs = next((commit for commit, ref in rows if ref == self.upstream.ref), None)
        if theirs is not None and trial.find_commit(theirs) is None:
            done = self._run(trial, *_FETCH, "--dry-run", "--no-tags", "--", self.upstream.remote, self.upstream.ref)
            if not done.ok:
                raise self._failure("fetch", done)
        return theirs

    def last_seen(self) -> str | None:
        """The upstream's commit as it was last fetched, by whichever git."""
        return self._store.ref(self.upstream.tracking) or self._store.ref(SAVED + self.ref_name(FETCHED))

    def known(self) -> str | None:
        """The last commit of the upstream that we know, or that git knows where we have seen none."""
        known = self._store.ref(SAVED + self.ref_name(UPSTREAMS))
        return known if known or self._pushes_elsewhere else self._store.ref(self.upstream.tracking)

    def learn(self, commit: str) -> None:
        """Keep the commit as the last one of the upstream that is known."""
        self._keep(self.ref_name(UPSTREAMS), commit)

    def learn_pushed(self, commit: str) -> None:
        """Keep a commit that was pushed: the upstream has it now, unless pushes go to another repository than it."""
        upstream = f"{self.upstream.name} pushed" if self._pushes_elsewhere else self.upstream.name
        self._keep(upstream_ref_name(UPSTREAMS, self.base, upstream), commit)

    def compare(self, theirs: str | None, known: str | None, store: GitStore | None = None) -> Comparison:
        """How the base and a commit of its upstream have come apart."""
        store = store or self._store
        tip = self._merging.tip(self.base)
        if tip is None:
            raise InvalidState(f"there is no branch {self.base} any more", hint="`git branch` lists the branches")
        if known is not None and store.find_commit(known) is None:
            known = None  # git has removed what nothing kept
        if theirs is None:
            count = int(store.read("rev-list", "--count", tip))
            return Comparison(self.base, self.upstream, tip, None, known, count, 0)
        counts = store.read("rev-list", "--left-right", "--count", f"{tip}...{theirs}", "--").split()
        comparison = Comparison(self.base, self.upstream, tip, theirs, known, int(counts[0]), int(counts[1]))
        if known is None or store.contains(known, theirs):
            return comparison
        shared = store.fork_point(known, tip)
        return comparison.replace(
            is_rewritten=True, has_dropped=shared is not None and not store.contains(shared, theirs)
        )

    def push(self, commit: str) -> None:
        """Push a commit of the base to its upstream, without force; raises PushRejected or RemoteFailed."""
        refs = f"{commit}:{self.upstream.ref}"
        done = self._run(self._store, *_PUSH, "--", self.upstream.remote, refs, env={})
        if done.ok:
            return
        for line in done.stdout.splitlines():
            flag, _, rest = line.partition("\t")
            named, _, reason = rest.partition("\t")
            if flag != "!" or named != refs:
                continue
            if reason.startswith("[rejected]") or any(words in reason for words in _RACES):
                raise PushRejected(
                    f"{self.upstream.name} has moved meanwhile, so the push was refused", hint="`rook sync` again"
                )
            reason = "\n".join([reason, *_words_of_remote(done.stderr)])
            raise PushRejected(f"{self.upstream.remote} refused the push: {_public(reason)}")
        raise self._failure("push", done)

    @cached_property
    def _pushes_elsewhere(self) -> bool:
        """True if git pushes to other URLs than it fetches from, and moves the tracking branch all the same."""
        ask = ("remote", "get-url")
        fetched = self._store.ask(*ask, "--", self.upstream.remote)
        pushed = self._store.ask(*ask, "--push", "--all", "--", self.upstream.remote) or ""
        return fetched not in pushed.splitlines()

    def _keep(self, name: str, commit: str) -> None:
        if self._store.ref(SAVED + name) != commit:
            keep_refs(self._store, {name: commit})

    def _run(self, store: GitStore, *args: str, env: dict[str, str] | None = None) -> Finished:
        # Git's words are read after a fetch; a push runs the user's hooks, in the user's language.
        env = {**self._prompts, **({"LC_ALL": "C"} if env is None else env)}
        try:
            return store.run(*args, env=env, watch=_Progress(self._show))
        except ProgramFailed as error:
            if error.code != "program_timeout":
                raise
            raise RemoteFailed(
                f"{self.upstream.remote} did not answer within {store.timeout:g} s",
                hint="try it by hand, or raise `remote.timeout`",
            ) from error
        finally:
            self._show("", 100)

    @cached_property
    def _prompts(self) -> dict[str, str]:
        """What keeps git and ssh from asking for a password; an ssh that the user has chosen stays as it is."""
        own = child_environ()
        is_chosen = {"GIT_SSH_COMMAND", "GIT_SSH"} & own.keys() or self._store.ask("config", "--get", "core.sshCommand")
        return {"GIT_TERMINAL_PROMPT": "0"} | ({} if is_chosen else {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes"})

    def _failure(self, verb: str, done: Finished) -> RemoteFailed:
        what, by_hand, hook = "fetch from", f"git fetch {quote(self.upstream.remote)}", ""
        if verb == "push":
            what, by_hand = "push to", self.upstream.push_by_hand(self.base)
            hook = "a `pre-push` hook may refuse it, or "
        return RemoteFailed(
            f"git could not {what} {self.upstream.remote}: {_public(_last_words(done))}",
            hint=f"try `{by_hand}` by hand: {hook}git may ask for a password there, which `rook` never lets it do",
        )


class _Progress:
    """Reads how far git is from its error output, as it comes."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._rest = ""

    def __call__(self, chunk: bytes) -> None:
        *lines, self._rest = re.split(r"[\r\n]", self._rest[-1000:] + chunk.decode("utf-8", "replace"))
        for line in lines:
            progress = _PERCENT.match(line)
            if progress:
                self._show(progress[1], int(progress[2]))


def _last_words(done: Finished) -> str:
    """The end of git's output, without its progress."""
    lines = [line.rpartition("\r")[2].rstrip() for line in done.last_output.split("\n")]
    return "\n".join(line for line in lines if line and not _PERCENT.match(line)) or f"exit status {done.status}"


def _words_of_remote(stderr: str) -> list[str]:
    """What the remote's hooks said, at most the last lines of it."""
    lines = (line.rpartition("\r")[2] for line in stderr.split("\n"))
    words = [line.removeprefix(_REMOTE).strip() for line in lines if line.startswith(_REMOTE)]
    return [line for line in words if line and not _PERCENT.match(line)][-_MOST_WORDS:]


def _public(text: str) -> str:
    """Without the names and passwords that a URL may hold."""
    return _LOGIN.sub(r"\1", text)

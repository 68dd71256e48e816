"""The order of the layers, where a value comes from, and every mistake at its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.base.errors import ConfigInvalid
from rookery.config import yaml_file
from rookery.config.environ import Environ, read_environ
from rookery.config.loader import Loaded, load_config
from rookery.config.model import Config, GateConfig
from rookery.config.schema import keys

LOADERS = [loader for loader in (getattr(yaml, "CSafeLoader", None), yaml.SafeLoader) if loader is not None]


class Layers:
    """The files and variables of one test."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        (self.root / ".rookery").mkdir(parents=True)
        self.user = folder / "home" / ".config" / "rookery" / "config.yaml"
        self.user.parent.mkdir(parents=True)
        self.project = self.root / ".rookery" / "config.yaml"
        self.local = self.root / ".rookery" / "config.local.yaml"
        self.environment = {"HOME": str(folder / "home")}
        self.flags: dict[str, str] = {}

    def load(self, *, in_project: bool = True) -> Loaded:
        return load_config(str(self.root) if in_project else None, read_environ(self.environment), self.flags)

    def mistakes(self) -> list[str]:
        with pytest.raises(ConfigInvalid) as caught:
            self.load()
        assert caught.value.hint
        return caught.value.message.splitlines()


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


def test_nothing_written_gives_the_defaults(layers: Layers) -> None:
    loaded = layers.load()
    assert loaded.config == Config()
    assert set(loaded.entries) == set(keys())
    assert {str(one.origin) for entries in loaded.entries.values() for one in entries} == {"default"}


def test_each_layer_wins_over_the_one_below(layers: Layers) -> None:
    seen = []
    for step in (
        lambda: layers.user.write_text("tasks:\n  lease: 1s\n"),
        lambda: layers.project.write_text("tasks:\n  lease: 2s\n"),
        lambda: layers.local.write_text("\ntasks: {lease: 3s}\n"),
        lambda: layers.environment.update(ROOKERY_TASKS_LEASE="4s"),
        lambda: layers.flags.update({"tasks.lease": "5s"}),
    ):
        step()
        loaded = layers.load()
        seen.append((loaded.config.tasks.lease, str(loaded.entries["tasks.lease"][-1].origin)))
    assert seen == [
        (1.0, f"{layers.user}:2"),
        (2.0, f"{layers.project}:2"),
        (3.0, f"{layers.local}:2"),
        (4.0, "ROOKERY_TASKS_LEASE"),
        (5.0, "-c tasks.lease"),
    ]
    assert [entry.value for entry in loaded.entries["tasks.lease"]] == [1800.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_layer_changes_only_what_it_names(layers: Layers) -> None:
    layers.user.write_text("vcs:\n  backend: git\n")
    layers.project.write_text("vcs:\n  timeout: 5\n")
    vcs = layers.load().config.vcs
    assert (vcs.backend, vcs.timeout) == ("git", 5.0)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("project.base", "develop", "develop"),
        ("vcs.backend", "jj", "jj"),
        ("vcs.timeout", "1m", 60.0),
        ("tasks.lease", "1h", 3600.0),
        ("worktrees.dir", "../trees", "../trees"),
        ("worktrees.rescue_limit", "5", 5),
        ("provision.setup", "make", "make"),
        ("provision.setup_timeout", "1m", 60.0),
        ("provision.first_port", "3000", 3000),
        ("provision.last_port", "3999", 3999),
        ("provision.ports", "0", 0),
        ("agents.runtime", "claude", "claude"),
        ("agents.mode", "tmux", "tmux"),
        ("agents.model", "opus", "opus"),
        ("agents.max_concurrent", "3", 3),
        ("agents.max_per_lead", "2", 2),
        ("agents.max_per_run", "7", 7),
        ("agents.max_depth", "1", 1),
        ("agents.turn_timeout", "2h", 7200.0),
        ("agents.boot_timeout", "5s", 5.0),
        ("agents.stop_grace", "1s", 1.0),
        ("daemon.idle", "5m", 300.0),
        ("claude.program", "/opt/claude", "/opt/claude"),
        ("claude.share_login", "false", False),
        ("sandbox.mode", "on", "on"),
        ("sandbox.network", "allow", "allow"),
        ("merge.strategy", "squash", "squash"),
        ("merge.runtime", "claude", "claude"),
        ("merge.model", "opus", "opus"),
        ("merge.agent_timeout", "1m", 60.0),
        ("merge.batch", "2", 2),
        ("merge.retries", "0", 0),
        ("merge.lease", "5s", 5.0),
        ("merge.wait", "5s", 5.0),
        ("merge.rebase", "all", "all"),
        ("merge.clean", "false", False),
        ("merge.gate_output", "1", 1),
        ("merge.gate_disk", "10", 10),
        ("merge.slots", "3", 3),
        ("merge.memory", "500", 500),
        ("merge.cpus", "2", 2),
        ("remote.push", "never", "never"),
        ("remote.timeout", "5s", 5.0),
        ("backup.keep", "3", 3),
        ("backup.every", "12h", 43200.0),
        ("prune.telemetry", "9", 9),
        ("prune.logs", "9", 9),
        ("prune.snapshots", "9", 9),
        ("prune.events", "9", 9),
        ("prune.size", "9", 9),
    ],
)
def test_every_key_can_be_set_in_a_file_a_variable_and_a_flag(
    layers: Layers, name: str, text: str, value: object
) -> None:
    section, field = name.split(".")
    layers.project.write_text(f"{section}:\n  {field}: {text}\n")
    assert getattr(getattr(layers.load().config, section), field) == value
    layers.project.unlink()
    layers.environment[keys()[name].variable] = text
    assert getattr(getattr(layers.load().config, section), field) == value
    del layers.environment[keys()[name].variable]
    layers.flags[name] = text
    assert getattr(getattr(layers.load().config, section), field) == value


@pytest.mark.parametrize(
    ("name", "written", "text", "value"),
    [
        ("worktrees.snapshot_ignored", "[a, b]", "a,b", ("a", "b")),
        ("costs.prices", "[m=1/2]", "m=1/2", ("m=1/2",)),
        ("claude.args", "[--verbose]", "--verbose", ("--verbose",)),
        ("claude.env", '{A: "1"}', "A=1", {"A": "1"}),
        ("provision.copy", "[.env]", ".env", (".env",)),
        ("provision.link", "[node_modules]", "node_modules", ("node_modules",)),
        ("merge.tiers", "[agent]", "agent", ("agent",)),
        ("merge.rules", "[version]", "version", ("version",)),
        ("merge.unions", "[.gitignore]", ".gitignore", (".gitignore",)),
        ("provision.env", '{A: b, C: "1"}', "A=b, C=1", {"A": "b", "C": "1"}),
        ("sandbox.allow", '["*.example.org"]', "*.example.org", ("*.example.org",)),
        ("sandbox.read", "[~/.nvm]", "~/.nvm", ("~/.nvm",)),
        ("sandbox.credentials", "[API_KEY]", "API_KEY", ("API_KEY",)),
    ],
)
def test_lists_and_mappings_are_written_differently_in_a_file(
    layers: Layers, name: str, written: str, text: str, value: object
) -> None:
    section, field = name.split(".")
    layers.project.write_text(f"{section}:\n  {field}: {written}\n")
    assert getattr(getattr(layers.load().config, section), field) == value
    layers.project.unlink()
    layers.environment[keys()[name].variable] = text
    assert getattr(getattr(layers.load().config, section), field) == value
    del layers.environment[keys()[name].variable]
    layers.flags[name] = text
    assert getattr(getattr(layers.load().config, section), field) == value


def test_the_tests_above_know_every_key() -> None:
    assert set(keys()) == {
        *("project.base", "vcs.backend", "vcs.timeout", "tasks.lease", "costs.prices"),
        *("agents.runtime", "agents.mode", "agents.model", "agents.max_concurrent", "agents.max_per_lead"),
        *("agents.max_per_run", "agents.max_depth", "agents.turn_timeout", "agents.boot_timeout", "agents.stop_grace"),
        *("daemon.idle", "claude.program", "claude.args", "claude.env", "claude.share_login"),
        *("worktrees.dir", "worktrees.rescue_limit", "worktrees.snapshot_ignored"),
        *("provision.copy", "provision.link", "provision.setup", "provision.setup_timeout", "provision.env"),
        *("provision.first_port", "provision.last_port", "provision.ports"),
        *("sandbox.mode", "sandbox.network", "sandbox.allow", "sandbox.read", "sandbox.credentials"),
        *("gates", "merge.strategy", "merge.tiers", "merge.runtime", "merge.model", "merge.agent_timeout"),
        *("merge.batch", "merge.retries", "merge.lease", "merge.wait", "merge.rebase", "merge.clean"),
        *("merge.gate_output", "merge.gate_disk", "merge.rules", "merge.unions"),
        *("merge.slots", "merge.memory", "merge.cpus"),
        *("remote.push", "remote.timeout", "backup.keep", "backup.every"),
        *("prune.telemetry", "prune.logs", "prune.snapshots", "prune.events", "prune.size"),
    }


def test_a_list_of_mappings_is_written_alike_everywhere(layers: Layers) -> None:
    wanted = (GateConfig("tests", "pytest -q", ("src", "*.py"), 60.0), GateConfig("lint", "ruff check ."))
    text = "[{name: tests, run: pytest -q, paths: [src, '*.py'], timeout: 1m}, {name: lint, run: ruff check .}]"
    layers.project.write_text(
        "gates:\n  - name: tests\n    run: pytest -q\n    paths: [src, '*.py']\n    timeout: 1m\n"
        "  - {name: lint, run: ruff check .}\n"
    )
    loaded = layers.load()
    assert (loaded.config.gates, str(loaded.entries["gates"][-1].origin)) == (wanted, f"{layers.project}:1")
    layers.project.unlink()
    layers.environment["ROOKERY_GATES"] = text
    assert layers.load().config.gates == wanted
    del layers.environment["ROOKERY_GATES"]
    layers.flags["gates"] = text
    assert layers.load().config.gates == wanted
    layers.flags["gates"] = "[]"
    assert layers.load().config.gates == ()


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("gates: pytest\n", "1:8", "gates must be a list of mappings with name, run, paths?, timeout?, not text"),
        ("gates:\n  - pytest\n", "2:5", "mappings with name, run, paths?, timeout?, and holds text"),
        ("gates:\n  - name: a\n", "2:5", "an entry without run"),
        (
            "gates:\n  - {name: a, run: b, tmeout: 1s}\n",
            "2:23",
            "gates.tmeout (did you mean gates.timeout?)",
        ),
        ("gates:\n  - name: a\n    run: [b]\n", "3:10", "gates.run must be text"),
        ("gates:\n  - name: a\n    run: b\n    timeout: soon\n", "4:14", "not a duration"),
        ("gates:\n  - {name: a, run: b, name: c}\n", "2:23", "name is given twice; the first is on line 2"),
        ("gates:\n  - {name: a, run: b}\n  - {name: a, run: c}\n", "3:5", "two that are called a"),
        ("gates:\n  - {name: ' ', run: b}\n", "2:5", "an entry without a name"),
        ("gates:\n  - {name: a, run: b, ? [c] : d}\n", "2:25", "a key must be a word"),
    ],
)
def test_a_mistake_in_a_list_of_mappings_is_reported_at_its_place(
    layers: Layers, text: str, place: str, problem: str
) -> None:
    layers.project.write_text(text)
    (mistake,) = layers.mistakes()
    assert mistake.startswith(f"{layers.project}:{place}: ")
    assert problem in mistake


def test_outside_a_project_its_files_are_not_read(layers: Layers) -> None:
    layers.user.write_text("project:\n  base: mine\n")
    layers.project.write_text("broken: [")
    assert layers.load(in_project=False).config.project.base == "mine"


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# nothing\n# here\n", "---\n", "tasks:\n", "tasks:\n  # lease: 1h\n", "\ufefftasks:\n"]
)
def test_a_file_may_say_nothing(layers: Layers, text: str) -> None:
    layers.project.write_text(text, encoding="utf-8")
    assert layers.load().config == Config()


def test_anchors_are_fine(layers: Layers) -> None:
    layers.project.write_text("vcs:\n  timeout: &long 2h\ntasks:\n  lease: *long\n")
    assert layers.load().config.tasks.lease == 7200.0


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("tasks:\n  leese: 1h\n", "2:3", "there is no key tasks.leese (did you mean tasks.lease?)"),
        ("taks:\n  lease: 1h\n", "1:1", "there is no section taks (did you mean tasks?)"),
        ("tasks.lease: 1h\n", "1:1", "write tasks: on a line of its own"),
        ("lease: 1h\n", "1:1", "lease belongs under tasks:"),
        ("zebra: 1\n", "1:1", "there is no section zebra"),
        ("tasks:\n  lease: soon\n", "2:10", "not a duration"),
        ("tasks:\n  lease:\n", "2:9", "has no value"),
        ("vcs:\n  backend: svn\n", "2:12", "one of auto, git, jj"),
        ("project:\n  base: 1.0\n", "2:9", "in quotes"),
        ("tasks:\n  lease: 1h\n  lease: 2h\n", "3:3", "lease is given twice; the first is on line 2"),
        ("tasks:\n  lease: 1h\nvcs:\ntasks:\n", "4:1", "tasks is given twice; the first is on line 1"),
        ("- tasks\n", "1:1", "the file must hold `key: value` lines"),
        ("tasks: 5\n", "1:8", "tasks must hold `key: value` lines"),
        ("tasks:\n  ? [a]\n  : 1\n", "2:5", "a key must be a word"),
        ("tasks:\n  <<: {lease: 1h}\n", "2:3", "there is no key tasks.<<"),
        ("tasks:\n  lease: [1h\n", "3:1", "it is not YAML"),
        ("tasks:\n\tlease: 1h\n", "2:1", "it is not YAML"),
        ("tasks:\n  lease: *gone\n", "2:10", "it is not YAML"),
        ("tasks:\n---\nvcs:\n", "2:1", "it is not YAML"),
        ("tasks:\n  lease: \x07\n", "2:10", "the character U+0007 may not stand here"),
    ],
)
@pytest.mark.parametrize("loader", LOADERS)
def test_a_mistake_is_reported_at_its_place(
    layers: Layers, monkeypatch: pytest.MonkeyPatch, loader: type, text: str, place: str, problem: str
) -> None:
    monkeypatch.setattr(yaml_file, "LOADER", loader)
    layers.project.write_text(text)
    (mistake,) = layers.mistakes()
    assert mistake.startswith(f"{layers.project}:{place}: ")
    assert problem in mistake


def test_bytes_that_are_not_utf8(layers: Layers) -> None:
    layers.project.write_bytes("tasks:\n  # \u00e4 ".encode() + b"\xff\n")
    assert layers.mistakes() == [f"{layers.project}:2:7: it is not UTF-8 from here on"]


def test_what_is_not_a_file(layers: Layers) -> None:
    layers.project.mkdir()
    os.mkfifo(layers.local)
    layers.user.symlink_to("gone")
    assert [line.partition(": ")[2] for line in layers.mistakes()] == [
        "it cannot be read: No such file or directory",
        "it is not a file",
        "it is not a file",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(layers: Layers) -> None:
    layers.project.write_text("")
    layers.project.chmod(0)
    assert layers.mistakes() == [f"{layers.project}:1:1: it cannot be read: Permission denied"]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("bracket", ["[", "- ", "{a: "])
def test_deep_nesting_is_refused_before_it_ends_the_process(
    layers: Layers, monkeypatch: pytest.MonkeyPatch, loader: type, bracket: str
) -> None:
    monkeypatch.setattr(yaml_file, "LOADER", loader)
    layers.project.write_text(bracket * 50_000)
    assert "nested too deeply" in layers.mistakes()[0]


_BOMB = "gates:\n- &a0 [b]\n" + "".join(f"- &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 12))


@pytest.mark.parametrize("text", ["gates: &a [*a]\n", _BOMB])
def test_aliases_cannot_stand_for_more_than_a_file_holds(layers: Layers, text: str) -> None:
    layers.project.write_text(text)
    assert any("too many values" in mistake for mistake in layers.mistakes())


def test_a_file_of_any_size_is_not_read(layers: Layers) -> None:
    layers.project.write_text("#" * 300_000)
    assert layers.mistakes() == [f"{layers.project}:1:1: it is larger than 256 KiB"]


def test_every_mistake_of_every_layer_is_reported_at_once(layers: Layers) -> None:
    layers.user.write_text("tasks:\n  lease: x\n")
    layers.project.write_text("nope: 1\nvcs:\n  backend: svn\n  timeout: y\n")
    layers.local.write_text("a: *gone")
    layers.environment["ROOKERY_VCS_TIMEOUT"] = "z"
    layers.flags["tasks.lese"] = "1h"
    mistakes = layers.mistakes()
    assert [line.split(": ")[0].replace(str(layers.root), "") for line in mistakes] == [
        f"{layers.user}:2:10",
        "/.rookery/config.yaml:1:1",
        "/.rookery/config.yaml:3:12",
        "/.rookery/config.yaml:4:12",
        "/.rookery/config.local.yaml:1:4",
        "ROOKERY_VCS_TIMEOUT",
        "-c tasks.lese",
    ]
    assert mistakes[-1].endswith("(did you mean tasks.lease?)")


def test_a_variable_that_looks_like_ours_must_be_ours(layers: Layers) -> None:
    layers.environment["ROOKERY_TASKS_LEESE"] = "1h"
    assert layers.mistakes() == [
        "ROOKERY_TASKS_LEESE: there is no key tasks.leese (did you mean tasks.lease?)",
    ]


def test_other_variables_are_left_alone(layers: Layers) -> None:
    layers.environment |= {
        "ROOKERY_TOKEN": "x",
        "ROOKERY_ZEBRA_COUNT": "1",
        "ROOKERY_TASKS": "1",
        "ROOKERY_AGENT": "ada",
        "ROOKERY_TASKS_LEASE": "",
        "ROOKERY_TASKS_NONE": "",
    }
    assert layers.load().config == Config()


def test_a_mistake_takes_one_line_whatever_it_holds(layers: Layers) -> None:
    layers.project.write_text('"a\\nb\\e[31m": 1\n')
    layers.flags["x\ny"] = "1"
    assert layers.mistakes() == [
        f"{layers.project}:1:1: there is no section a b\\x1b[31m",
        "-c x y: there is no key x y",
    ]


def test_a_flag_can_empty_a_text(layers: Layers) -> None:
    layers.project.write_text("project:\n  base: dev\n")
    layers.flags["project.base"] = ""
    assert layers.load().config.project.base == ""


_WORDS = st.sampled_from(
    ["tasks", "vcs", "lease", "backend", "base", "project", "1h", "git", "null", "a", "<<", "!!int", "&a", "*a"]
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates(), _WORDS)
_TREES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.text(), inner, max_size=3),
    max_leaves=12,
)
_SNIPPETS = st.lists(
    st.one_of(
        _WORDS,
        st.sampled_from(list("{}[]:,-?&*!|>%@`#'\"\n\t \\")),
        st.sampled_from(["\n  ", ": ", "\\U", "--- ", "FFFF"]),
        st.text(max_size=3),
    ),
    max_size=30,
).map("".join)


def mistakes_or_none(environ: Environ, flags: dict[str, str]) -> list[str]:
    """The lines of ConfigInvalid, the only thing that may be raised."""
    try:
        load_config(None, environ, flags)
    except ConfigInvalid as error:
        return error.message.split("\n")
    return []


@pytest.mark.parametrize("loader", LOADERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    data=st.one_of(
        st.binary(),
        _TREES.map(lambda tree: yaml.safe_dump(tree).encode()),
        _SNIPPETS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    )
)
def test_no_file_does_more_than_be_invalid(tmp_path: Path, loader: type, data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_file, "LOADER", loader)
        path = tmp_path / "any.yaml"
        path.write_bytes(data)
        environ = read_environ({"HOME": str(tmp_path)}).replace(user_config=str(path))
        mistakes = mistakes_or_none(environ, {})
    assert all(line.startswith(f"{path}:") for line in mistakes)


@given(flags=st.dictionaries(st.sampled_from(sorted(keys())) | st.text(), st.text(), max_size=4))
def test_no_flag_does_more_than_be_invalid(flags: dict[str, str]) -> None:
    assert all(line.startswith("-c ") for line in mistakes_or_none(read_environ({"HOME": "/nowhere"}), flags))

"""Who imports whom: no cycle inside a package, and imports at the top, where a reader looks for them."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache

import pytest

from rplctl.cli.app import VERBS
from rplctl.target.registry import KINDS
from tests.house.code import ROOT, Edge, edges

# The one reason for an import inside a function: it loads one of these, and not each call gets there. Seconds that they
# take of one core, beside the 0.02 of Python itself.
SLOW_TO_LOAD = {
    "alembic": 0.55,
    "cryptography": 0.03,
    "numba": 0.42,
    "numpy": 0.13,
    "psycopg": 0.25,
    "pyarrow": 0.20,
    "pymysql": 0.09,
    "pyspark": 0.22,
    "rich": 0.04,
    "sqlalchemy": 0.40,
}
# Lazy verbs: a verb imports its command when it runs, the console script the command line, and that what a TAB is
# offered when a shell asks (rplctl/cli/app.py). Who copies and who loads a copy are there while one is open, what
# compiles is in the first receiver on a machine: 0.04 to 0.2 s of the start of every other applier and receiver. A
# command that only looks, which monitors run each few seconds, never finishes a rename, and seldom finds a receiver
# whose word is older than what is executed. An applier begins its Java before `start` loads what prepares a channel.
LAZY = {
    ("rplctl.cli", "rplctl.cli.app"),
    ("rplctl.cli.app", "rplctl.cli.completion"),
    ("rplctl.command.channel.context", "rplctl.renaming"),
    ("rplctl.command.show_status", "rplctl.event.gtid"),
    ("rplctl.command.start", "rplctl.command.process.preparation"),
    ("rplctl.receiver.receiver", "rplctl.clone.cloner"),
    ("rplctl.receiver.receiver", "rplctl.event.warm_up"),
    ("rplctl.applier.job", "rplctl.applier.apply.clone_load"),
    ("rplctl.applier.job", "rplctl.result_set.warm_up"),
}
DRIVERS = {"sqlite3"}  # of the standard library; a form may load no other library but numpy
VERB_MODULES = {"rplctl.cli." + verb.replace("-", "_") for verb in VERBS}


def cycles(graph: Mapping[str, Iterable[str]]) -> list[frozenset[str]]:
    """The groups of names each of which reaches each other."""
    reach = {name: _reached(graph, name) for name in graph}
    groups = {frozenset(other for other in reach[name] if name in reach.get(other, ())) for name in graph}
    return sorted((group for group in groups if group), key=sorted)


def _reached(graph: Mapping[str, Iterable[str]], begin: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[begin])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph.get(name, ())
    return found


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Also not from inside functions, and not for types: what is needed by both belongs below both."""
    graph: dict[str, set[str]] = {}
    for edge in edges():
        graph.setdefault(edge.importer, set()).add(edge.imported)
        graph[edge.importer].discard(edge.importer)
    assert cycles(graph) == []


def test_a_circle_is_found() -> None:
    assert cycles({"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": []}) == [frozenset({"b", "c"})]


@cache
def _loaded(module: str) -> frozenset[str]:
    """All that is loaded with a module: its packages, and what is imported at the top of each, libraries too."""
    at_top: dict[str, set[str]] = {}
    for edge in edges():
        if not edge.inside and not edge.for_types_only:
            at_top.setdefault(edge.importer, set()).add(edge.imported)
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [*at_top.get(name, ()), *filter(None, [name.rpartition(".")[0]])]
    return frozenset(found)


def is_worth_it(edge: Edge) -> bool:
    """Whether an import inside a function saves its module from loading something slow."""
    return bool((_loaded(edge.imported) - _loaded(edge.importer)) & SLOW_TO_LOAD.keys())


def test_imports_of_our_own_modules_are_at_the_top() -> None:
    inside = {edge for edge in edges() if edge.inside and edge.imported.startswith("rplctl") and not is_worth_it(edge)}
    assert sorted(str(edge) for edge in inside if not is_lazy_verb(edge)) == []


def is_lazy_verb(edge: Edge) -> bool:
    if (edge.importer, edge.imported) in LAZY:
        return True
    return edge.importer in VERB_MODULES and edge.imported.startswith("rplctl.command")


def test_what_is_said_to_load_slowly_is_used() -> None:
    assert SLOW_TO_LOAD.keys() - {edge.imported for edge in edges()} == set()


def test_an_installation_without_extras_runs_every_verb_and_process() -> None:
    """`pip install rplctl` brings no library of an extra: only who asked for one may load it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {name_of(text) for text in project["dependencies"]}
    extras = {
        name_of(text)
        for extra, texts in project["optional-dependencies"].items()
        for text in texts
        if extra != "dev" and not text.startswith("rplctl")
    }
    assert {"pyarrow", "deltalake"} <= extras
    begun = {
        edge.importer for edge in edges() if re.match(r"rplctl\.(cli|command)\b|.*(__main__|_daemon)$", edge.importer)
    }
    assert {"rplctl.applier.__main__", "rplctl.receiver.__main__"} <= begun
    loads = {f"{module} loads {name}" for module in begun for name in _loaded(module) & (extras - needed)}
    assert sorted(loads) == []


@pytest.mark.parametrize(("package", "slow"), [("rplctl.cli", {*SLOW_TO_LOAD}), ("rplctl.command", {"pyspark"})])
def test_slow_libraries_of_commands_are_loaded_only_in_functions(package: str, slow: set[str]) -> None:
    """Help and completion import each module of rplctl/cli, and no command but `start` needs Spark (design D16)."""
    modules = {edge.importer for edge in edges() if edge.importer.startswith(package)}
    loads = {f"{module} loads {name}" for module in modules for name in _loaded(module) & slow}
    assert sorted(loads) == []


def test_the_form_of_a_kind_of_target_loads_no_driver() -> None:
    """The tasks of Spark import the form of the target, and no task opens a target."""
    for kind in KINDS.values():
        others = {name.partition(".")[0] for name in _loaded(f"{kind.folder}.form")} - {"rplctl", "numpy"}
        assert others & DRIVERS == set(), kind
        assert others <= sys.stdlib_module_names, kind


def name_of(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0].replace("-", "_")  # type: ignore[index]

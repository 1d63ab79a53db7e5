"""Rules about the code are tests of the code: sizes, names, walls, mirrors, exit codes, crash points.

Each test collects every offender before it fails, so that one run shows all there is to mend.
"""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import rplctl.errors
from rplctl.errors import RplError
from rplctl.failpoint import CLONE_POINTS, CRASH_POINTS, EXPORT_POINTS, RENAME_POINTS, REPAIR_POINTS
from tests.house.code import MODULES, PACKAGE, ROOT, imports, is_empty, loaded_by_name, name_of, nodes, short, tree

MODULE_LINES = 500  # no size to sculpt by: a module has one reason to change, and half of them are short
MEDIAN_MODULE_LINES = 160
FUNCTION_LINES = 70
P90_FUNCTION_LINES = 35

# Third-party module or function → the only places in rplctl/ that may use it.
WALLS = {
    "typer": ("cli/",),
    "rich": ("cli/",),
    "click": (),
    "pyspark": ("applier/", "data_source/", "dataframe.py"),
    "pymysql": ("handshake/", "source/", "target/"),
    "psycopg": ("target/",),
    "os.fsync": ("durable.py",),
    "os.fdatasync": ("durable.py",),
    "os.replace": ("durable.py",),
    "os.rename": ("durable.py",),
    "fcntl": ("locks.py",),
}
BANNED_NAME = re.compile(r"(^|_)(utils?|helpers?|managers?|common|misc)($|_)", re.IGNORECASE)
# Where processes begin: the console script, `python -m rplctl…`.
ENTRY_POINTS = {
    *("rplctl.cli", "rplctl.__main__", "rplctl.receiver.__main__", "rplctl.applier.__main__"),
    *("rplctl.applier.spark.worker_daemon", "rplctl.applier.spark.make_class_archive"),  # begun by Spark, by session
    *("rplctl.data_source.pyspark_binlog", "rplctl.dataframe"),  # found by Spark; called by a program of a user
}


def line_count(path: Path) -> int:
    return len(path.read_text().splitlines())


def functions(path: Path) -> list[tuple[str, int]]:
    """Name and lines of every function's body (for Typer a signature is a list of options); nested ones count twice."""
    found = [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        (f"{short(path)}:{node.name}", (node.end_lineno or node.lineno) - node.body[0].lineno + 1) for node in found
    ]


@cache
def uses(path: Path) -> set[str]:
    """Imports, and attributes written as `module.name`."""
    dotted = {
        f"{node.value.id}.{node.attr}"
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return imports(path) | dotted


def test_every_module_tells_what_it_owns() -> None:
    assert [short(path) for path in MODULES if not ast.get_docstring(tree(path))] == []


def test_modules_are_short() -> None:
    sizes = {short(path): line_count(path) for path in MODULES}
    assert {name: size for name, size in sizes.items() if size > MODULE_LINES} == {}
    written = [size for path, size in zip(MODULES, sizes.values(), strict=True) if not is_empty(path)]
    assert statistics.median(written) <= MEDIAN_MODULE_LINES


def test_functions_are_short() -> None:
    sizes = [function for path in MODULES for function in functions(path)]
    assert [(name, size) for name, size in sizes if size > FUNCTION_LINES] == []
    assert statistics.quantiles((size for _, size in sizes), n=10)[8] <= P90_FUNCTION_LINES


def test_a_kind_of_target_is_named_in_its_folder_and_in_the_registry_alone() -> None:
    """Another kind is a folder and a line. MySQL's and MariaDB's names are also those of sources and layouts."""
    elsewhere = {
        f"{short(path)}: {node.value}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Constant) and node.value in ("sqlite", "postgresql")
        if short(path) != "target/registry.py" and path.parent.parent != PACKAGE / "target"
    }
    assert elsewhere == set()


def test_schema_speaks_of_no_kind_of_target() -> None:
    """Not even in its words: what is said of one kind belongs into that kind's folder."""
    names = [f"{short(p)}: {k}" for p in MODULES if p.parent == PACKAGE / "schema" for k in ("sqlite", "postgres")
             if k in p.read_text().lower()]  # fmt: skip
    assert names == []


def reached(edges: dict[str, set[str]], begin: set[str]) -> set[str]:
    """Modules that run when the processes begin at `begin`, and their packages."""
    found: set[str] = set()
    waiting = set(begin)
    while waiting:
        name = waiting.pop()
        found.add(name)
        parents = {name.rpartition(".")[0]} if "." in name else set()
        waiting |= ((edges[name] & edges.keys()) | (parents & edges.keys())) - found
    return found


def test_no_module_is_dead() -> None:
    """From where a process begins every module can be reached; two dead ones that import each other cannot."""
    edges = {name_of(path): imports(path) | loaded_by_name(path) for path in MODULES}
    migrations = {name for path in (ROOT / "migrations").rglob("*.py") for name in imports(path)}  # run by alembic
    assert sorted(edges.keys() - reached(edges, ENTRY_POINTS | migrations & edges.keys())) == []


def test_a_dead_module_is_found_even_when_its_own_parts_import_each_other() -> None:
    edges: dict[str, set[str]] = {
        "p": set(),
        "p.main": {"p.a", "os"},
        "p.a": {"p.a.x"},
        "p.a.x": set(),
        "p.b": {"p.c"},
        "p.c": {"p.b"},
    }
    assert edges.keys() - reached(edges, {"p.main"}) == {"p.b", "p.c"}


def test_commands_loaded_by_a_text_are_alive_and_others_are_not(tmp_path: Path) -> None:
    table = tmp_path / "table.py"
    table.write_text('VERBS = ("show-status", "demo")\nload = importlib.import_module(f"rplctl.cli.{name}")\n')
    assert loaded_by_name(table) >= {"rplctl.cli.show_status", "rplctl.cli.demo"}
    assert "rplctl.cli.output" not in loaded_by_name(table)
    no_loader = tmp_path / "no_loader.py"
    no_loader.write_text('MENTIONED = "rplctl.cli.show"\n')
    assert loaded_by_name(no_loader) == set()


@pytest.mark.parametrize("wall", WALLS)
def test_walls_hold(wall: str) -> None:
    """ruff's banned-api says the same while typing, but its per-file ignores open a file for every name at once."""
    through = [
        short(path)
        for path in MODULES
        if any(name == wall or name.startswith(f"{wall}.") for name in uses(path))
        and not short(path).startswith(WALLS[wall])
    ]
    assert through == []


def test_only_the_command_line_prints() -> None:
    prints = [
        f"{short(path)}:{node.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert [place for place in prints if not place.startswith("cli/")] == []


def test_no_name_says_nothing() -> None:
    """Files, classes and functions are named after what they own or do: never utils, helpers, manager, common."""
    names = {f"{short(path)}: {path.stem}" for path in MODULES} | {
        f"{short(path)}: {node.name}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    assert sorted(name for name in names if BANNED_NAME.search(name.partition(": ")[2])) == []


def test_no_exception_is_swallowed_wholesale() -> None:
    """`except Exception` and a bare `except` hide our own bugs; one that raises again with its cause hides nothing, and
    neither does one that gives the error to a Future, which raises it.
    """
    broad = []
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "everything"
                reraises = any(
                    isinstance(inner, ast.Raise) or (isinstance(inner, ast.Attribute) and inner.attr == "set_exception")
                    for inner in ast.walk(node)
                )
                if caught == "everything" or (caught in ("Exception", "BaseException") and not reraises):
                    broad.append(f"{short(path)}:{node.lineno} catches {caught}")
    assert broad == []


def test_exit_codes_belong_to_one_class_each_and_are_documented() -> None:
    classes = [item for item in vars(rplctl.errors).values() if isinstance(item, type) and issubclass(item, RplError)]
    own = [item for item in classes if "exit_code" in vars(item)]
    assert [code for code, count in Counter(item.exit_code for item in own).items() if count > 1] == []
    rows = re.findall(r"^\W*(\w+)\s+(\d+)\s", rplctl.errors.__doc__ or "", re.MULTILINE)
    assert dict(rows) == {item.__name__: str(item.exit_code) for item in classes}


def test_every_crash_point_is_passed_by_code_and_killed_in_a_test() -> None:
    code = "\n".join(path.read_text() for path in MODULES)
    words = {word for path in (ROOT / "tests").rglob("*.py") for word in re.findall(r"\w+", path.read_text())}
    passed = set(re.findall(r"""(?:crash_point|is_due)\(\s*["'](\w+)["']""", code))
    points = CRASH_POINTS | CLONE_POINTS | REPAIR_POINTS | EXPORT_POINTS | RENAME_POINTS
    assert passed - points == set(), "not declared in failpoint.py"
    assert points - passed == set(), "declared, but no code passes them"
    assert points - words == set(), "no test names them"

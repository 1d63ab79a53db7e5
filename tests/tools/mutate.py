"""Change the code in one small place at a time, and print the changes that no quick test notices.

`python -m tests.tools.mutate [--sample 40] [--seed 1] [--seconds 600] [commit/transaction.py …]` prints the survivors:
the mutants after which every quick test that runs the changed line still passes. The program works in a copy of the
repository. A process that has loaded the libraries forks a child for each mutant, so a mutant takes seconds.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# What loses or repeats a transaction when it is wrong; folders stand for their modules.
SUBJECTS = ("commit", "recovery.py", "repository/switch.py", "applier/apply")
QUICK = "not (slow or spark or mariadb or mysql or postgresql or torture or huge)"
PLAIN = ("-x", "-q", "-p", "no:cacheprovider", "-n0", "-W", "ignore:Module already imported")
LIBRARIES = (
    "numpy",
    "numba",
    "sqlalchemy",
    "pymysql",
    "cryptography.fernet",
    "hypothesis",
    "pytest",
    "_pytest.assertion",
)
SECONDS_AT_LEAST = 20.0  # for the tests of one mutant; else five times what they took
MOST_TESTS = 150  # of one mutant, the nearest ones

FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """`path` is below rplctl/; `text` is the whole module with the wrong in it."""

    path: str
    line: int
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.what}"


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The wrong forms of one node, each with its kind of wrong."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in FLIPS:
            yield "flipped", ast.Compare(node.left, [FLIPS[type(op)]()], node.comparators)
        case ast.BoolOp():
            yield "and/or", ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        case ast.BinOp(op=ast.Add() | ast.Sub()) if not isinstance(node.left, ast.JoinedStr | ast.List | ast.Tuple):
            yield (
                "plus/minus",
                ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right),
            )
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            yield "one more", ast.Constant(number + 1)
        case ast.UnaryOp(op=ast.Not()):
            yield "not dropped", node.operand
        case ast.Call(args=[first, second, *rest]) if ast.dump(first) != ast.dump(second):
            if not any(isinstance(argument, ast.Starred) for argument in node.args):
                yield "swapped", ast.Call(node.func, [second, first, *rest], node.keywords)
        case ast.If() | ast.While() | ast.IfExp():
            wrong = copy.copy(node)
            wrong.test = ast.UnaryOp(ast.Not(), node.test)
            yield "negated", wrong
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield "dropped", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "dropped", ast.Pass()


def mutants(path: str) -> list[Mutant]:
    """Every mutant of a module of rplctl/: texts of errors and the numbers of errors stay as they are."""
    tree = ast.parse((ROOT / "rplctl" / path).read_text())
    found = []
    for parent, field, index, node in list(_places(tree)):
        for kind, wrong in variants(node):
            _put(parent, field, index, ast.copy_location(wrong, node))
            after = ast.unparse(ast.fix_missing_locations(tree))
            _put(parent, field, index, node)
            head = ast.unparse(node).splitlines()[0]
            what = f"{kind}: {head}" + (f"  →  {ast.unparse(wrong).splitlines()[0]}" if kind != "dropped" else "")
            found.append(Mutant(path, node.lineno, what, after))
    return found


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, Any]]:
    for field, value in ast.iter_fields(node):
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            yield node, field, index, child
            if not isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
                yield from _places(child)


def _put(parent: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[index] = child


class _Lines:
    """A pytest plugin: which tests pass through which lines of one file, and how long each of them takes."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._now = ""
        self.tests: dict[int, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._now = nodeid
        self.seconds[nodeid] = time.monotonic()
        sys.settrace(self._call)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None)
        self.seconds[nodeid] = time.monotonic() - self.seconds[nodeid]

    def _call(self, frame: Any, event: str, argument: object) -> Any:
        return self._line if frame.f_code.co_filename == self._path else None

    def _line(self, frame: Any, event: str, argument: object) -> Any:
        self.tests[frame.f_lineno].add(self._now)
        return self._line


def nearest_tests(path: str) -> list[str]:
    """The test of the module's name and those beside it, or below the package, that name the module."""
    module = "rplctl." + path.removesuffix(".py").replace("/", ".")
    stem = Path(path).stem
    folder = ROOT / "tests" / Path(path).parent
    beside = sorted(folder.glob("test_*.py")) + (sorted(folder.parent.glob("test_*.py")) if "/" in path else [])
    named = [test for test in beside if test.stem == f"test_{stem}" or test.stem.startswith(f"test_{stem}_")]
    users = [test for test in beside if module in test.read_text() and test not in named]
    return [str(test.relative_to(ROOT)) for test in [*named, *users]]


class Workshop:
    """A copy of the repository, and children that run tests in it. Only this process may have it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns(".venv", ".git", ".*_cache", ".hypothesis", "node_modules")
        shutil.copytree(ROOT, folder, ignore=ignored, dirs_exist_ok=True)  # __pycache__, too: compiled kernels
        os.chdir(folder)
        sys.path[:] = [str(folder), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
        os.environ["PYTHONPATH"] = str(folder)
        for name in [name for name in sys.modules if name.split(".")[0] in ("rplctl", "tests")]:
            del sys.modules[name]
        for library in LIBRARIES:
            importlib.import_module(library)
        for name in ("rplctl.event.scan", "rplctl.event.net_change", "rplctl.target", "rplctl.schema.plan"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)  # of the copy, and below all subjects

    def run(
        self, arguments: Sequence[str], seconds: float, lines_of: Path | None = None
    ) -> tuple[bool, dict[str, Any]]:
        """Whether all passed in time; with `lines_of`, what a test passes through."""
        report = self.folder / "lines.json"
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            self._child([*arguments, *PLAIN, "-m", QUICK], report, lines_of)
        end = time.monotonic() + seconds
        while (done := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if done == (0, 0):
            os.waitpid(pid, 0)
            return False, {}
        return done[1] == 0, json.loads(report.read_text()) if lines_of and report.exists() else {}

    def _child(self, arguments: list[str], report: Path, lines_of: Path | None) -> None:
        silent = os.open(self.folder / "tests.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code = 3
        try:
            lines = _Lines(lines_of) if lines_of else None
            code = int(pytest.main(arguments, plugins=[lines] if lines else []))
            if lines:
                tests = {line: sorted(names) for line, names in lines.tests.items()}
                report.write_text(json.dumps({"tests": tests, "seconds": lines.seconds}))
        finally:
            os._exit(code)  # nothing of the parent's is to be undone here

    def survives(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> bool:
        file = self.folder / "rplctl" / mutant.path
        text = file.read_text()
        self._write(file, mutant.text)
        try:
            return self.run(tests, seconds)[0]
        finally:
            self._write(file, text)

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()  # one of the same second and size would pass for this text


def subjects(names: Sequence[str] = SUBJECTS) -> list[str]:
    places = [ROOT / "rplctl" / name for name in names]
    files = [file for place in places for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return [str(file.relative_to(ROOT / "rplctl")) for file in files if file.name != "__init__.py"]


def survivors(paths: Sequence[str], sample: int, seed: str, seconds: float) -> tuple[list[Mutant], int]:
    """The mutants that no quick test killed, and how many were tried: `sample` of each module, until the time is up."""
    end = time.monotonic() + seconds
    left: list[Mutant] = []
    tried = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        shop = Workshop(Path(folder))
        for path in paths:
            near = nearest_tests(path)
            passed, seen = shop.run(near, 600, Path(folder) / "rplctl" / path) if near else (False, {})
            if not passed:
                print(f"{path}: no quick test beside it, or one that fails: {' '.join(near)}", flush=True)
                continue
            found = mutants(path)
            for mutant in Random(f"{seed} {path}").sample(found, min(sample, len(found))):
                if time.monotonic() > end:
                    return left, tried
                through = seen["tests"].get(str(mutant.line), [])[:MOST_TESTS]
                most = SECONDS_AT_LEAST + 5 * sum(seen["seconds"][test] for test in through or seen["seconds"])
                tried += 1
                if shop.survives(mutant, through or near, most):
                    left.append(mutant)
                    print(f"SURVIVED {mutant}{'' if through else '  (no quick test passes)'}", flush=True)
    return left, tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=SUBJECTS, help="below rplctl/, a file or a folder")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each module")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=3600)
    given = parser.parse_args()
    os.nice(10)
    left, tried = survivors(subjects(given.modules), given.sample, given.seed, given.seconds)
    print(f"{tried} mutants, {tried - len(left)} killed, {len(left)} survived")


if __name__ == "__main__":
    main()

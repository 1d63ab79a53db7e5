"""tests/ mirrors rplctl/: who opens a module finds its test by its name, or here why it has none."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.house.code import MODULES, PACKAGE, ROOT, imports, is_empty, loaded_by_name, name_of, nothing_runs, short

# Parts that have no test of their own name → why. A part below the folder is tested through the tests of that folder,
# which must reach it; the longest folder counts.
TESTED_TOGETHER = {
    "": "the records and files that every layer uses are tested by their names; target_url with the options",
    "applied_log/": "files, writer, record and end are one log: what was written is read, purged and read again",
    "applier/": "a batch goes through all of them: from the relay log to the rows of a target",
    "cli/": "colour and plain values are seen in what a command prints",
    "command/": "commands are called as an operator calls them, several in one test",
    "commit/": "participants are one contract (test_participants); ids and recovery are seen where two phases are",
    "data_source/": "what a log becomes shows models out of table maps and rows as JSON (test_walk)",
    "event/": "kernels and their parts are tested on whole logs, through scan, values, groups and payload",
    "front/": "a statement passes through all of them; clients of several makes ask (test_front)",
    "handshake/": "sign-in and TLS are tested against a server, through the connection",
    "relay_log/": "file and header are tested through reader, writer and locate",
    "repository/": "every record is tested through each kind of repository (test_contract, test_table, test_file)",
    "schema/": "lexer, parser and model are tested by what a statement becomes (test_parse, test_plan)",
    "source/": "sources are tested by the events they give (test_dump, test_binlog_folder)",
    "verify/": "its parts meet in tests/command/test_verify.py, on real servers; here what needs none of them",
    "target/": "what each kind of target promises is one contract (test_contract) that runs on all of them",
}


def has_test_of_its_name(path: Path) -> bool:
    """tests/a/test_b.py or tests/a/test_b_….py for rplctl/a/b.py; a package's own is the folder's name."""
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    tests = (ROOT / "tests" / path.relative_to(PACKAGE).parent).glob("test_*.py")
    return any(test.stem == f"test_{stem}" or test.stem.startswith(f"test_{stem}_") for test in tests)


@cache
def unnamed() -> list[Path]:
    """Modules that have no test of their name, though there is something to test."""
    modules = [path for path in MODULES if path.name != "__main__.py" and not has_test_of_its_name(path)]
    return [path for path in modules if not is_empty(path) and not nothing_runs(path)]


def together(path: Path) -> str:
    """The row of a module: the longest folder that it lies below."""
    return max((folder for folder in TESTED_TOGETHER if f"{short(path)}".startswith(folder)), key=len)


@cache
def reached_in(folder: Path) -> set[str]:
    """Modules below a folder that the tests below its mirror import, and those below it that these import in turn."""
    siblings = {name_of(module): module for module in MODULES if folder in module.parents}
    tests = ROOT / "tests" / folder.relative_to(PACKAGE)
    wanted = [
        name for test in tests.glob("test_*.py" if folder == PACKAGE else "**/test_*.py") for name in imports(test)
    ]
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in siblings and name not in found:
            found.add(name)
            wanted += imports(siblings[name]) | loaded_by_name(siblings[name])
    return found


@pytest.mark.long("It runs many tests again, for names of test modules alone.")
@pytest.mark.slow
@pytest.mark.parametrize("folder", TESTED_TOGETHER)
def test_a_module_without_a_test_of_its_name_is_reached_by_the_tests_beside_it(folder: str) -> None:
    rows = [path for path in unnamed() if together(path) == folder]
    assert [short(path) for path in rows if name_of(path) not in reached_in(PACKAGE / folder)] == []
    assert rows != [], "each of its modules has its own test: the row can go"


def test_most_modules_have_a_test_of_their_name() -> None:
    """It may rise: a module that gets its test lowers what is allowed here."""
    written = [path for path in MODULES if path.name != "__main__.py" and not nothing_runs(path) and not is_empty(path)]
    assert len(unnamed()) / len(written) <= 0.44

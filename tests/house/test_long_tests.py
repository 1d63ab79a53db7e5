"""A test that `make test` leaves out says which test there holds the same promise, or why what it tries is rare."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"tests/[\w/]+\.py(?:::test_\w+)?|\btest_\w+")


def _reasons(path: Path) -> Iterator[str]:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if ".long(" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "long":
            (reason,) = node.args
            yield ast.literal_eval(reason)


def test_a_long_tests_reason_is_a_sentence_and_names_tests_that_exist() -> None:
    for file in sorted(TESTS.rglob("test_*.py")):
        for reason in _reasons(file):
            _check(str(file.relative_to(TESTS.parent)), reason)


def _check(path: str, reason: str) -> None:
    assert len(reason.split()) >= 4, f"{path}: {reason}"
    for named in NAMED.findall(reason):
        file, _, test = named.rpartition("::") if "::" in named else ("", "", named)
        if named.endswith(".py"):
            file, test = named, ""
        text = (TESTS.parent / (file or path)).read_text()
        assert not test or f"def {test}(" in text, f"{path}: {test} does not exist"

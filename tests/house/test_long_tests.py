"""A test that `make test` leaves out says which test there holds the same promise, or why what it tries is rare."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"tests/[\w/]+\.py(?:::test_\w+)?|\btest_\w+")


def _reasons(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "long":
            (reason,) = node.args
            yield ast.literal_eval(reason)


REASONS = {
    (str(path.relative_to(TESTS.parent)), reason) for path in TESTS.rglob("test_*.py") for reason in _reasons(path)
}


@pytest.mark.parametrize(("path", "reason"), sorted(REASONS))
def test_a_long_tests_reason_is_a_sentence_and_names_tests_that_exist(path: str, reason: str) -> None:
    assert len(reason.split()) >= 4, reason
    for named in NAMED.findall(reason):
        file, _, test = named.rpartition("::") if "::" in named else ("", "", named)
        if named.endswith(".py"):
            file, test = named, ""
        text = (TESTS.parent / (file or path)).read_text()
        assert not test or f"def {test}(" in text, f"{path}: {test} does not exist"

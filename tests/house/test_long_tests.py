"""A test that `make test` leaves out says which test there holds the same promise, or why what it tries is rare.

Invariant: a test that such a reason names has a case in `make test`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
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
        assert not test or test not in _all_long(file or path), f"{path}: {test} is not in make test"


@cache
def _all_long(path: str) -> frozenset[str]:
    """The tests of the file none of whose cases is in make test, as far as their own marks say."""
    functions = [
        node for node in ast.parse((TESTS.parent / path).read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    return frozenset(node.name for node in functions if any(map(_is_whole, node.decorator_list)))


def _is_whole(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith(".long") and not mark.keywords

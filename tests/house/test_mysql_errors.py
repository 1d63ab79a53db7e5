"""Error numbers of MySQL are written once, in rplctl/mysql_errors.py, and its sentences once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import TypeGuard

from rplctl import mysql_errors
from tests.house.code import MODULES, short, tree

OTHERS = [path for path in MODULES if path.stem != "mysql_errors"]
NUMBERS = {value: name for name, value in vars(mysql_errors).items() if isinstance(value, int)}
SENTENCES = [value for name, value in vars(mysql_errors).items() if isinstance(value, str) and name.endswith("_TEXT")]
TWO_NAMES = {4091}  # with MySQL and with MariaDB


def bare(module: ast.Module) -> set[tuple[int, object]]:
    """(line, number) of what is an error number, or is said to be one."""
    found: set[tuple[int, object]] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg in ("errno", "last_errno"):
            found |= {(n.lineno, n.value) for n in ast.walk(node.value) if is_number(n) and n.value}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Note"):
            found |= {(n.lineno, n.value) for n in node.args[:1] if is_number(n) and n.value}
        elif is_number(node) and node.value in NUMBERS:
            found.add((node.lineno, node.value))
    return found


def is_number(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and type(node.value) is int


def test_no_module_writes_an_error_number() -> None:
    assert [(short(path), *seen) for path in OTHERS for seen in bare(tree(path))] == []


def test_a_written_number_is_seen() -> None:
    code = "raise E('x', errno=1 if y else 9999)\nNote(9998, 'x')\nif error.errno == 1146: pass\nNote(0, 'x')\n"
    assert bare(ast.parse(code)) == {(1, 1), (1, 9999), (2, 9998), (3, 1146)}


def test_each_number_has_one_name_and_each_name_is_used() -> None:
    names = [(name, value) for name, value in vars(mysql_errors).items() if isinstance(value, int)]
    assert {number for number, count in Counter(v for _, v in names).items() if count > 1} == TWO_NAMES
    text = "".join(path.read_text() for path in OTHERS)
    own = ast.parse(Path(mysql_errors.__file__).read_text())
    in_sets = {node.id for node in ast.walk(own) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert [name for name, _ in names if f"er.{name}" not in text and name not in in_sets] == []


def test_a_sentence_is_written_once() -> None:
    text = "".join(path.read_text() for path in OTHERS)
    assert [sentence for sentence in SENTENCES if sentence in text] == []
    assert "This operation cannot be performed with" not in text

"""Nobody makes SQL of foreign words: what mypy cannot see of the type `Sql` is held here (design D27)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.code import MODULES, PACKAGE, imports, nodes, short

MAKER = "sql_text.py"
PROVE = {"schema/definition.py", "target/mysql/statement.py", "verify/target_side.py"}  # who reads texts by our lexer
HELD = ("source/", "clone/", "verify/")  # where a driver is given nothing but `Sql`
OF_DRIVERS = {"execute", "query"}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes(path):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            yield name, node


def is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_only_one_module_makes_sql() -> None:
    found = {short(path) for path in MODULES for name, node in calls(path) if name == "Sql"}
    found |= {
        short(path)
        for path in MODULES
        for name, node in calls(path)
        if name == "cast" and "Sql" in ast.unparse(node.args[0])
    }
    assert found == {MAKER}
    assert {short(path) for path in MODULES for name, _ in calls(path) if name == "proven_statement"} == PROVE
    ignored = [short(path) for path in MODULES if "Sql" in "".join(_ignored(path))]
    assert ignored == []


def _ignored(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if "type: ignore" in line]


def test_templates_are_written_in_the_source_code() -> None:
    foreign = [
        f"{short(path)}:{node.lineno}"
        for path in MODULES
        for name, node in calls(path)
        if f"rplctl.sql_text.{name}" in imports(path)
        if name in ("written", "joined") and not is_constant(node.args[0])
    ]
    assert foreign == []


def test_drivers_get_nothing_but_sql() -> None:
    plain = [
        f"{short(path)}:{node.lineno}"
        for path in MODULES
        if short(path).startswith(HELD)
        for name, node in calls(path)
        if name in OF_DRIVERS and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr | ast.BinOp)
    ]
    assert plain == []
    assert all((PACKAGE / folder).is_dir() for folder in HELD)

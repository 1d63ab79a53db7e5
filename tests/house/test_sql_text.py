"""Nobody makes SQL of foreign words: what mypy cannot see of the type `Sql` is held here (design D27)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.code import MODULES, PACKAGE, imports, nodes, short, tree

MAKER = "sql_text.py"
PROVE = {"schema/definition.py", "target/mysql/statement.py", "verify/target_side.py"}  # who reads texts by our lexer
HELD = ("source/", "clone/", "verify/", "target/mysql/")  # where a driver is given nothing but `Sql`
OF_DRIVERS = {"execute", "query"}
RUNS = "sql_run.py"  # the one place that gives text to SQLAlchemy
SPEAK = {"target/mysql/connection.py", "target/mysql/bulk_execute.py"}  # commands of MySQL's protocol
EXECUTES = "target/mysql/statement.py"  # the source's own statements
DRIVERS = {"sqlite3.Connection", "duckdb.DuckDBPyConnection", "psycopg.Connection", "sqlite3.Cursor", "psycopg.Cursor"}
# makes connections, or keeps a file that no target is
OPENS = {
    "target/sqlite/driver.py", "target/sqlite/target.py", "target/duckdb/driver.py", "target/postgresql/driver.py",
    "target/postgresql/connection.py",
}  # fmt: skip


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes(path):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            yield name, node


def is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def test_only_one_module_makes_sql() -> None:
    found = {short(path) for path in MODULES for name, node in calls(path) if name in ("Sql", "SqlBytes")}
    found |= {
        short(path)
        for path in MODULES
        for name, node in calls(path)
        if name == "cast" and "Sql" in ast.unparse(node.args[0])
    }
    assert found == {MAKER}
    assert {short(path) for path in MODULES for name, _ in calls(path) if name == "proven_statement"} == PROVE
    assert {short(path) for path in MODULES for name, _ in calls(path) if name == "statement_of_source"} == {EXECUTES}
    ignored = [short(path) for path in MODULES if "Sql" in "".join(_ignored(path))]
    assert ignored == []


def _ignored(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if "type: ignore" in line]


def is_written_here(node: ast.expr, path: Path) -> bool:
    """A text of the module itself, in which only other texts of it are."""
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        return all(is_constant(part) or is_written_here(part, path) for part in parts)
    if isinstance(node, ast.Name):
        found = [a.value for a in tree(path).body if isinstance(a, ast.Assign | ast.AnnAssign) and node.id in names(a)]
        return len(found) == 1 and found[0] is not None and is_constant(found[0])
    return is_constant(node)


def names(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_templates_are_written_in_the_source_code() -> None:
    makers = ("written", "joined", "written_bytes", "joined_bytes")
    foreign = []
    for path in MODULES:
        if not any(f"rplctl.sql_text.{name}" in imports(path) for name in makers):
            continue
        for name, node in calls(path):
            template = node.args[0] if name in makers else None
            if name == "partial" and ast.unparse(node.args[0]) in makers:
                template = node.args[1]
            if template is not None and not is_written_here(template, path):
                foreign.append(f"{short(path)}:{node.lineno}")
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


def test_mysql_targets_speak_to_the_typed_cursor() -> None:
    """`MysqlCursor` takes nothing but SQL of ours; PyMySQL's other ways to send a text have no type."""
    untyped = {"query", "_execute_command", "executemany", "callproc", "mogrify", "escape"}
    found = {
        short(path)
        for path in MODULES
        if short(path).startswith("target/mysql/")
        for name, node in calls(path)
        if name in untyped and isinstance(node.func, ast.Attribute)
    }
    assert found == SPEAK


def test_one_place_gives_text_to_sqlalchemy() -> None:
    found = {
        short(path)
        for path in MODULES
        for name, node in calls(path)
        if name == "exec_driver_sql" or (name == "text" and "sqlalchemy.text" in imports(path) and node.args)
    }
    assert found == {RUNS}


def test_targets_speak_to_typed_drivers_only() -> None:
    """What a driver's own class is named for, outside of a target's `driver`, could take any text."""
    found = {
        short(path)
        for path in MODULES
        if short(path).startswith("target/")
        for node in nodes(path)
        if isinstance(node, ast.arg | ast.AnnAssign | ast.FunctionDef)
        for annotation in [node.returns if isinstance(node, ast.FunctionDef) else node.annotation]
        if annotation is not None and ast.unparse(annotation).partition("[")[0] in DRIVERS
    }
    assert found <= OPENS, found - OPENS

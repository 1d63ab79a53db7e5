"""A record with several fields of one type is built by keyword: by position, a field that is inserted moves all that
come after it, and no type checker sees it. (A folder of binary logs could not be read because of that.)

The rule holds for our own dataclasses and NamedTuples with more than two fields, of which two have one type.
"""

from __future__ import annotations

import ast
from collections import Counter

from tests.house.code import MODULES, nodes, short

# Records of fields of one type that a codec fills in the order of the fields, by one starred argument.
BY_CODEC = {"BulkCounts", "BulkRows", "Part", "WrittenFile"}
# Records that a codec or a base record fills by one starred argument, with further arguments by keyword.
FROM_FIELDS = {"AlterDatabase", "EventHeader", "ExecuteLoadQuery", "Owner", "RowsEvents", "State", "TaskWork"}
# Records whose first field alone is given by position (Config, DdlContext), and tuples, which are also unpacked.
BY_FIRST = {"Config", "DdlContext", "Definition", "ServerObject", "Token"}


def fields_of(record: ast.ClassDef) -> list[str]:
    """The types of the fields that a caller gives."""
    return [
        ast.unparse(part.annotation)
        for part in record.body
        if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part.annotation)
    ]


def is_record(record: ast.ClassDef) -> bool:
    kinds = [*map(ast.unparse, record.decorator_list), *map(ast.unparse, record.bases)]
    return any(kind.startswith(("dataclass", "dataclasses.dataclass", "NamedTuple")) for kind in kinds)


def is_keyword_only(record: ast.ClassDef) -> bool:
    return any("kw_only=True" in ast.unparse(decorator) for decorator in record.decorator_list)


def records_alike() -> list[ast.ClassDef]:
    """The records with more than two fields, of which two have one type."""
    classes = [node for path in MODULES for node in nodes(path) if isinstance(node, ast.ClassDef) and is_record(node)]
    return [record for record in classes if len(types := fields_of(record)) > 2 and max(Counter(types).values()) > 1]


def test_no_record_with_fields_of_one_type_is_built_by_position() -> None:
    alike = {record.name for record in records_alike()}
    found = [
        f"{short(path)}:{node.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and len(node.args) > 2
        if (name := ast.unparse(node.func)).rpartition(".")[2] in alike and not name.startswith("typer.")
    ]
    assert found == []


def test_records_with_fields_of_one_type_take_keywords_only() -> None:
    others = {record.name for record in records_alike() if not is_keyword_only(record)}
    assert others == BY_CODEC | FROM_FIELDS | BY_FIRST

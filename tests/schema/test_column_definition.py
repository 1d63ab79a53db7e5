"""REFERENCES in a column's definition: a foreign key where the source obeys it, and nothing where it does not."""

from __future__ import annotations

import pytest

from rplctl.schema.context import DdlContext
from rplctl.schema.parse import parse_create_table


@pytest.mark.parametrize(
    ("version", "is_obeyed"),
    [("5.7.21", False), ("8.0.28", False), ("8.4.6", False), ("9.7.4", True), ("10.11.19-MariaDB", True), ("", True)],
)
def test_references_of_a_column_is_a_foreign_key_where_the_source_obeys_it(version: str, is_obeyed: bool) -> None:
    sql = "CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE NOT NULL)"
    model = parse_create_table(sql, "d", DdlContext(server_version=version))
    assert bool(model.foreign_keys) is is_obeyed and not model.columns[1].nullable

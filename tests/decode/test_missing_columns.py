"""What a MINIMAL row image leaves out: defaults are filled in, the rest stops with the column's name."""

from __future__ import annotations

import pytest

from rplctl.decode.missing_columns import check_generated, defaults_of
from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel, load_table


def table(columns: str) -> TableModel:
    context = DdlContext(server_version="10.11.19-MariaDB")
    return load_table(
        f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", DatabaseModel(name="db", charset="utf8mb4"), context
    )


def test_an_insert_gets_the_defaults_of_the_columns_it_does_not_name() -> None:
    model = table("a INT DEFAULT 5, b VARCHAR(9), c INT NOT NULL, d ENUM('p','q') NOT NULL, e BINARY(3) DEFAULT 'x'")
    assert defaults_of(model, (0, 2)) == {1: 5, 3: 0, 4: "p", 5: b"x\0\0"}


@pytest.mark.parametrize("columns", ["v TEXT AS (concat(id,'x')) VIRTUAL", "v DOUBLE DEFAULT (rand())"])
def test_an_insert_without_a_value_that_only_the_source_knows_stops(columns: str) -> None:
    with pytest.raises(RplError) as caught:
        defaults_of(table(columns), (0,))
    assert caught.value.errno == 1364
    assert (
        "row image of db.t, which lacks column 'v'" in caught.value.message
        and "binlog_row_image=FULL" in caught.value.hint
    )


def test_an_update_stops_only_when_a_generated_column_hangs_on_what_it_changed() -> None:
    model = table("`a b` TEXT, c INT, v TEXT AS (upper(`a b`)) VIRTUAL, w INT AS (c+1) VIRTUAL")
    check_generated(model, (2,))  # w is computed by the target
    check_generated(model, (1, 3))  # v is logged
    with pytest.raises(RplError, match="column 'v'"):
        check_generated(model, (1,))

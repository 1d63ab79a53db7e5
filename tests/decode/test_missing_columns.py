"""What a MINIMAL row image leaves out: defaults are filled in, the rest stops with the column's name."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.decode.missing_columns import check_generated, defaults_of, without_session_values
from rplctl.errors import RplError
from rplctl.event.images import NOT_IN_IMAGE, Images
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


def images(before: list[int], after: list[int]) -> Images:
    count = max(before + after) + 1
    cells = np.arange(2 * count, dtype=np.int64).reshape(count, 2)
    return Images(
        data=np.zeros(0, np.uint8),
        cell_start=cells,
        cell_length=np.ones((count, 2), np.int32),
        is_diff=np.zeros((0, 2), np.bool_),
        ops=np.ones(len(before), np.uint8),
        before=np.array(before, np.int64),
        after=np.array(after, np.int64),
        event_of_change=np.zeros(len(before), np.int32),
    )


@pytest.mark.parametrize("key", ["", ", UNIQUE (day)"])
def test_only_before_images_without_a_key_lack_what_another_session_sees_otherwise(key: str) -> None:
    database = DatabaseModel(name="db", charset="utf8mb4")
    columns = f"(c TIMESTAMP NOT NULL, day DATE AS (date(c)) VIRTUAL{key})"
    model = load_table(f"CREATE TABLE t {columns}", database, DdlContext(server_version="10.11.19-MariaDB"))
    inserted, changed = images([-1, -1], [0, 1]), images([0, -1, 3], [1, 2, -1])
    assert without_session_values(inserted, model, "sqlite") is inserted
    assert without_session_values(changed, model, "mysql") is changed
    assert without_session_values(changed, table("c TIMESTAMP, day DATE AS (date(c))"), "sqlite") is changed
    lacks = without_session_values(changed, model, "sqlite").cell_start == NOT_IN_IMAGE
    assert lacks.tolist() == [[False, True], [False, False], [False, False], [False, True]]
    assert changed.cell_start.min() == 0

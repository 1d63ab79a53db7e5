"""Every type that a recorded log holds is in Spark's types what the log's own values are."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from rplctl.data_source.column_type import spark_type
from rplctl.data_source.options import QueryOptions
from rplctl.data_source.walk import LogWalk
from rplctl.decode.arrow import column_array
from rplctl.decode.changes import changes_of
from rplctl.event.values import decode_column
from rplctl.schema.model import Column
from tests.kit.recorded_state import unpacked_log

CASES = ["ma1011-torture-row", "my97-torture-row", "ma1011-types", "my97-json", "my97-torture-compress-l1"]


@pytest.mark.long("The small logs stay.", keeps=r"^(?!.*torture-row$)")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_value_in_a_type_of_sparks_is_the_value_that_the_server_prints(case: str, tmp_path: Path) -> None:
    unpacked_log(case, tmp_path)
    types = Counter[str]()
    for piece in LogWalk(QueryOptions.parse({"path": str(tmp_path)})).to():
        for part in changes_of(piece).tables:
            images = part.rows.images
            for rows in (images.before, images.after):
                for number, (column, fmt) in enumerate(zip(part.rows.model.columns, part.rows.formats, strict=False)):
                    wanted = arrow_type(column)
                    array = column_array(images, rows, number, fmt, column, wanted, zero_null=True)
                    assert array.type == wanted
                    array.validate(full=True)
                    values = decode_column(images, rows, number, fmt)
                    for found, value in zip(array.to_pylist(), values, strict=True):
                        assert is_same(found, value, column.type), (part.rows.model.name, column, found, value)
                        types[column.type] += value is not None
    assert len(types) >= (33 if "torture-row" in case else 1), types


def arrow_type(column: Column) -> pa.DataType:
    return to_arrow_schema(StructType([StructField("c", spark_type(column))]), timezone="UTC").types[0]


def is_same(found: Any, value: Any, kind: str) -> bool:
    if value is None:
        return found is None
    if found is None:  # zero_dates=null
        return kind in ("date", "datetime", "timestamp") and Counter(value)["0"] >= 2
    if isinstance(found, bytes):
        return found == bytes(value)
    if isinstance(found, Decimal):
        return found == Decimal(value)
    if isinstance(found, dt.timedelta):
        return found == duration(value)
    if isinstance(found, dt.datetime):
        return found.replace(tzinfo=None) == dt.datetime.fromisoformat(value)
    if isinstance(found, dt.date):
        return found == dt.date.fromisoformat(value)
    return bool(found == value)


def duration(text: str) -> dt.timedelta:
    hours, minutes, seconds = text.lstrip("-").split(":")
    size = dt.timedelta(hours=int(hours), minutes=int(minutes)) + dt.timedelta(
        microseconds=int(Decimal(seconds) * 1000000)
    )
    return -size if text.startswith("-") else size

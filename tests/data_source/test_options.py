"""An option that cannot be read says which it is and what it wants."""

from __future__ import annotations

import pytest

from rplctl.data_source.options import QueryOptions
from rplctl.errors import UsageError


def test_options_are_read_whatever_their_case() -> None:
    found = QueryOptions.parse(
        {"PATH": "file:///logs", "Table": "`a.b`.`c``d`", "start": "b.000002:4", "Partition_Bytes": "9"}
    )
    assert (str(found.path), found.table, str(found.start), found.partition_bytes) == (
        "/logs",
        ("a.b", "c`d"),
        "b.000002:4",
        9,
    )
    assert QueryOptions.parse({"path": "x", "start_time": "2026-01-01"}).start_time == 1767225600.0


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("tabel", "a.b", "no option tabel"),
        ("table", "orders", "option table: 'orders'"),
        ("start", "binlog", "write FILE:POS"),
        ("start_gtid", "0-1", "option start_gtid"),
        ("end_time", "yesterday", "option end_time"),
        ("partition_bytes", "0", "option partition_bytes"),
        ("zero_dates", "string", "not one of error, null"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(name: str, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        QueryOptions.parse({"path": "x", name: text})


def test_the_path_must_be_given() -> None:
    with pytest.raises(UsageError, match="needs the option path"):
        QueryOptions.parse({})

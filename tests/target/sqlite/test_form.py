"""What SQLite cannot hold as it is: integers past 2^63-1, and nothing else is touched."""

from __future__ import annotations

import pytest

from rplctl.target.registry import value_form
from rplctl.target.sqlite.ddl_type import LARGEST_INTEGER
from rplctl.target.sqlite.form import storable


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        (
            [None, 1, LARGEST_INTEGER, LARGEST_INTEGER + 1, None],
            [None, 1, LARGEST_INTEGER, "9223372036854775808", None],
        ),
        ([-(2**63), 2**64 - 1], [-(2**63), "18446744073709551615"]),
        ([None, "a", ""], [None, "a", ""]),
        ([b"\x00", None], [b"\x00", None]),
        ([1.5, float(2**70)], [1.5, float(2**70)]),
        ([None, None], [None, None]),
        ([], []),
    ],
)
def test_only_integers_out_of_range_become_text(values: list[object], stored: list[object]) -> None:
    assert storable(values) == stored  # type: ignore[arg-type]


def test_each_kind_of_target_has_its_form() -> None:
    assert value_form("sqlite").stored([2**63]) == [str(2**63)]
    assert value_form("mysql").stored([2**63]) == [2**63]

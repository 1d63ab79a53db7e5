"""The numbers that mysqld_exporter makes of a column (what is printed: tests/cli/test_metrics.py)."""

from __future__ import annotations

import pytest

from rplctl.command.metrics import as_number


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("Yes", 1), ("ON", 1), ("No", 0), ("Connecting", 0), ("disabled", 0), (0, 0), (4711, 4711), ("1.5", 1.5),
        ("-3", -3), (None, None), ("", None), ("mariadb-bin.000003", None), ("db1", None), ("1_000", None),
        ("261124 00:05:00", None), ("nan", None), ("10.0.0.1", None),
    ],
)  # fmt: skip
def test_a_column_is_a_number_by_the_exporters_rules(column: object, value: float | None) -> None:
    assert as_number(column) == value

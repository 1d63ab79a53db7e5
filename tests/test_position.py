"""Positions: ordered by log number then offset, 64-bit, and never from a name that could be a path."""

from __future__ import annotations

import pytest

from rplctl.errors import UsageError
from rplctl.position import BinlogPosition, RelayLogPosition, is_log_name, log_number, numbered_log_name


def test_order_is_by_number_not_by_text() -> None:
    nine, ten = BinlogPosition("bin.999999", 900), BinlogPosition("bin.1000000", 4)
    assert nine.is_before(ten)
    assert not ten.is_before(nine)
    assert BinlogPosition("", 4).is_before(nine)
    assert not nine.is_before(nine)


def test_positions_past_four_gigabytes_are_kept() -> None:
    text = f"bin.000001:{2**33}"
    assert str(BinlogPosition.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "bin.000001", "bin.000001:", "bin:4", "../x.000001:4", "a\nb.000001:4", "b.000001:-4"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        RelayLogPosition.parse(text)


@pytest.mark.parametrize(
    ("name", "good"),
    [("bin.000001", True), ("a b.7", True), ("/etc/x.000001", False), ("x", False), ("x.\x0001", False)],
)
def test_log_names_have_a_number_and_no_folder(name: str, good: bool) -> None:
    assert is_log_name(name) is good


def test_numbers_go_past_six_digits() -> None:
    assert numbered_log_name("relay-bin", 999_999) == "relay-bin.999999"
    assert numbered_log_name("relay-bin", 1_000_000) == "relay-bin.1000000"
    assert log_number("relay-bin.1000000") == 1_000_000

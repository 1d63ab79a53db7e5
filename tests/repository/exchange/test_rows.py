"""Rows of MySQL's tables as its client prints them: both layouts, several channels, old versions, damage."""

from __future__ import annotations

import pytest

from rplctl.errors import UsageError
from rplctl.repository.exchange.rows import import_rows, read_rows

MASTER = "Number_of_lines\tMaster_log_name\tMaster_log_pos\tHost\tPort\tEnabled_ssl\tTls_ciphersuites\tChannel_name\n"
RELAY = "Number_of_lines\tRelay_log_name\tRelay_log_pos\tMaster_log_name\tMaster_log_pos\tChannel_name\n"


def master(host: str, channel: str) -> str:
    return f"33\tb.000002\t4\t{host}\t3307\t0\tNULL\t{channel}\n"


def relay(position: int, channel: str) -> str:
    return f"14\t./relay-bin.000002\t369\tb.000001\t{position}\t{channel}\n"


def test_the_channels_own_rows_are_taken() -> None:
    text = MASTER + master("db1", "") + master("db2", "East") + RELAY + relay(100, "") + relay(200, "East")
    info, executed = import_rows(text, "east")
    assert (info.host, info.port, info.enabled_ssl, info.tls_ciphersuites) == ("db2", 3307, False, None)
    assert (executed.exec_position.log_pos, executed.relay_log_name) == (200, "relay-bin.000002")
    assert info.channel_name == executed.channel_name == "east"


def test_the_only_row_is_taken_under_any_name() -> None:
    info, _ = import_rows(MASTER + master("db1", "") + RELAY + relay(100, ""), "east")
    assert (info.host, info.channel_name) == ("db1", "east")


def test_several_rows_of_other_channels_are_not_guessed() -> None:
    text = MASTER + master("db1", "a") + master("db2", "b") + RELAY + relay(1, "a")
    with pytest.raises(UsageError, match="2 rows of slave_master_info"):
        import_rows(text, "c")


def test_a_value_that_cannot_be_is_named_with_its_column() -> None:
    with pytest.raises(UsageError, match="column Master_log_pos: 'x' is not a number") as error:
        import_rows(MASTER + master("db1", "") + RELAY + relay(1, "").replace("\t1\t", "\tx\t"), "")
    assert error.value.errno == 1872


def test_the_vertical_layout_gives_the_same_rows() -> None:
    text = "****** 1. row ******\n     Number_of_lines: 33\n  Host: db1\n Tls_version: \n"
    assert list(read_rows(text)) == [{"number_of_lines": "33", "host": "db1", "tls_version": ""}]

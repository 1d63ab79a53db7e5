"""What a source keeps, and when it purges what is read next; and its clock."""

from __future__ import annotations

import pytest

from rplctl.position import BinlogPosition
from rplctl.source.clock import Clock, clock_of
from rplctl.source.keeps import Kept, bytes_written, purge_at

LOGS = {"b.000009": 1000, "b.000010": 1000, "b.000011": 400}


def kept(at: float = 10_000.0, logs: dict[str, int] = LOGS, clock: float = 0.0, **variables: str) -> Kept:
    return Kept(at, Clock(clock, 0.01), variables, logs)


def test_a_clock_is_asked_in_the_middle_of_the_round_trip() -> None:
    found = clock_of(100.0, 105.25, 100.5)
    assert (found.difference, found.error) == (5.0, 0.25)
    assert clock_of(100.0, 100.1, 99.0).error == 0.0, "ours was set back meanwhile"


@pytest.mark.parametrize(
    ("variables", "seconds", "size"),
    [
        ({"binlog_expire_logs_seconds": "3600", "expire_logs_days": "0"}, 3600, 0),
        ({"expire_logs_days": "7"}, 604800, 0),  # MySQL 5.7, MariaDB before 10.6
        ({"expire_logs_days": "0.500000", "max_binlog_total_size": "5000"}, 43200, 5000),  # MariaDB 11.4
        ({"binlog_expire_logs_seconds": "3600", "binlog_expire_logs_auto_purge": "OFF"}, 0, 0),  # MySQL 8
        ({"binlog_space_limit": "7", "expire_logs_days": "0"}, 0, 7),  # Percona
        ({}, 0, 0),
    ],
)
def test_how_long_and_how_much_each_kind_of_server_keeps(
    variables: dict[str, str], seconds: float, size: float
) -> None:
    found = Kept(0.0, Clock(0.0, 0.0), variables, LOGS)
    assert (found.keeps_s, found.keeps_bytes) == (seconds, size)


def test_a_log_is_purged_when_it_is_older_than_the_source_keeps_never_the_one_that_it_writes() -> None:
    source = kept(binlog_expire_logs_seconds="3600", clock=50.0)
    assert purge_at(source, BinlogPosition("b.000010", 4), 9000.0, 0.0) == 9000.0 - 50.0 + 3600
    assert purge_at(source, BinlogPosition("b.000011", 4), 9000.0, 0.0) is None
    assert purge_at(source, BinlogPosition("b.000008", 4), 9000.0, 0.0) is None, "it is purged: that is said elsewhere"
    assert purge_at(kept(), BinlogPosition("b.000010", 4), 9000.0, 9.0) is None, "it keeps all"
    assert purge_at(source, BinlogPosition("b.000010", 4), 0.0, 0.0) is None, "nobody knows when it was read"


def test_by_size_it_is_purged_when_what_is_written_fills_what_is_kept() -> None:
    source = kept(max_binlog_total_size="5000")
    assert purge_at(source, BinlogPosition("b.000010", 4), 0.0, 10.0) == 10_000 + (5000 - 1400) / 10
    assert purge_at(source, BinlogPosition("b.000010", 4), 0.0, 0.0) is None, "the rate is not known yet"
    both = kept(max_binlog_total_size="5000", binlog_expire_logs_seconds="100")
    assert purge_at(both, BinlogPosition("b.000010", 4), 9950.0, 10.0) == 10_050, "what comes first"


def test_what_was_written_between_two_looks() -> None:
    later = {"b.000010": 1000, "b.000011": 700, "b.000012": 50}
    assert bytes_written(kept(), kept(logs=later)) == 350
    assert bytes_written(kept(), kept(logs={"b.000012": 50})) is None, "purged meanwhile"
    assert bytes_written(kept(), kept(logs={"b.000011": 100})) is None, "begun anew"

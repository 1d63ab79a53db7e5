"""Versions, time zones and modes that a statement's meaning hangs on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rplctl.schema.context import PAD_CHAR_TO_FULL_LENGTH, STRICT_ALL_TABLES, STRICT_TRANS_TABLES, DdlContext


@pytest.mark.parametrize(
    ("version", "number", "is_mariadb"),
    [
        ("10.11.19-MariaDB-log", 101119, True),
        ("5.5.5-10.5.2-mariadb", 100502, True),
        ("8.0.40", 80040, False),
        ("9.7", 90700, False),
        ("x", 80000, False),
    ],
)
def test_version(version: str, number: int, is_mariadb: bool) -> None:
    context = DdlContext(server_version=version)
    assert (context.version_number, context.is_mariadb) == (number, is_mariadb)


def test_modes() -> None:
    assert not DdlContext(sql_mode=0).is_strict and not DdlContext(sql_mode=0).pads_char
    assert DdlContext(sql_mode=STRICT_ALL_TABLES).is_strict and DdlContext(sql_mode=STRICT_TRANS_TABLES).is_strict
    assert (
        DdlContext(sql_mode=PAD_CHAR_TO_FULL_LENGTH).pads_char
        and not DdlContext(sql_mode=PAD_CHAR_TO_FULL_LENGTH).is_strict
    )


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("+00:00", timedelta(0)),
        ("utc", timedelta(0)),
        ("+05:30", timedelta(hours=5, minutes=30)),
        ("-9:15", -timedelta(hours=9, minutes=15)),
        ("SYSTEM", None),
        ("Europe/Berlin", None),
    ],
)
def test_a_fixed_distance_from_utc_or_none(zone: str, expected: timedelta | None) -> None:
    assert DdlContext(time_zone=zone).utc_offset() == expected


def test_now_is_the_events_time_in_the_sessions_zone() -> None:
    def shown(zone: str, *, in_utc: bool = False) -> str:
        moment = DdlContext(timestamp=1720000000, microseconds=25, time_zone=zone).now(in_utc=in_utc)
        return str(moment and moment.strftime("%H:%M:%S.%f"))

    assert shown("+00:00") == shown("-05:00", in_utc=True) == "09:46:40.000025"
    assert shown("-05:00") == "04:46:40.000025"
    assert shown("Europe/Berlin") == "11:46:40.000025"
    assert shown("SYSTEM") == shown("Nowhere/Else") == "None"


def test_timestamps_end_later_since_mariadb_11_5() -> None:
    ends = [DdlContext(server_version=v).timestamp_range[1] for v in ("11.4.9-MariaDB", "11.5.0-MariaDB", "12.0.0")]
    assert ends == ["2038-01-19 03:14:07", "2106-02-07 06:28:15", "2038-01-19 03:14:07"]


def test_names_are_folded_as_the_source_stores_them() -> None:
    assert DdlContext().fold_name("Ab") == "Ab"
    assert DdlContext(lower_case_table_names=1).fold_name("Ab") == "ab"

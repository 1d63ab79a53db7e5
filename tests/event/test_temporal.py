"""Temporal cells keep what a calendar would refuse: zero and partial dates, negative times, hours past a day."""

from __future__ import annotations

import datetime as dt
import random

import numpy as np
import pytest

from rplctl.event import temporal


def cells(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


def test_zero_and_partial_dates_stay() -> None:
    assert temporal.date_sheet(cells(0, 2024 << 9 | 2 << 5, 9999 << 9 | 12 << 5 | 31)).texts() == [
        "0000-00-00",
        "2024-02-00",
        "9999-12-31",
    ]


@pytest.mark.parametrize("digits", range(7))
def test_datetimes_with_every_number_of_digits(digits: int) -> None:
    width = (digits + 1) // 2
    micros = 123456 // 10 ** (6 - digits) * 10 ** (6 - digits)
    whole = (((2024 * 13 + 2) << 5 | 29) << 17) | 23 << 12 | 59 << 6 | 58
    stored = (whole + (1 << 39) << 8 * width) | micros // 10 ** (6 - 2 * width)
    fraction = f".{123456 // 10 ** (6 - digits):0{digits}d}" if digits else ""
    assert temporal.datetime2_sheet(cells(stored), digits).texts() == [f"2024-02-29 23:59:58{fraction}"]


def test_times_go_below_zero_and_past_a_day() -> None:
    def stored(sign: int, hour: int, minute: int, second: int, hundredths: int) -> int:
        return (1 << 31) + sign * ((hour << 12 | minute << 6 | second) << 8 | hundredths)

    values = [stored(1, 838, 59, 59, 99), stored(-1, 838, 59, 59, 99), stored(-1, 0, 0, 0, 1), stored(1, 7, 8, 9, 0)]
    expected = ["838:59:59.99", "-838:59:59.99", "-00:00:00.01", "07:08:09.00"]
    assert temporal.time2_sheet(cells(*values), 2).texts() == expected


def test_timestamps_are_utc_and_zero_is_no_date() -> None:
    rng = random.Random(2)
    seconds = [1, 2**31 - 1, 2**32 - 1] + [rng.randrange(1, 2**32) for _ in range(300)]
    expected = [dt.datetime.fromtimestamp(second, dt.UTC).strftime("%Y-%m-%d %H:%M:%S") for second in seconds]
    assert temporal.timestamp2_sheet(cells(*seconds), 0).texts() == expected
    assert temporal.timestamp2_sheet(cells(0), 0).texts() == ["0000-00-00 00:00:00"]
    assert temporal.timestamp2_sheet(cells(0, 1), 1).texts() == ["0000-00-00 00:00:00.0", "1970-01-01 00:00:00.0"]


def test_formats_before_mysql_5_6() -> None:
    days = temporal.old_datetime_sheet(cells(20240229123456, 0))
    assert days.texts() == ["2024-02-29 12:34:56", "0000-00-00 00:00:00"]
    times = temporal.old_time_sheet(cells(8385959, (1 << 24) - 8385959, 102))
    assert times.texts() == ["838:59:59", "-838:59:59", "00:01:02"]


def test_values_inside_json_have_six_digits() -> None:
    packed = ((((2024 * 13 + 2) << 5 | 29) << 17 | 1 << 12 | 2 << 6 | 3) << 24) + 5
    assert temporal.packed_datetime_text(packed) == "2024-02-29 01:02:03.000005"
    assert temporal.packed_date_text(packed) == "2024-02-29"
    assert temporal.packed_time_text(-((1 << 12 | 2 << 6 | 3) << 24)) == "-01:02:03.000000"

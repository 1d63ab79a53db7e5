"""The noted time zones of a source, and the zone of a relay log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from rplctl.channel import Channel
from rplctl.config import Config, check_value
from rplctl.errors import ConfigError
from rplctl.relay_log.purge import purge_all
from rplctl.source_zones import SourceZones
from rplctl.system_zone import SystemZone, offset_text, read_zone, zone_named

TOKYO, BERLIN = zone_named("+09:00"), zone_named("Europe/Berlin")


def test_zone_holds_from_its_relay_log_on(tmp_path: Path) -> None:
    channel, config = Channel("", tmp_path), Config(tmp_path)
    zones = SourceZones(channel, config)
    assert zones.at("relay-bin.000001") is None and zones.last is None
    zones.note("relay-bin.000003", TOKYO, "relay-bin.000002")
    zones.note("relay-bin.000007", BERLIN, "relay-bin.000003")
    found = [zones.at(f"relay-bin.{number:06d}") for number in (1, 3, 6, 7, 12)]
    assert found == [TOKYO, TOKYO, TOKYO, BERLIN, BERLIN]
    assert SourceZones(channel, config).last == BERLIN
    zones.note("relay-bin.000009", TOKYO, "relay-bin.000008")
    assert zones.at("relay-bin.000003") == BERLIN  # what no relay log needs any more is forgotten
    zones.note("relay-bin.000001", BERLIN, "relay-bin.000001")  # after a reset
    assert zones.at("relay-bin.000009") == BERLIN


@pytest.mark.parametrize("junk", [b"", b"{", b"[[1]]", b'[["relay-bin.000001", [["a", 1]]]]', b'[["x.1", []]]', b"7"])
def test_torn_file_of_zones_counts_for_nothing(junk: bytes, tmp_path: Path) -> None:
    zones = SourceZones(Channel("", tmp_path), Config(tmp_path))
    zones.note("relay-bin.000003", TOKYO, "relay-bin.000003")
    Channel("", tmp_path).source_zones_path.write_bytes(junk)
    assert zones.at("relay-bin.000003") is None


def test_zones_of_relay_logs_that_were_all_removed_do_not_count_for_new_ones_of_their_numbers(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    zones = SourceZones(channel, Config(tmp_path))
    zones.note("relay-bin.000001", TOKYO, "relay-bin.000001")
    zones.note("relay-bin.000009", BERLIN, "relay-bin.000001")
    purge_all(channel)
    assert zones.last is None and zones.at("relay-bin.000001") is None


def test_option_is_in_the_place_of_what_a_receiver_noted(tmp_path: Path) -> None:
    zones = SourceZones(Channel("", tmp_path), replace(Config(tmp_path), source_time_zone="Europe/Berlin"))
    zones.note("relay-bin.000003", TOKYO, "relay-bin.000003")
    assert zones.at("relay-bin.000003") == BERLIN
    with pytest.raises(ConfigError, match=r"\+hh:mm\|Area/City"):
        check_value("source_time_zone", "Europe/Nowhere", "here")


def test_zone_with_summer_time_has_the_distance_of_each_second() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    for second in (0, 1774746000 - 1, 1774746000, 1792890000 - 1, 1792890000, 2**31 - 1):
        assert BERLIN.offset_at(second) == datetime.fromtimestamp(second, UTC).astimezone(berlin).utcoffset()
    assert BERLIN.fixed is None and TOKYO.fixed == timedelta(hours=9)


def test_distance_that_a_server_refuses_as_a_time_zone_has_no_text() -> None:
    minutes = (-210, 0, 345, 780, 840, -780)
    found = [offset_text(timedelta(minutes=number)) for number in minutes]
    assert found == ["-03:30", "+00:00", "+05:45", "+13:00", "", ""]


@pytest.mark.parametrize("rows", [[], [(1, 0)], [(0, None)], [(0, "x")], [(0, 1 << 40)], [(0, 0)] * 2000])
def test_answer_that_is_no_time_zone_is_refused(rows: list[tuple[object, ...]]) -> None:
    with pytest.raises(ValueError, match=r"time zone|distance"):
        read_zone(lambda _: rows)


def test_zones_of_one_distance_are_equal_under_every_name() -> None:
    assert zone_named("Asia/Tokyo") == TOKYO == SystemZone(((0, 32400),))

"""When a repository writes and when it syncs, counted (WL#2775 REQ-3, REQ-5; Rpl_info_file, Rpl_info_table)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, event

from rplctl.channel import Channel
from rplctl.durable import sync_count
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from tests.repository.conftest import MASTER, RELAY, Target, config_of

LONG = pytest.mark.long(
    "SQLite's cases and one of each server stay; the others repeat them.",
    keeps=r"^(?!.*(mysql|mariadb|postgresql))|^mariadb$|mariadb-(10-2|5)$|postgresql-10-2$",
)


class Writes:
    """Counts INSERT and UPDATE statements of all engines it opens."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.count = 0

    def engine(self) -> Engine:
        engine = self.target.engine()
        event.listen(engine, "before_cursor_execute", self._count)
        return engine

    def _count(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        self.count += statement.startswith(("INSERT", "UPDATE"))


def moved(number: int) -> MasterInfo:
    return replace(MASTER, master_log_pos=1000 + number)


@pytest.mark.parametrize(("period", "syncs"), [(0, 0), (1, 20), (7, 2), (10, 2), (10_000, 0)])
def test_file_shows_every_event_at_once_and_syncs_each_period(
    period: int, syncs: int, channel: Channel, sqlite_target: Target
) -> None:
    config = config_of(channel.datadir, "FILE", sync_master_info=period)
    repository = open_master_info(config, channel, sqlite_target.engine)
    before = sync_count[channel.master_info_path.name]
    for number in range(20):
        repository.flush(moved(number), force=False)
        assert channel.master_info_path.read_text().split("\n")[2] == str(1000 + number), "`cat` sees it"
    assert sync_count[channel.master_info_path.name] - before == syncs


@pytest.mark.parametrize("period", [0, 10_000])
def test_a_forced_flush_syncs_whatever_the_period(period: int, channel: Channel, sqlite_target: Target) -> None:
    config = config_of(channel.datadir, "FILE", sync_master_info=period)
    repository = open_master_info(config, channel, sqlite_target.engine)
    before = sync_count[channel.master_info_path.name]
    repository.flush(MASTER, force=True)
    assert sync_count[channel.master_info_path.name] - before == 1


def test_a_forced_flush_begins_a_new_period(channel: Channel, sqlite_target: Target) -> None:
    config = config_of(channel.datadir, "FILE", sync_master_info=3)
    repository = open_master_info(config, channel, sqlite_target.engine)
    before = sync_count[channel.master_info_path.name]
    for force in (False, False, True, False, False):
        repository.flush(MASTER, force=force)
    assert sync_count[channel.master_info_path.name] - before == 1
    repository.flush(MASTER, force=False)
    assert sync_count[channel.master_info_path.name] - before == 2


def test_a_batch_counts_as_its_events(channel: Channel, sqlite_target: Target) -> None:
    config = config_of(channel.datadir, "FILE", sync_master_info=1000)
    repository = open_master_info(config, channel, sqlite_target.engine)
    before = sync_count[channel.master_info_path.name]
    repository.flush(MASTER, force=False, events=999)
    assert sync_count[channel.master_info_path.name] == before
    repository.flush(MASTER, force=False, events=1)
    assert sync_count[channel.master_info_path.name] - before == 1


@LONG
@pytest.mark.parametrize(("period", "expected"), [(0, 0), (1, 20), (7, 2), (10, 2), (10_000, 0)])
def test_table_writes_nothing_before_the_period_is_reached(
    period: int, expected: int, channel: Channel, target: Target
) -> None:
    create_tables(target.engine())
    writes = Writes(target)
    config = config_of(channel.datadir, "TABLE", sync_master_info=period)
    repository = open_master_info(config, channel, writes.engine)
    repository.flush(moved(0), force=True)
    writes.count = 0
    for number in range(20):
        repository.flush(moved(number), force=False)
    assert writes.count == expected
    last_written = 19 if period == 1 else (20 // period) * period - 1 if 0 < period <= 20 else 0
    assert repository.read().master_log_pos == 1000 + last_written


@LONG
def test_table_writes_when_forced(channel: Channel, target: Target) -> None:
    """Relay log rotated, CHANGE MASTER, receiver stopped: with period 0 these three and nothing else."""
    create_tables(target.engine())
    config = config_of(channel.datadir, "TABLE", sync_master_info=0)
    repository = open_master_info(config, channel, target.engine)
    for number in range(3):
        repository.flush(moved(number), force=True)
        repository.flush(moved(90), force=False)
        assert repository.read().master_log_pos == 1000 + number


@LONG
@pytest.mark.parametrize("period", [0, 1, 5, 10_000])
def test_sync_relay_log_info_has_no_effect_on_a_transactional_table(
    period: int, channel: Channel, target: Target
) -> None:
    create_tables(target.engine())
    writes = Writes(target)
    config = config_of(channel.datadir, "TABLE", sync_relay_log_info=period)
    repository = open_relay_log_info(config, channel, writes.engine)
    repository.flush(RELAY, force=True)
    writes.count = 0
    for number in range(10):
        repository.flush(replace(RELAY, relay_log_pos=4 + number), force=False)
    assert writes.count == 10


@pytest.mark.mariadb
@pytest.mark.parametrize(("period", "expected"), [(0, 0), (5, 2)])
@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
def test_sync_relay_log_info_rules_a_table_without_transactions(
    period: int, expected: int, channel: Channel, target: Target
) -> None:
    create_tables(target.engine(), "MyISAM")
    writes = Writes(target)
    config = config_of(channel.datadir, "TABLE", sync_relay_log_info=period)
    repository = open_relay_log_info(config, channel, writes.engine)
    assert not repository.is_transactional()
    repository.flush(RELAY, force=True)
    writes.count = 0
    for number in range(10):
        repository.flush(replace(RELAY, relay_log_pos=4 + number), force=False)
    assert writes.count == expected


def test_relay_log_info_file_syncs_by_its_own_period(channel: Channel, sqlite_target: Target) -> None:
    config = config_of(channel.datadir, "FILE", sync_relay_log_info=4, sync_master_info=1)
    repository = open_relay_log_info(config, channel, sqlite_target.engine)
    before = sync_count[channel.relay_log_info_path.name]
    for number in range(9):
        info: RelayLogInfo = replace(RELAY, relay_log_pos=4 + number)
        repository.flush(info, force=False)
    assert sync_count[channel.relay_log_info_path.name] - before == 2

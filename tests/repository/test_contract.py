"""One contract for every kind of repository, record and target (design: "one contract test, every backend")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import Channel
from rplctl.errors import NotConfigured, RplError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository import RepositoryKind, create_tables, list_channels, next_master_id, open_repository
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record
from tests.repository.conftest import MASTER, RELAY, SERVERS, Target, config_of, open_target

LONG = pytest.mark.long(
    "MySQL, and the default channel in a server, repeat the other cases.",
    keeps=r"^(?!.*(mysql|TABLE-(mariadb|postgresql)-$))",
)

Case = tuple[Record[Any], Any]


@pytest.fixture(
    params=["FILE", "TABLE-sqlite", *(pytest.param(f"TABLE-{p.values[0]}", marks=p.marks) for p in SERVERS)]
)
def place(request: pytest.FixtureRequest, tmp_path: Any) -> tuple[RepositoryKind, Target]:
    kind, _, target_kind = request.param.partition("-")
    target = open_target(target_kind or "sqlite", tmp_path, request)
    if kind == "TABLE":
        create_tables(target.engine())
    return RepositoryKind(kind), target


@pytest.fixture(params=["", "East 1/ä"])
def channel(request: pytest.FixtureRequest, datadir: Path) -> Channel:
    return Channel(request.param, datadir)


@pytest.fixture(params=[(MASTER_INFO, MASTER), (RELAY_LOG_INFO, RELAY)], ids=["master-info", "relay-log-info"])
def case(request: pytest.FixtureRequest) -> Case:
    return request.param  # type: ignore[no-any-return]


def opened(case: Case, place: tuple[RepositoryKind, Target], channel: Channel) -> Any:
    config = config_of(channel.datadir, str(place[0]))
    return open_repository(case[0], place[0], config, channel, place[1].engine)


@LONG
def test_reads_back_what_was_flushed(case: Case, place: tuple[RepositoryKind, Target], channel: Channel) -> None:
    info = replace(case[1], channel_name=channel.name)
    opened(case, place, channel).flush(info, force=True)
    assert opened(case, place, channel).read() == info


@LONG
def test_a_second_flush_replaces_the_first(case: Case, place: tuple[RepositoryKind, Target], channel: Channel) -> None:
    repository = opened(case, place, channel)
    repository.flush(case[1], force=True)
    moved = replace(case[1], channel_name=channel.name, master_log_name="binlog.000004", master_log_pos=4)
    repository.flush(moved, force=True)
    assert opened(case, place, channel).read() == moved


@LONG
def test_nothing_stored_is_no_record_and_not_configured(
    case: Case, place: tuple[RepositoryKind, Target], channel: Channel
) -> None:
    repository = opened(case, place, channel)
    assert not repository.exists()
    with pytest.raises(NotConfigured) as error:
        repository.read()
    assert error.value.errno == 1200


@LONG
def test_removes_once_and_removing_again_is_fine(
    case: Case, place: tuple[RepositoryKind, Target], channel: Channel
) -> None:
    repository = opened(case, place, channel)
    repository.flush(case[1], force=True)
    assert repository.exists()
    repository.remove()
    repository.remove()
    assert not repository.exists()


@LONG
def test_a_record_without_data_is_read_but_does_not_exist(
    case: Case, place: tuple[RepositoryKind, Target], channel: Channel
) -> None:
    repository = opened(case, place, channel)
    repository.flush(case[0].empty(channel.name), force=True)
    assert not repository.exists()
    assert replace(repository.read(), master_id=0) == case[0].empty(channel.name)


@LONG
def test_channels_do_not_touch_each_other(case: Case, place: tuple[RepositoryKind, Target], channel: Channel) -> None:
    other = Channel("other", channel.datadir)
    opened(case, place, channel).flush(case[1], force=True)
    opened(case, place, other).flush(replace(case[1], master_id=8, master_log_pos=4), force=True)
    opened(case, place, channel).remove()
    assert opened(case, place, other).read().master_log_pos == 4


@LONG
def test_a_newline_in_a_value_is_refused_and_the_old_record_stays(
    place: tuple[RepositoryKind, Target], channel: Channel
) -> None:
    repository = opened((MASTER_INFO, MASTER), place, channel)
    repository.flush(MASTER, force=True)
    with pytest.raises(RplError) as error:
        repository.flush(replace(MASTER, host="evil\n4"), force=True)
    assert error.value.errno == 1201
    assert repository.read().host == MASTER.host


@LONG
def test_a_gtid_set_as_the_server_prints_it_keeps_to_one_line(
    place: tuple[RepositoryKind, Target], channel: Channel
) -> None:
    repository = opened((RELAY_LOG_INFO, RELAY), place, channel)
    repository.flush(replace(RELAY, gtid_executed="a-1:1-9,\nb-2:1"), force=True)
    assert repository.read().gtid_executed == "a-1:1-9,b-2:1"


@LONG
def test_lists_every_channel_and_gives_each_an_id_of_its_own(
    place: tuple[RepositoryKind, Target], channel: Channel
) -> None:
    config = config_of(channel.datadir, str(place[0]))
    assert list_channels(config, lambda _: place[1].engine) == []
    assert next_master_id(config, lambda _: place[1].engine) == 1
    for name in ("", "East 1/ä", "west"):
        info = replace(MASTER, channel_name=name, master_id=next_master_id(config, lambda _: place[1].engine))
        opened((MASTER_INFO, MASTER), place, Channel(name, channel.datadir)).flush(info, force=True)
    assert list_channels(config, lambda _: place[1].engine) == ["", "East 1/ä", "west"]
    assert next_master_id(config, lambda _: place[1].engine) == 4


@LONG
def test_each_record_is_whole_in_every_field(place: tuple[RepositoryKind, Target], channel: Channel) -> None:
    """Every field with a value that is not its default comes back: none is forgotten in either notation."""
    master = MasterInfo(**{name: _other_value(getattr(MasterInfo(), name)) for name in MasterInfo.__slots__})
    master = replace(
        master, channel_name=channel.name, master_log_name="b.000001", flushed_relay_log_name="r.000001", using_gtid=1
    )
    relay = RelayLogInfo(**{name: _other_value(getattr(RelayLogInfo(), name)) for name in RelayLogInfo.__slots__})
    relay = replace(
        relay,
        channel_name=channel.name,
        relay_log_name="r.000001",
        master_log_name="b.000001",
        require_table_primary_key_check="OFF",
        assign_gtids_to_anonymous_transactions_type="UUID",
        prepared=None,  # of a FILE alone, and only for a moment: test_lines.py
        left_at="",  # of a FILE alone
    )
    for record, info in ((MASTER_INFO, master), (RELAY_LOG_INFO, relay)):
        repository = opened((record, info), place, channel)
        repository.flush(info, force=True)
        assert repository.read() == info


def _other_value(default: object) -> Any:
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 17
    if isinstance(default, float):
        return default + 0.125
    return (5, 9) if isinstance(default, tuple) else "x y=ä"

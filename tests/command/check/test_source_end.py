"""What `--until-synced` has to reach in a folder of binary logs: the last transaction that the channel takes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.check.folder_end import folder_end
from rplctl.command.check.source_end import SourceEnd, source_end
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.types import EventType
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.source.replica_id import replica_identity
from tests.source.binlogs import FIRST_EVENT, SERVER_ID, event, mariadb_gtid, mysql_gtid, query, write_log

OTHER = 77
UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"
Group = tuple[int, int, int]  # number, server id, domain
GROUPS: list[list[Group]] = [[(1, SERVER_ID, 0), (2, OTHER, 0)], [(3, SERVER_ID, 0), (4, SERVER_ID, 5), (5, OTHER, 0)]]


def gtids_before(groups: list[Group], *, mariadb: bool) -> Callable[[int], bytes]:
    """GTID_LIST or PREVIOUS_GTIDS, for an end_log_pos."""
    if mariadb:
        listed = [struct.pack("<IIQ", domain, server, number) for number, server, domain in groups[-1:]]
        body = struct.pack("<I", len(listed)) + b"".join(listed)
        return lambda end: event(EventType.GTID_LIST, body, end)
    known = MysqlGtidSet.parse(f"{UUID}:1-{groups[-1][0]}" if groups else "").encode()
    return lambda end: event(EventType.PREVIOUS_GTIDS, known, end)


def logs(folder: Path, *, mariadb: bool) -> dict[int, BinlogPosition]:
    """Two logs with these groups; number → position behind the group."""
    ends: dict[int, BinlogPosition] = {}
    for log, groups in enumerate(GROUPS):
        path, at, events = folder / f"binlog.{log + 1:06}", FIRST_EVENT, []
        parts: list[Callable[[int], bytes]] = [gtids_before(GROUPS[0] if log else [], mariadb=mariadb)]
        for number, server, domain in groups:
            gtid = partial(mariadb_gtid, domain, number) if mariadb else partial(mysql_gtid, number)
            parts += [partial(gtid, server_id=server), partial(query, "CREATE TABLE t (a INT)", server_id=server)]
        for count, made in enumerate(parts):
            at += len(made(0))
            events.append(made(at))
            if count and count % 2 == 0:
                ends[groups[count // 2 - 1][0]] = BinlogPosition(path.name, at)
        write_log(path, events)
    return ends


@pytest.fixture
def ends(tmp_path: Path) -> Callable[..., SourceEnd]:
    """What is to be reached in the folder by a channel of these settings."""

    def end(executed: str = "", **settings: object) -> SourceEnd:
        master = replace(MasterInfo(master_binlog_dir=str(tmp_path)), **settings)  # type: ignore[arg-type]
        return source_end(Config(tmp_path / "instance"), master, RelayLogInfo(gtid_executed=executed))

    return end


def test_by_position_it_is_the_end_of_the_last_transaction_that_is_taken(
    tmp_path: Path, ends: Callable[..., SourceEnd]
) -> None:
    at = logs(tmp_path, mariadb=True)
    assert (folder_end(tmp_path), ends()) == (at[5], SourceEnd(at[5]))
    assert ends(ignored_server_ids=(OTHER,)) == SourceEnd(at[4])
    assert ends(ignored_server_ids=(OTHER,), ignore_domain_ids=(5,)) == SourceEnd(at[3])
    assert ends(do_domain_ids=(5,)).position == at[4]
    nothing = ends(ignored_server_ids=(OTHER, SERVER_ID)).position
    assert nothing == BinlogPosition("binlog.000002", 4), "the newest log is reached all the same"


def test_what_this_replica_wrote_itself_is_not_waited_for(tmp_path: Path, ends: Callable[..., SourceEnd]) -> None:
    at = logs(tmp_path, mariadb=False)
    own = Config(tmp_path / "instance", server_id=OTHER)
    assert replica_identity(own, Channel("", own.datadir)).server_id == OTHER
    master = MasterInfo(master_binlog_dir=str(tmp_path))
    assert source_end(own, master, RelayLogInfo()).position == at[4]
    assert source_end(replace(own, replicate_same_server_id=True), master, RelayLogInfo()).position == at[5]


def test_by_gtid_it_is_what_is_executed_and_what_is_taken_beyond_that(
    tmp_path: Path, ends: Callable[..., SourceEnd]
) -> None:
    logs(tmp_path, mariadb=False)
    auto = {"enabled_auto_position": True}
    assert ends(**auto).gtids == f"{UUID}:1-5"
    assert ends(**auto, ignored_server_ids=(OTHER,)).gtids == f"{UUID}:1:3-4"
    done = f"{UUID}:1-5:9"
    assert ends(done, **auto).gtids == done, "all of it is executed: nothing more is wanted"
    everything = ends(**auto, ignored_server_ids=(OTHER, SERVER_ID))
    assert (everything.gtids, everything.is_comparable) == ("", False)


def test_by_mariadbs_gtids_each_domain_has_its_last_one_that_is_taken(
    tmp_path: Path, ends: Callable[..., SourceEnd]
) -> None:
    logs(tmp_path, mariadb=True)
    slave_pos = {"using_gtid": 2}
    assert set(ends(**slave_pos).gtids.split(",")) == {f"0-{OTHER}-5", f"5-{SERVER_ID}-4"}
    assert ends(**slave_pos, ignored_server_ids=(OTHER,), ignore_domain_ids=(5,)).gtids == f"0-{SERVER_ID}-3"


def test_a_folder_that_begins_after_what_is_executed_is_told_at_once(
    tmp_path: Path, ends: Callable[..., SourceEnd]
) -> None:
    logs(tmp_path, mariadb=False)
    (tmp_path / "binlog.000001").unlink()
    with pytest.raises(SourceError, match="Could not find GTID state requested by slave"):
        ends(f"{UUID}:1", enabled_auto_position=True)
    assert ends(f"{UUID}:1-2", enabled_auto_position=True).gtids == f"{UUID}:1-5"


def test_an_empty_folder_has_no_end_yet(tmp_path: Path, ends: Callable[..., SourceEnd]) -> None:
    assert ends(enabled_auto_position=True) == SourceEnd(BinlogPosition("", 4))

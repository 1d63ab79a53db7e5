"""What has come since a snapshot was opened: whether it may be about the tables that are copied."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.types import EventType
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import Received, changed, count_up_to, gtids_of, named_by_ddl
from rplctl.relay_log.writer import RelayLogWriter
from tests.relay_log.stream import SOURCE_UUID, FakeSource

OURS, OTHER = frozenset({("d", "t")}), frozenset({("d", "u")})
NOTHING = MysqlGtidSet()


class Log:
    """A relay log that grows, and who looks at it."""

    def __init__(self, folder: Path) -> None:
        channel, self.source = Channel("", folder), FakeSource()
        self.writer = RelayLogWriter(channel, Config(folder), 1)
        self.received = Received(channel, 1, by_gtid=True)
        assert not self.received.begin()
        self.writer.open_new(self.source.position, self.source.description(0))
        self.add(self.source.begin())
        assert self.received.begin()

    def add(self, data: bytes) -> None:
        self.writer.append(data, 1)

    def new(self) -> RelayGroups:
        (groups,) = self.received.until(self.source.position, 1, lambda _: False)
        return groups


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def gtid(log: Log) -> bytes:
    log.source.sent += 1
    return log.source.event(
        EventType.GTID, b"\x01" + SOURCE_UUID.bytes + struct.pack("<QBQQ", log.source.sent, 2, 0, 1)
    )


def test_rows_are_about_their_tables_and_what_is_seen_is_about_none(log: Log) -> None:
    log.add(log.source.transaction())
    groups = log.new()
    assert changed(groups, 0, OURS, NOTHING) and changed(groups, 0, None, NOTHING)
    assert not changed(groups, 0, OTHER, NOTHING)
    assert not changed(groups, 0, OURS, MysqlGtidSet.parse(f"{SOURCE_UUID}:1-3"))
    assert gtids_of(groups, 1) == MysqlGtidSet.parse(f"{SOURCE_UUID}:1")
    assert not named_by_ddl(groups, 0, OURS)


@pytest.mark.parametrize("sql", ["XA COMMIT X'78',X'',1", "ALTER TABLE u ADD x INT"])
def test_a_statement_may_be_about_any_table(log: Log, sql: str) -> None:
    log.add(gtid(log) + log.source.query(sql))
    assert changed(log.new(), 0, OURS, NOTHING)


@pytest.mark.parametrize(
    ("sql", "table", "found"),
    [
        ("RENAME TABLE u TO `Ours`", "ours", True),
        ("RENAME TABLE u TO ours_2", "ours", False),
        ("RENAME TABLE u TO v", "\u00e4", True),
        ("RENAME TABLE u TO v", "a`b", True),
        ("DROP DATABASE d", "ours", True),
        ("CREATE OR REPLACE SCHEMA d", "ours", True),
        ("ALTER DATABASE d CHARACTER SET latin1", "ours", False),
        pytest.param("DROP " * 200_000, "ours", False, id="long"),  # a source may make it so: looked at once
    ],
)
def test_ddl_is_known_by_the_name_in_its_text(log: Log, sql: str, table: str, found: bool) -> None:
    log.add(gtid(log) + log.source.query(sql))
    groups = log.new()
    assert named_by_ddl(groups, 0, frozenset({("d", table)})) == found


def test_ddl_of_another_database_names_no_table_of_ours_but_what_is_compressed_may(log: Log) -> None:
    log.add(gtid(log) + log.source.query("ALTER TABLE ours ADD x INT"))
    log.add(gtid(log) + log.source.query("ALTER TABLE elsewhere.ours ADD x INT"))
    squeezed = gtid(log) + log.source.event(EventType.QUERY_COMPRESSED, log.source.query("?")[19:-4])
    log.add(squeezed)
    found = [
        [
            named_by_ddl(groups, number, frozenset({(database, "ours")}))
            for database in ("d", "D", "elsewhere", "nowhere")
        ]
        for groups in log.received.new()
        for number in range(len(groups.scan))
    ]
    assert found == [[True, True, False, False], [True, True, True, False], [True] * 4]


def test_groups_are_counted_up_to_a_place(log: Log) -> None:
    log.add(log.source.transaction() + log.source.transaction())
    groups = log.new()
    assert [count_up_to(groups, end) for end in log.source.ends] == [1, 2]


def test_what_does_not_come_is_waited_for_no_longer_than_asked(log: Log) -> None:
    log.source.transaction()
    with pytest.raises(SourceError, match=r"the receiver does not reach binlog\.000001"):
        list(log.received.until(log.source.position, 0.05, lambda _: False))
    assert list(log.received.until(log.source.position, 60, lambda _: True)) == []


def test_a_source_that_writes_faster_than_this_reads_keeps_nobody(log: Log) -> None:
    """`repair` holds the applier still while it reads up to the applier's position."""
    for up_to_a_place in (False, True):
        log.add(log.source.transaction())
        end, found = log.source.position, 0
        for groups in log.received.until(end, 60, lambda _: False) if up_to_a_place else log.received.new():
            found += len(groups.scan)
            log.add(log.source.transaction())
            assert found < 9, "it follows a source that goes on"
        assert log.received.place is not None and not log.received.place.is_before(end)


def test_another_source_s_end_is_not_this_one_s(log: Log, tmp_path: Path) -> None:
    other = Received(Channel("", tmp_path), 2, by_gtid=True)
    assert other.begin()
    with pytest.raises(SourceError):
        list(other.until(log.source.position, 0.05, lambda _: False))

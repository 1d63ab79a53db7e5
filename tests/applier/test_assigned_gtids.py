"""ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS: what comes without a GTID is executed, and logged, with one of ours."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.feed.gtids import assigned, moved_by
from rplctl.applier.feed.plan import Batch, BatchKind
from rplctl.applier.log_bin.events import logged_events
from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.log_status import log_status
from rplctl.config import Config, load_config
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.errors import UsageError
from rplctl.event.checksum import verify_events
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.events import parse_gtid
from rplctl.event.gtid_event import MysqlGtid
from rplctl.event.jit import ByteArray
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.relay_log.reader import RelayGroups, RelayLogReader
from tests.relay_log.stream import FakeSource, new_writer

UUID = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562"
INFO = RelayLogInfo(
    assign_gtids_to_anonymous_transactions_type="UUID", assign_gtids_to_anonymous_transactions_value=UUID
)


def anonymous(events: bytes) -> bytes:
    """A transaction of a MySQL source whose gtid_mode is OFF."""
    length = int.from_bytes(events[9:13], "little")
    event = events[:4] + bytes([EventType.ANONYMOUS_GTID]) + events[5:20] + bytes(24) + events[44 : length - 4]
    return append_checksum(event) + events[length:]


@pytest.fixture
def groups(tmp_path: Path) -> RelayGroups:
    """Five transactions; the third has a GTID."""
    channel, source = Channel("", tmp_path), FakeSource()
    writer = new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    for number in range(5):
        transaction = source.transaction()
        writer.append(transaction if number == 2 else anonymous(transaction), 5)
    writer.close()
    reader = RelayLogReader(channel)
    assert reader.open(RelayLogInfo())
    found = reader.groups(1 << 20)
    assert found is not None
    return found


def logged_gtids(batch: Batch, rules: ReplicationFilter, info: RelayLogInfo, config: Config) -> list[str]:
    """GTID events of what is logged, whose checksums and positions are verified."""
    rendered = logged_events(batch, rules, assigned(info, config)).render
    for _ in range(2):  # tried again after an error: the same
        data: ByteArray = np.concatenate(list(rendered(4)))
    index = scan_events(data)
    assert verify_events(data, index.offsets) == -1 and index.end == len(data)
    found = []
    for number, code in enumerate(index.type_codes.tolist()):
        if code in (EventType.GTID, EventType.ANONYMOUS_GTID):
            event = data[index.offsets[number] : index.offsets[number + 1]].tobytes()
            gtid = parse_gtid(event, batch.description)
            assert isinstance(gtid, MysqlGtid)
            found.append("anonymous" if gtid.is_anonymous else f"{gtid.server_uuid[:8]}:{gtid.number}")
    return found


@pytest.mark.parametrize("way", ["copied", "filtered", "skipped"])
def test_anonymous_transactions_are_numbered_behind_those_executed(
    groups: RelayGroups, tmp_path: Path, way: str
) -> None:
    config = Config(tmp_path)
    rules = ReplicationFilter.from_config(Config(tmp_path, replicate_do_db="other") if way == "filtered" else config)
    kind = BatchKind.SKIP if way == "skipped" else BatchKind.BULK
    batch = Batch(kind=kind, groups=groups, first=0, last=len(groups.scan))
    info = replace(INFO, gtid_executed=f"{UUID}:1-7")
    given = ["aaaaaaaa:8", "aaaaaaaa:9", "3e11fa47:3", "aaaaaaaa:10", "aaaaaaaa:11"]
    assert logged_gtids(batch, rules, info, config) == given
    after = moved_by(batch, info, config)
    assert after.gtid_executed == f"3e11fa47-71ca-11e1-9e33-c80aa9429562:3,{UUID}:1-11"
    assert after.exec_position == batch.source_position


def test_off_gives_none(groups: RelayGroups, tmp_path: Path) -> None:
    batch = Batch(kind=BatchKind.BULK, groups=groups, first=0, last=len(groups.scan))
    config, info = Config(tmp_path), RelayLogInfo()
    assert moved_by(batch, info, config).gtid_executed == "3e11fa47-71ca-11e1-9e33-c80aa9429562:3"
    assert logged_gtids(batch, ReplicationFilter(), info, config).count("anonymous") == 4


def test_local_is_the_uuid_that_log_status_shows(groups: RelayGroups, tmp_path: Path) -> None:
    local = replace(INFO, assign_gtids_to_anonymous_transactions_type="LOCAL")
    given = assigned(local, Config(tmp_path))
    assert (given.uuid, given.number) == (log_status(lambda _: Config(tmp_path)).row["SERVER_UUID"], 1)
    assert str(uuid.UUID(given.uuid)) == given.uuid


def test_it_is_stored_with_mysqls_warning_and_refused_with_auto_position(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    given = MasterChanges(master_host="db1", assign_gtids_to_anonymous_transactions=UUID)
    result = change_master(config, "", given)
    assert result.relay_log_info.assign_gtids_to_anonymous_transactions_value == UUID
    assert [note.errno for note in result.notes] == [4017]
    with pytest.raises(UsageError) as caught:
        change_master(config, "", replace(given, master_auto_position=True))
    assert caught.value.errno == 4014

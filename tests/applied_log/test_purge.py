"""Files of the binary log: made, rotated, purged; what a crash leaves of that is put right."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from rplctl.applied_log.end import find_end, logged_record, repair_end
from rplctl.applied_log.files import BinaryLogFiles, binary_log_files, existing_names
from rplctl.applied_log.purge import expire, logs_before, logs_older_than, remove_logs
from rplctl.applied_log.record import EventPlace, PositionRecord, build_record, parse_record
from rplctl.applied_log.writer import BinaryLogWriter
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import BinlogFormatError, ConfigError, UsageError
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.info import RelayLogInfo
from rplctl.locks import InstanceLock
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from tests.commit.xa_probe import killed_at

DESCRIPTION = parse_format_description(build_format_description(1, 0, 1, "8.0.40"))


def at(number: int) -> RelayLogInfo:
    info = RelayLogInfo(gtid_executed=f"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-{number}")
    return info.at(RelayLogPosition("relay-bin.000001", number), BinlogPosition("b.000001", number))


def files_of(config: Config, channel: str = "") -> BinaryLogFiles:
    files = binary_log_files(config, Channel(channel, config.datadir))
    assert files is not None
    return files


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(tmp_path, log_bin="binlog")


def make_logs(config: Config, count: int) -> list[str]:
    """Logs of one commit each."""
    writer = BinaryLogWriter(files_of(config), config, 5)
    for number in range(count):
        writer.begin(DESCRIPTION, PositionRecord(before=at(number), after=at(number)))
        writer.write([np.zeros(0, np.uint8)], PositionRecord(before=at(number), after=at(number + 1)), 0, durable=True)
    writer.close()
    return RelayLogIndex(files_of(config)).names()


def test_names_and_places(tmp_path: Path) -> None:
    assert files_of(Config(tmp_path, log_bin="binlog"), "east").base == "binlog-east"
    files = files_of(Config(tmp_path, log_bin="/var/logs/applied"))
    assert (files.datadir, files.relay_log_index_path) == (Path("/var/logs"), Path("/var/logs/applied.index"))
    assert binary_log_files(Config(tmp_path), Channel("", tmp_path)) is None
    assert binary_log_files(Config(tmp_path, log_bin="b", log_replica_updates=False), Channel("", tmp_path)) is None


@pytest.mark.parametrize("log_bin", ["relay-bin", "binlog.log", "/", "a b"])
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, log_bin: str) -> None:
    with pytest.raises(ConfigError, match="log_bin"):
        binary_log_files(Config(tmp_path, log_bin=log_bin), Channel("", tmp_path))


def test_a_record_is_read_as_it_was_written_and_others_ignorable_events_are_none() -> None:
    record = PositionRecord(before=at(1), after=at(2), xid="rplctl:x", changes=False)
    event = build_record(record, EventPlace(server_id=1, timestamp=2, begins_at=300, checksum_algorithm=1))
    found = parse_record(event, 4)
    assert found is not None and found.is_step_of(record) and not found.changes
    assert found.after.gtid_executed == at(2).gtid_executed
    assert parse_record(event.replace(b"rplctl-position", b"somebody-else's"), 4) is None
    with pytest.raises(BinlogFormatError, match="position record"):
        parse_record(event.replace(b'"xid"', b'"xyz"'), 4)


def test_logs_are_purged_up_to_one_or_before_a_time_but_never_the_last(config: Config) -> None:
    names, files = make_logs(config, 5), files_of(config)
    assert names == [f"binlog.{n:06d}" for n in range(1, 6)]
    for age, name in enumerate(reversed(names)):
        os.utime(config.datadir / name, (1000 - age, 1000 - age))
    assert logs_before(files, names[1]) == names[:1]
    assert logs_older_than(files, 998) == names[:2]
    assert logs_older_than(files, 1e12) == names[:4]
    with pytest.raises(UsageError, match="Target log not found") as refused:
        logs_before(files, "binlog.000009")
    assert refused.value.errno == 1373
    remove_logs(files, names)
    assert existing_names(files) == RelayLogIndex(files).files() == names[-1:]


def test_old_logs_go_unless_the_instance_is_locked_for_a_backup(config: Config) -> None:
    names, files = make_logs(config, 3), files_of(config)
    os.utime(config.datadir / names[0], (1000, 1000))
    backup = InstanceLock(config.datadir)
    assert backup.acquire_backup(0)
    assert expire(files, config) == []
    backup.close()
    assert expire(files, config) == names[:1]
    assert RelayLogIndex(files).files() == names[1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["crash_purge_before_update_index=kill", "crash_purge_critical_after_update_index=kill"]
)
def test_a_purge_that_was_killed_is_finished(config: Config, point: str) -> None:
    names, files = make_logs(config, 3), files_of(config)
    killed_at(point, lambda: remove_logs(files, names[:2]))
    end = repair_end(files)
    assert end is not None and end.name == names[2]
    assert RelayLogIndex(files).names() == RelayLogIndex(files).files() == names[2:]


@pytest.mark.long("A kill in the moment in which a log is made is rare; the other tests of this file purge.")
@pytest.mark.parametrize("point", ["crash_create_critical_before_update_index", "crash_create_after_update_index"])
def test_a_log_that_was_being_made_is_made_again_under_its_name(config: Config, point: str) -> None:
    files = files_of(config)
    make_logs(config, 1)

    def rotate() -> None:
        end = repair_end(files)
        assert end is not None
        writer = BinaryLogWriter(files, config, 5)
        writer.description = end.description
        writer.resume(RelayLogPosition(end.name, end.size))
        writer.begin(DESCRIPTION, end.record)

    killed_at(f"{point}=kill", rotate)
    end = repair_end(files)
    assert end is not None and end.record.after.is_at(at(1))
    if end.is_rotated:
        BinaryLogWriter(files, config, 5).begin(DESCRIPTION, end.record)
    assert RelayLogIndex(files).names() == RelayLogIndex(files).files() == ["binlog.000001", "binlog.000002"]
    assert b"binlog.000002" in (config.datadir / "binlog.000001").read_bytes()[-40:], "the ROTATE names it"


@pytest.mark.long("A lost index is rare; tests/relay_log/test_index.py reads damaged ones.")
def test_an_index_that_is_lost_is_made_again_and_lines_without_files_go(config: Config) -> None:
    names, files = make_logs(config, 3), files_of(config)
    files.relay_log_index_path.unlink()
    repair_end(files)
    assert RelayLogIndex(files).names() == names
    (config.datadir / names[0]).unlink()
    repair_end(files)
    assert RelayLogIndex(files).names() == names[1:]
    assert logged_record(files) is not None and logged_record(None) is None


def test_somebody_elses_log_is_not_gone_on_with(config: Config) -> None:
    files = files_of(config)
    (config.datadir / "binlog.000001").write_bytes(b"\xfebin" + build_format_description(1, 0, 1, "8.0.40"))
    RelayLogIndex(files).replace(["binlog.000001"])
    with pytest.raises(BinlogFormatError, match="no position record"):
        find_end(files)

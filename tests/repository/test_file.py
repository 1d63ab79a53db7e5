"""FILE: secrets, strange things in the file's place, a kill in the middle (design D5, D14)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.durable import replace_file, sync_count
from rplctl.errors import ConfigError, NotConfigured, RplError
from rplctl.info import MasterInfo
from rplctl.repository.file import FileRepository
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from tests.repository.conftest import MASTER, RELAY

Repository = FileRepository[MasterInfo]


@pytest.fixture
def repository(channel: Channel) -> Repository:
    return FileRepository(MASTER_INFO, channel, 0)


def test_the_file_is_for_its_owner_only_whatever_the_umask(repository: Repository, channel: Channel) -> None:
    old = os.umask(0)
    try:
        repository.flush(MASTER, force=False)
    finally:
        os.umask(old)
    assert channel.master_info_path.stat().st_mode & 0o777 == 0o600
    assert channel.master_info_path.name == "master-east@00201@002f@00e4.info"


def test_a_password_that_others_may_read_is_refused_and_chmod_named(repository: Repository, channel: Channel) -> None:
    repository.flush(MASTER, force=True)
    channel.master_info_path.chmod(0o640)
    with pytest.raises(ConfigError) as error:
        repository.read()
    assert error.value.hint.endswith(f"run: chmod 600 {channel.master_info_path}")
    assert MASTER.user_password not in str(error.value)


def test_a_relay_log_info_that_others_may_read_is_fine(channel: Channel) -> None:
    repository = FileRepository(RELAY_LOG_INFO, channel, 0)
    repository.flush(RELAY, force=True)
    channel.relay_log_info_path.chmod(0o644)
    assert repository.exists()


def test_a_hand_edited_file_is_honoured(channel: Channel) -> None:
    repository = FileRepository(RELAY_LOG_INFO, channel, 0)
    repository.flush(RELAY, force=True)
    text = channel.relay_log_info_path.read_text().replace("\n2552\n", "\n4711\n")
    channel.relay_log_info_path.write_text(text)
    assert repository.read().master_log_pos == 4711


@pytest.mark.parametrize(
    "left",
    [lambda data: b"", lambda data: bytes(len(data)), lambda data: data[:100] + bytes(300), lambda data: data[:8192]],
    ids=["empty", "zeros", "zeros behind the first block", "cut at a block"],
)
@pytest.mark.parametrize("period", [0, 3])
def test_a_power_cut_between_two_syncs_leaves_the_last_durable_record(
    channel: Channel, left: Callable[[bytes], bytes], period: int
) -> None:
    """File systems may have the new name and not its data; the record before it, or a later one, never an error."""
    repository = FileRepository(RELAY_LOG_INFO, channel, period)
    long = replace(RELAY, gtid_executed=",".join(f"{number}-1-1" for number in range(2000)))
    repository.flush(long, force=True)
    syncs = sync_count.total()
    for number in (1, 2):
        repository.flush(replace(long, master_log_pos=number), force=False)
        assert FileRepository(RELAY_LOG_INFO, channel, period).read().master_log_pos == number
    assert sync_count.total() == syncs, "the link costs no fsync"
    path = channel.relay_log_info_path
    path.write_bytes(left(path.read_bytes()))
    assert FileRepository(RELAY_LOG_INFO, channel, period).read() == replace(long, channel_name=channel.name)
    repository.flush(replace(long, master_log_pos=3), force=False)
    assert FileRepository(RELAY_LOG_INFO, channel, period).read().master_log_pos == 3
    repository.remove()
    assert not repository.exists() and list(channel.datadir.iterdir()) == []


def test_a_damaged_file_that_no_power_cut_leaves_stays_an_error(channel: Channel) -> None:
    repository = FileRepository(RELAY_LOG_INFO, channel, 0)
    repository.flush(RELAY, force=True)
    repository.flush(RELAY, force=False)
    path = channel.relay_log_info_path
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    with pytest.raises(RplError) as caught:
        repository.read()
    assert caught.value.errno == 1872


@pytest.mark.parametrize("name", ["fifo", "folder"])
def test_what_is_no_file_is_refused_and_not_waited_for(name: str, repository: Repository, channel: Channel) -> None:
    if name == "fifo":
        os.mkfifo(channel.master_info_path)
    else:
        channel.master_info_path.mkdir()
    with pytest.raises(RplError, match="is not an info file") as error:
        repository.read()
    assert error.value.errno == 1201


def test_an_empty_file_is_no_record(repository: Repository, channel: Channel) -> None:
    channel.master_info_path.touch(0o600)
    assert not repository.exists()
    with pytest.raises(NotConfigured):
        repository.read()


def test_a_damaged_file_is_an_error_and_not_a_missing_record(repository: Repository, channel: Channel) -> None:
    replace_file(channel.master_info_path, b"33\nbinlog.000001\n4\n")
    for call in (repository.exists, repository.read):
        with pytest.raises(RplError, match="Could not initialize master info structure") as error:
            call()
        assert (error.value.errno, error.value.channel) == (1201, channel.name)
        assert str(channel.master_info_path) in error.value.message


def test_the_file_of_another_channel_is_not_taken(repository: Repository, channel: Channel) -> None:
    other = Channel("west", channel.datadir)
    FileRepository(MASTER_INFO, other, 0).flush(MASTER, force=True)
    other.master_info_path.rename(channel.master_info_path)
    with pytest.raises(RplError, match="belongs to channel 'west'"):
        repository.read()


def test_a_file_that_a_server_wrote_belongs_to_the_channel_of_its_name(channel: Channel, datadir: Path) -> None:
    recorded = Path(__file__).parents[1] / "data/infofiles/mariadb10.11/07-multisource/master-we@0020st@002f1.info"
    west = Channel("We st/1", datadir)
    replace_file(west.master_info_path, recorded.read_bytes())
    assert west.master_info_path.name == recorded.name
    assert FileRepository(MASTER_INFO, west, 0).read().channel_name == "We st/1"


def test_a_full_disk_leaves_the_old_record(
    repository: Repository,
    channel: Channel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository.flush(MASTER, force=True)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(RplError, match="No space left on device"):
            repository.flush(MASTER.with_read_position(MASTER.read_position), force=True)
    assert repository.read().host == MASTER.host
    name = channel.master_info_path.name
    assert sorted(path.name for path in channel.datadir.iterdir()) == [f".{name}.synced", name]

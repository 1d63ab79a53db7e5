from __future__ import annotations

import pytest

from rplctl.channel import Channel
from rplctl.errors import RelayLogError
from rplctl.relay_log.index import RelayLogIndex


def write(channel: Channel, content: bytes) -> RelayLogIndex:
    channel.relay_log_index_path.write_bytes(content)
    return RelayLogIndex(channel)


def test_no_index_means_no_relay_logs(channel: Channel) -> None:
    assert RelayLogIndex(channel).names() == []
    assert RelayLogIndex(channel).next_name() == "relay-bin.000001"


def test_lines_are_written_as_the_server_writes_them(channel: Channel) -> None:
    index = RelayLogIndex(channel)
    index.append("relay-bin.000001")
    index.append("relay-bin.000002")
    assert channel.relay_log_index_path.read_bytes() == b"./relay-bin.000001\n./relay-bin.000002\n"
    assert channel.relay_log_index_path.stat().st_mode & 0o777 == 0o600
    index.remove(["relay-bin.000001"])
    assert index.names() == ["relay-bin.000002"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"relay-bin.00001",
        b"./relay-bin.index",
        b"../relay-bin.000009",
        b"/etc/relay-bin.000009",
        b"./relay-bin-other.000009",
        b"binlog.000009",
        b"relay-bin.000000",
        b"relay-bin.9999999999",
        b"\xff\xfe\x00",
        b"./relay-bin.000009\r",
        b"./relay-bin.\xd9\xa1\xd9\xa1\xd9\xa1\xd9\xa1\xd9\xa1\xd9\xa1",
    ],
)
def test_a_line_that_is_not_ours_is_passed_over(channel: Channel, line: bytes) -> None:
    index = write(channel, b"./relay-bin.000001\n" + line + b"\n./relay-bin.000002\n")
    assert index.names() == ["relay-bin.000001", "relay-bin.000002"]
    assert not index.is_canonical()


def test_a_duplicate_line_counts_once(channel: Channel) -> None:
    assert write(channel, b"./relay-bin.000001\nrelay-bin.000001\n").names() == ["relay-bin.000001"]


def test_a_missing_last_newline_loses_nothing(channel: Channel) -> None:
    assert write(channel, b"./relay-bin.000001\n./relay-bin.000002").names()[-1] == "relay-bin.000002"


def test_numbers_go_on_past_six_digits_in_order(channel: Channel) -> None:
    index = write(channel, b"./relay-bin.999999\n")
    assert index.next_name() == "relay-bin.1000000"
    index.append("relay-bin.1000000")
    assert index.names() == ["relay-bin.999999", "relay-bin.1000000"]


def test_numbers_end_at_the_servers_limit(channel: Channel) -> None:
    with pytest.raises(RelayLogError, match="too large"):
        write(channel, b"./relay-bin.2147483647\n").next_name()


def test_the_next_name_is_free_on_disk_too(channel: Channel) -> None:
    (channel.datadir / "relay-bin.000007").touch()
    assert write(channel, b"./relay-bin.000003\n").next_name() == "relay-bin.000008"


def test_files_of_other_channels_links_and_folders_are_not_ours(channel: Channel) -> None:
    for name in ("relay-bin-x.000001", "relay-bin.index", "relay-bin.000002"):
        (channel.datadir / name).touch()
    (channel.datadir / "relay-bin.000003").symlink_to("/etc/passwd")
    (channel.datadir / "relay-bin.000004").mkdir()
    assert RelayLogIndex(channel).files() == ["relay-bin.000002"]
    assert RelayLogIndex(Channel("x", channel.datadir)).files() == ["relay-bin-x.000001"]

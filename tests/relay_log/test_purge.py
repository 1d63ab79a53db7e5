from __future__ import annotations

import pytest

from rplctl.channel import Channel
from rplctl.position import RelayLogPosition
from rplctl.relay_log import purge
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import finish_purge, purge_all, purge_applied, register_path, relay_log_space
from tests.relay_log.stream import FakeSource, new_writer


@pytest.fixture
def three_logs(channel: Channel) -> Channel:
    writer = new_writer(channel)
    source = FakeSource()
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    for _ in range(3):
        writer.append(source.transaction(), 5)
        if source.sent < 3:
            writer.rotate()
    writer.close()
    return channel


def test_only_logs_before_the_position_are_removed(three_logs: Channel) -> None:
    index = RelayLogIndex(three_logs)
    assert purge_applied(three_logs, RelayLogPosition("relay-bin.000002", 400)) == ["relay-bin.000001"]
    assert index.names() == index.files() == ["relay-bin.000002", "relay-bin.000003"]
    assert purge_applied(three_logs, RelayLogPosition("relay-bin.000002", 400)) == []


def test_a_position_in_no_listed_log_removes_nothing(three_logs: Channel) -> None:
    assert purge_applied(three_logs, RelayLogPosition("relay-bin.000009", 4)) == []
    assert purge_applied(three_logs, RelayLogPosition("", 0)) == []
    assert len(RelayLogIndex(three_logs).files()) == 3


def test_purge_all_removes_unlisted_logs_too_and_leaves_other_channels_alone(three_logs: Channel) -> None:
    (three_logs.datadir / "relay-bin.000009").touch()
    (three_logs.datadir / "relay-bin-x.000001").touch()
    assert len(purge_all(three_logs)) == 4
    assert RelayLogIndex(three_logs).names() == RelayLogIndex(three_logs).files() == []
    assert (three_logs.datadir / "relay-bin-x.000001").exists()
    assert not register_path(three_logs).exists()


def test_the_space_is_the_sum_of_the_listed_files(three_logs: Channel) -> None:
    sizes = [path.stat().st_size for path in three_logs.datadir.glob("relay-bin.0*")]
    (three_logs.datadir / "relay-bin.000009").write_bytes(b"not listed")
    assert relay_log_space(three_logs) == sum(sizes)


def test_a_register_cannot_make_us_unlink_foreign_files(three_logs: Channel) -> None:
    (three_logs.datadir / "master.info").touch()
    register_path(three_logs).write_bytes(b"./master.info\n../x\n./relay-bin.000001\n\xff\n")
    with RelayLogIndex(three_logs).lock():
        assert finish_purge(three_logs) == ["relay-bin.000001"]
    assert (three_logs.datadir / "master.info").exists()


def test_the_index_forgets_a_log_before_it_is_unlinked(three_logs: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in between, the index names only what is there: no applier looks for a log that is gone (WL#5493)."""
    index, seen = RelayLogIndex(three_logs), {}
    monkeypatch.setattr(
        purge, "crash_point", lambda point: seen.update({point: (list(index.names()), list(index.files()))})
    )
    everything = index.names()
    purge_applied(three_logs, RelayLogPosition("relay-bin.000003", 4))
    kept = ["relay-bin.000003"]
    assert seen["crash_purge_before_update_index"] == (everything, everything)
    assert seen["crash_purge_critical_after_update_index"] == (kept, everything)
    assert seen["crash_purge_non_critical_after_update_index"] == (kept, kept)

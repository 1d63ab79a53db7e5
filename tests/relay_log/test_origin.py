"""The relay logs on disk, and records that were put back with the target: which lead on from here, and which do not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rplctl.channel import Channel
from rplctl.errors import RelayLogError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.recovery import plan_recovery
from rplctl.relay_log import purge
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.origin import move_origin, note_origin, read_origin
from rplctl.relay_log.purge import purge_all, purge_applied
from rplctl.relay_log.reader import RelayLogReader
from tests.relay_log.stream import SOURCE_UUID, FakeSource, new_writer

BY_GTID = MasterInfo(host="one", port=3306, enabled_auto_position=True)
BY_POSITION = replace(BY_GTID, enabled_auto_position=False)

Places = list[tuple[RelayLogPosition, BinlogPosition]]


def gtids(last: int) -> str:
    return f"{SOURCE_UUID}:1-{last}"


@pytest.fixture
def places(channel: Channel) -> Places:
    """Three relay logs with one transaction each, 5 to 7, fetched while 1 to 4 were executed; where each one ends."""
    note_origin(channel, BY_GTID, gtids(4))
    found: Places = []
    writer, source = new_writer(channel), FakeSource(BinlogPosition("binlog.000003", 4), sent=4)
    for number in range(3):
        writer.open_new(source.position)
        if number == 0:
            writer.append(source.begin(), 2)
        writer.append(source.transaction(), 5)
        found.append((writer.end, source.position))
    writer.sync()
    writer.close()
    return found


def record(last: int, place: tuple[RelayLogPosition, BinlogPosition]) -> RelayLogInfo:
    return RelayLogInfo(gtid_executed=gtids(last)).at(*place)


def is_useful(channel: Channel, master: MasterInfo, info: RelayLogInfo) -> bool:
    """What recovery plans; a reader that has to prove it says the same, and opens only those."""
    planned = plan_recovery(channel, master, info)
    reader = RelayLogReader(channel, by_gtid=master.uses_gtid, source_place=master.place)
    is_kept = bool(planned.relay_end.log_name)
    if is_kept:
        assert reader.open(info)
    else:
        with pytest.raises(RelayLogError) as refused:
            reader.open(info)
        assert refused.value.transient and "rplctl stop; rplctl start" in refused.value.hint
    return is_kept


VALUES: tuple[object, ...] = (None, 3, [], {})
OLD = (RelayLogPosition("relay-bin.000002", 777), BinlogPosition("binlog.000003", 9))  # of files that are long gone


@pytest.mark.parametrize("last", [1, 3])
def test_by_gtid_less_than_was_executed_when_fetching_began_leaves_a_gap(
    channel: Channel, places: Places, last: int
) -> None:
    assert not is_useful(channel, BY_GTID, record(last, OLD))
    assert not is_useful(channel, BY_GTID, RelayLogInfo())


@pytest.mark.parametrize("last", [4, 5, 7])
def test_whole_relay_logs_lead_on_from_any_executed_set_since_then(channel: Channel, places: Places, last: int) -> None:
    assert is_useful(channel, BY_GTID, record(last, OLD))


def test_after_a_purge_only_the_recorded_place_leads_on(channel: Channel, places: Places) -> None:
    assert purge_applied(channel, places[1][0]) == ["relay-bin.000001"]
    assert is_useful(channel, BY_GTID, record(6, places[1]))
    assert is_useful(channel, BY_GTID, record(5, places[0])), "the next relay log begins there"
    assert is_useful(channel, BY_GTID, record(7, (RelayLogPosition("relay-bin.000003", 99_999), places[2][1]))), "cut"
    assert not is_useful(channel, BY_GTID, record(4, OLD)), "transaction 5 is gone"


def test_relay_logs_of_another_source_are_of_no_use_also_by_position(channel: Channel, places: Places) -> None:
    elsewhere = replace(BY_POSITION, host="two")
    assert is_useful(channel, BY_POSITION, record(5, places[0]))
    assert not is_useful(channel, elsewhere, record(5, places[0]))
    assert "fetched from one:3306, and the channel reads from two:3306" in plan_recovery(
        channel, elsewhere, record(5, places[0])
    ).notes[0]  # fmt: skip
    move_origin(channel, elsewhere)
    assert is_useful(channel, elsewhere, record(5, places[0])), "CHANGE MASTER has kept them"


def test_nothing_is_held_against_relay_logs_of_an_older_release(channel: Channel, places: Places) -> None:
    (channel.run_folder / "relay_origin.json").write_text('{"place": 3}')
    assert is_useful(channel, BY_GTID, record(3, places[0]))
    (channel.run_folder / "relay_origin.json").unlink()
    assert is_useful(channel, replace(BY_GTID, host="two"), record(3, places[0]))


def test_the_origin_goes_behind_the_last_relay_log_and_says_purged_before_the_first(
    channel: Channel, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the two leaves an origin that claims less than is true, never more."""

    class Killed(BaseException):
        pass

    def cut(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(purge, "purge_names", cut)
    with pytest.raises(Killed):
        purge_applied(channel, places[1][0])
    found = read_origin(channel)
    assert found is not None and not found.is_whole
    with pytest.raises(Killed):
        purge_all(channel)
    assert read_origin(channel) == found
    monkeypatch.undo()
    purge_all(channel)
    assert read_origin(channel) is None and RelayLogIndex(channel).names() == []


def test_a_damaged_origin_never_makes_relay_logs_useless(channel: Channel, places: Places) -> None:
    """The file cut at each byte, and each value replaced by one of another type or by noise."""
    path = channel.run_folder / "relay_origin.json"
    whole = path.read_bytes()
    other = json.loads(whole)
    damaged = [whole[:size] for size in range(len(whole) - 1)]  # the last byte is a newline
    damaged += [json.dumps(other | {name: value}).encode() for name in other for value in VALUES]
    damaged += [json.dumps(other | {"gtids": noise}).encode() for noise in ("noise", "1-1", "0-1-x", ":", "a:b:")]
    for content in damaged:
        path.write_bytes(content)
        assert is_useful(channel, BY_GTID, record(4, places[0])), content

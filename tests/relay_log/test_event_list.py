from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.errors import RelayLogError
from rplctl.relay_log.event_list import events_of
from tests.relay_log.stream import FakeSource, write_relay_log


def test_every_event_is_listed_as_show_relaylog_events_does(channel: Channel) -> None:
    end = write_relay_log(channel, FakeSource(), 1)
    listed = list(events_of(channel.datadir / end.log_name))
    assert [(e.Pos, e.Event_type, e.Server_id, e.End_log_pos, e.Info) for e in listed] == [
        (4, "Format_desc", 2, 127, "Server ver: 8.0.40-rplctl, Binlog ver: 4"),
        (127, "Rotate", 2, 0, "binlog.000001;pos=4"),
        (171, "Rotate", 1, 0, "binlog.000001;pos=4"),
        (215, "Format_desc", 1, 127, "Server ver: 8.0.40, Binlog ver: 4"),
        (338, "Gtid", 1, 192, "SET @@SESSION.GTID_NEXT= '3e11fa47-71ca-11e1-9e33-c80aa9429562:1'"),
        (403, "Query", 1, 235, "use `d`; BEGIN"),
        (446, "Table_map", 1, 276, "table_id: 90 (d.t)"),
        (487, "Write_rows", 1, 316, "table_id: 90 flags: STMT_END_F"),
        (527, "Xid", 1, 347, "COMMIT /* xid=1 */"),
    ]
    assert {e.Log_name for e in listed} == {"relay-bin.000001"}


def test_a_position_and_a_limit_choose_the_events(channel: Channel) -> None:
    end = write_relay_log(channel, FakeSource(), 3)
    path = channel.datadir / end.log_name
    everything = list(events_of(path))
    assert list(events_of(path, everything[6].Pos, 3)) == everything[6:9]
    assert list(events_of(path, 4, 0)) == []
    assert list(events_of(path, end.log_pos)) == []


@pytest.mark.parametrize("offset", [5, 126, 10**9])
def test_a_position_between_events_is_refused(channel: Channel, offset: int) -> None:
    end = write_relay_log(channel, FakeSource(), 1)
    with pytest.raises(RelayLogError, match="Wrong offset or I/O error") as failed:
        events_of(channel.datadir / end.log_name, offset)
    assert failed.value.errno == 1220
    with pytest.raises(RelayLogError, match="Could not find target log"):
        events_of(channel.datadir / "relay-bin.000099")


def test_a_torn_tail_is_not_listed(channel: Channel) -> None:
    end = write_relay_log(channel, FakeSource(), 2)
    path = channel.datadir / end.log_name
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert len(list(events_of(path))) == 13


@pytest.mark.long("MariaDB's log and a small one of MySQL stay.", keeps="ma1011|rowsquery")
@pytest.mark.parametrize("recording", ["ma1011-torture-row", "my97-torture-row", "my97-torture-rowsquery"])
def test_events_of_real_servers_all_have_a_name(tmp_path: Path, recording: str) -> None:
    recorded = Path(__file__).parents[1] / "data" / f"{recording}.xz"
    (tmp_path / "relay-bin.000001").write_bytes(lzma.decompress(recorded.read_bytes()))
    listed = list(events_of(tmp_path / "relay-bin.000001"))
    assert len(listed) > 50
    assert "Unknown" not in {event.Event_type for event in listed}

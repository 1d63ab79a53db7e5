from __future__ import annotations

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.packets import PacketEnd, as_packets, deframe
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from tests.event.logs import DUMPS, FULL_PACKET, event, events, length_prefixed, log


@pytest.mark.parametrize("case", DUMPS)
def test_a_real_dump_stream_becomes_its_events(case: str) -> None:
    stream = log(case)
    found = deframe(stream, len(stream), 1)
    assert found.consumed == len(stream)
    assert found.end is PacketEnd.NONE
    index = scan_events(found.events)
    assert index.offsets.tolist() == found.offsets.tolist()
    assert index.type_codes[0] == EventType.ROTATE
    assert index.type_codes[1] == EventType.FORMAT_DESCRIPTION


def test_a_stream_cut_anywhere_loses_and_repeats_nothing() -> None:
    stream = log("dump-mariadb11.8-gtid_no")
    whole = deframe(stream, len(stream), 1).events.tobytes()
    for cut in range(len(stream)):
        first = deframe(stream, cut, 1)
        assert first.consumed <= cut
        assert first.consumed + first.needed > cut
        rest = stream[first.consumed :]
        second = deframe(rest, len(rest), first.sequence)
        assert first.events.tobytes() + second.events.tobytes() == whole


@pytest.mark.parametrize("sequence", [1, 254])
def test_events_may_take_the_place_of_their_packets(sequence: int) -> None:
    large = event(EventType.ROWS_QUERY, bytes(range(256)) * (FULL_PACKET // 200), checksum=False)
    parts = [event(EventType.STOP), large, event(EventType.STOP)]
    stream = length_prefixed([*parts, event(EventType.STOP)], sequence)
    buffer = np.frombuffer(bytearray(stream), np.uint8)
    found = deframe(buffer, len(stream) - 1, sequence, in_place=True)
    assert found.events.tobytes() == b"".join(parts)
    assert np.shares_memory(found.events, buffer)
    assert buffer[found.consumed :].tobytes() == stream[found.consumed :] != b""


def test_more_bytes_in_the_buffer_than_received_are_not_looked_at() -> None:
    stop = length_prefixed([event(EventType.STOP)])
    assert deframe(stop + b"\xff" * 100, len(stop), 1).consumed == len(stop)


@pytest.mark.long("Two lengths stay in make test.", keeps=r"^1677721[35]$")
@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [FULL_PACKET - 2, FULL_PACKET - 1, FULL_PACKET, 2 * FULL_PACKET - 1, 2 * FULL_PACKET + 5]
)
def test_an_event_over_several_packets_is_joined(size: int) -> None:
    large = event(EventType.ROWS_QUERY, b"q" * (size - 19), checksum=False)
    parts = [event(EventType.STOP), large, event(EventType.STOP)]
    stream = length_prefixed(parts, 254)
    found = deframe(stream, len(stream), 254)
    assert found.events.tobytes() == b"".join(parts)
    assert found.consumed == len(stream)
    torn = deframe(stream, len(stream) - 60, 254)
    assert torn.events.tobytes() == parts[0]
    assert torn.needed > FULL_PACKET - 1 or size < FULL_PACKET


def test_an_error_packet_ends_the_stream_and_is_handed_over() -> None:
    stop = event(EventType.STOP)
    error = b"\xff\xd4\x04#HY000Could not find first log file name in binary log index file"
    stream = length_prefixed([stop]) + len(error).to_bytes(3, "little") + b"\x02" + error
    found = deframe(stream, len(stream), 1)
    assert found.events.tobytes() == stop
    assert (found.end, found.end_payload, found.consumed) == (PacketEnd.ERROR, error, len(stream))


def test_an_end_packet_ends_the_stream() -> None:
    stream = bytes.fromhex("05000001fe00000200")
    found = deframe(stream, len(stream), 1)
    assert (found.end, found.end_payload) == (PacketEnd.EOF, bytes.fromhex("fe00000200"))
    assert found.sequence == 2


def test_packets_out_of_order_stop() -> None:
    stream = length_prefixed([event(EventType.STOP)]) + length_prefixed([event(EventType.STOP)], 3)
    with pytest.raises(BinlogFormatError, match="out of order: 2 was expected"):
        deframe(stream, len(stream), 1)


@pytest.mark.parametrize("change", [1, -1, 1000])
def test_an_event_that_is_not_as_long_as_its_packet_stops(change: int) -> None:
    stop = bytearray(event(EventType.STOP))
    stop[9:13] = (len(stop) + change).to_bytes(4, "little")
    stream = length_prefixed([bytes(stop)])
    with pytest.raises(BinlogFormatError, match="packet's length"):
        deframe(stream, len(stream), 1)


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x01" * 30, b"\x00" * 19])
def test_a_packet_that_is_no_event_stops(payload: bytes) -> None:
    stream = len(payload).to_bytes(3, "little") + b"\x01" + payload
    with pytest.raises(BinlogFormatError, match="packet's length"):
        deframe(stream, len(stream), 1)


def test_many_events_keep_their_bounds() -> None:
    parts = list(events(log("my97-torture-rowsquery")))
    stream = length_prefixed(parts)
    found = deframe(stream, len(stream), 1)
    assert found.events.tobytes() == b"".join(parts)
    assert len(found.offsets) == len(parts) + 1


@pytest.mark.parametrize("strips", [False, True])
def test_events_put_into_packets_come_out_of_them(strips: bool) -> None:
    parts = [event(EventType.ROWS_QUERY, b"q" * length) for length in (0, 1, 300, 70_000)] * 80  # more than 256
    data = np.frombuffer(b"".join(parts), np.uint8)
    offsets = scan_events(data).offsets
    packets, following = as_packets(data, offsets[:-1], np.diff(offsets), 250, strips=strips)
    found = deframe(packets.tobytes(), len(packets), 250)
    assert (found.consumed, found.sequence) == (len(packets), following)
    removed = 4 * strips
    expected = [
        part[:9] + (len(part) - removed).to_bytes(4, "little") + part[13 : len(part) - removed] for part in parts
    ]
    assert found.events.tobytes() == b"".join(expected)

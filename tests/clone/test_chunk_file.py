"""Chunk files: what was written comes back; cut or changed anywhere they are refused; a failed writer leaves none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from rplctl.clone.chunk_file import ChunkHead, SnapshotPosition, digest_of, read_chunk, write_chunk
from rplctl.errors import RelayLogError
from rplctl.event.jit import ByteArray
from rplctl.plain_file import UnfitFile

HEAD = ChunkHead(
    database="d",
    table="t",
    epoch=3,
    chunk=17,
    after=None,
    upto=("_latin1 x'41'", "5"),
    digest="ab" * 32,
    wire_types=(3, 253),
    low=SnapshotPosition("binlog.000001:4", "0-1-7"),
    gone=((0.1, b"\xff"), (-5, "é")),
)
PACKETS = [np.frombuffer(b"\x05\0\0\1\0\0abc", np.uint8), np.frombuffer(b"\x02\0\0\2\0\0", np.uint8)]


def written(path: Path, packets: list[ByteArray] = PACKETS) -> Path:
    with write_chunk(path, HEAD) as writer:
        for piece in packets:
            writer.add(piece)
        writer.high, writer.rows = SnapshotPosition("binlog.000001:99"), len(packets)
    return path


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    found = read_chunk(written(tmp_path / "17.rows"))
    assert (found.head, found.high, found.rows) == (HEAD, SnapshotPosition("binlog.000001:99"), 2)
    assert found.packets.tobytes() == b"".join(piece.tobytes() for piece in PACKETS)
    assert [path.name for path in tmp_path.iterdir()] == ["17.rows"]
    assert (tmp_path / "17.rows").stat().st_mode & 0o777 == 0o600


def test_a_chunk_of_no_row_is_a_whole_file(tmp_path: Path) -> None:
    assert len(read_chunk(written(tmp_path / "1.rows", [])).packets) == 0


def test_a_file_that_is_cut_is_refused_at_every_byte(tmp_path: Path) -> None:
    whole = written(tmp_path / "17.rows").read_bytes()
    torn = tmp_path / "torn.rows"
    for length in range(len(whole)):
        torn.write_bytes(whole[:length])
        with pytest.raises(RelayLogError) as caught:
            read_chunk(torn)
        assert caught.value.errno == 1594


def test_a_file_that_was_changed_or_has_more_is_refused_at_every_byte(tmp_path: Path) -> None:
    whole = written(tmp_path / "17.rows").read_bytes()
    other = tmp_path / "other.rows"
    for at in range(len(whole)):
        for bit in (1, 0x80):
            changed = bytearray(whole)
            changed[at] ^= bit
            other.write_bytes(bytes(changed))
            with pytest.raises(RelayLogError):
                read_chunk(other)
    for more in (b"\0", whole):
        other.write_bytes(whole + more)
        with pytest.raises(RelayLogError):
            read_chunk(other)


def _with_checksum(data: bytes) -> bytes:
    return data[:-12] + crc32(data[:-12]).to_bytes(4, "little") + data[-8:]


def test_a_file_changed_with_its_checksum_is_refused_or_holds_what_its_types_say(tmp_path: Path) -> None:
    whole = written(tmp_path / "17.rows").read_bytes()
    other = tmp_path / "other.rows"
    head = json.loads(whole[12 : 12 + int.from_bytes(whole[8:12], "little")])
    changed = [
        whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at in range(len(whole)) for bit in (1, 16, 128)
    ]
    odds: tuple[object, ...] = (None, -1, 1 << 70, 1e400, "x", [], [[]], {}, {"hex": 5}, [None], [{"a": 1}], True)
    for key in head:
        for odd in odds:
            text = json.dumps({**head, key: odd}).encode()
            changed.append(whole[:8] + len(text).to_bytes(4, "little") + text + whole[12 + len(json.dumps(head)) :])
    loaded = 0
    for data in map(_with_checksum, changed):
        other.write_bytes(data)
        try:
            found = read_chunk(other)
        except RelayLogError as error:
            assert error.errno == 1594 and str(other) in error.message and "rplctl show-clone" in error.hint
            continue
        loaded += 1
        assert all(type(code) is int and 0 <= code < 256 for code in found.head.wire_types)
        assert {type(t) for t in (found.head.database, found.head.table, found.high.gtids)} == {str}
        assert {type(n) for n in (found.head.epoch, found.head.chunk, found.rows)} == {int}
    assert 0 < loaded < len(changed) // 2


def test_a_fifo_in_the_place_of_a_chunk_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "17.rows")
    with pytest.raises(UnfitFile, match="a FIFO"):
        read_chunk(tmp_path / "17.rows")


def test_a_writer_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), write_chunk(tmp_path / "17.rows", HEAD) as writer:
        writer.add(PACKETS[0])
        raise KeyboardInterrupt
    with pytest.raises(ValueError), write_chunk(tmp_path / "18.rows", HEAD):
        pass  # nobody said H
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_its_name_yet_is_not_seen(tmp_path: Path) -> None:
    with write_chunk(tmp_path / "17.rows", HEAD) as writer:
        writer.add(PACKETS[0])
        assert not (tmp_path / "17.rows").exists()
        writer.high = SnapshotPosition("binlog.000001:5")
    assert read_chunk(tmp_path / "17.rows").rows == 0


def test_the_digest_is_that_of_the_definition_not_of_the_next_number() -> None:
    table = (
        "CREATE TABLE `t` (\n  `a` int NOT NULL AUTO_INCREMENT,\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB{} CHARSET=utf8mb4"
    )
    assert digest_of(table.format(" AUTO_INCREMENT=7")) == digest_of(table.format("")) != digest_of(table + "x")

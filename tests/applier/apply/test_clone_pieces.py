"""What of a snapshot is handed out, and in which order its chunks are committed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rplctl.applier.apply.clone_pieces import KEYS, DuePieces, GivenUp, Piece
from rplctl.clone.chunk_file import SnapshotPosition
from rplctl.clone.folder import StoredSnapshot


@pytest.fixture
def found(tmp_path: Path) -> StoredSnapshot:
    return StoredSnapshot(folder=tmp_path, table_group=1, epoch=1, low=SnapshotPosition("binlog.000001:4"), tables=())


def read(found: StoredSnapshot, *pieces: Piece) -> None:
    for piece in pieces:
        found.chunk_path(*piece).touch()


def opened(found: StoredSnapshot, *loaded: int, keyed: tuple[int, ...] = ()) -> DuePieces:
    return DuePieces(found, loaded, keyed, lambda: False)


def taken(pieces: DuePieces) -> list[Piece]:
    """By one thread, each ended before the next."""
    given: list[Piece] = []
    while (piece := pieces.next()) is not None:
        pieces.await_turn(piece)
        pieces.end(piece)
        given.append(piece)
    return given


def test_a_table_gets_its_keys_when_all_its_chunks_are_there(found: StoredSnapshot) -> None:
    read(found, (0, 0), (0, 1), (1, 0))
    assert taken(opened(found, 0, 0)) == [(0, 0), (0, 1), (0, KEYS), (1, 0)]  # the second is read still
    assert taken(opened(found, 2, 1, keyed=(0,))) == []
    found.complete([2, 1])
    assert taken(opened(found, 2, 1, keyed=(0,))) == [(1, KEYS)]
    assert taken(opened(found, 2, 1, keyed=(0, 1))) == []


def test_where_a_copy_goes_on_behind_a_crash(found: StoredSnapshot) -> None:
    read(found, (0, 1), (0, 2))
    found.complete([3, 0])
    assert taken(opened(found, 1, 0)) == [(0, 1), (0, 2), (0, KEYS), (1, KEYS)]


def test_chunks_of_a_table_commit_in_their_order(found: StoredSnapshot) -> None:
    read(found, (0, 0), (0, 1))
    pieces = opened(found, 0)
    first, second = pieces.next(), pieces.next()
    assert first == (0, 0) and second == (0, 1)
    order: list[Piece] = []

    def later() -> None:
        pieces.await_turn(second)
        order.append(second)
        pieces.end(second)

    thread = threading.Thread(target=later)
    thread.start()
    thread.join(0.05)
    order.append(first)
    pieces.end(first)
    thread.join()
    assert order == pieces.done == [first, second]


def test_what_waits_behind_a_failure_is_given_up(found: StoredSnapshot) -> None:
    read(found, (0, 0), (0, 1), (0, 2))
    pieces = opened(found, 0)
    first, second = pieces.next(), pieces.next()
    assert first is not None and second is not None
    failure = OSError("gone")
    pieces.end(first, failure)
    with pytest.raises(GivenUp) as given_up:
        pieces.await_turn(second)
    pieces.end(second, given_up.value)
    assert pieces.failure is failure and pieces.done == [] and pieces.next() is None

"""Rows of a copy go through the pool: what its tasks answer is what this process decodes, and a lie is not used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.applier.apply.clone_rows import decoded, pieces_of_file
from rplctl.applier.spark import split_task
from rplctl.applier.spark.answer import Attempt, answer_of
from rplctl.applier.spark.copy_task import run_copy
from rplctl.applier.spark.failure import TasksFailed
from rplctl.applier.spark.pool import ChannelPool, Pool
from rplctl.applier.spark.split_task import SplitResult, encode_chunks, pieces_of
from rplctl.clone.chunk_file import ChunkHead, SnapshotPosition, read_chunk, write_chunk
from rplctl.decode.copied_rows import CopyPiece, copied_chunk, decode_here
from rplctl.errors import BinlogFormatError
from rplctl.schema.plan import Catalog
from rplctl.target import open_target
from rplctl.target.base import TableChunk
from tests.applier.apply.test_clone_rows import COLUMNS, KEYED, given
from tests.applier.spark.test_pool import Liar, Lie, begin, broken, half_written, linked, lying, pool, serve, spooled
from tests.result_set.packets import texts

__all__ = ["pool"]  # the fixture
ROWS = 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    _, wire_types, packets = texts(ROWS)
    path = tmp_path / "0.rows"
    with write_chunk(
        path,
        ChunkHead(
            database="b",
            table="t",
            epoch=1,
            chunk=0,
            after=None,
            upto=None,
            digest="",
            wire_types=tuple(wire_types),
            low=SnapshotPosition(),
        ),
    ) as file:
        file.add(np.frombuffer(packets, np.uint8))
        file.high, file.rows = SnapshotPosition(), ROWS
    return path


@pytest.fixture(params=["sqlite", "mysql"])
def piece(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> CopyPiece:
    """As values in columns, or framed."""
    target = open_target(f"sqlite:///{tmp_path / 't.db'}")
    (found,) = pieces_of_file(read_chunk(path), COLUMNS, KEYED, target, tmp_path / "spool")
    target.close()
    return (
        found if request.param == "sqlite" else replace(found, target_kind="mysql", bulk_rows=200, length_prefixed=True)
    )


@pytest.fixture
def channel(pool: Pool) -> ChannelPool:
    return ChannelPool(pool, "", takes_all=True)


def by_tasks(channel: ChannelPool, piece: CopyPiece) -> TableChunk:
    (chunk,) = channel.chunks([piece], Catalog())
    assert chunk.by_spark
    return replace(chunk, by_spark=False)


@pytest.mark.long("tests/stories/test_rows_by_spark.py compares the rows that tasks decode with those of the log.")
@pytest.mark.parametrize("is_spooled", [False, True])
def test_tasks_answer_with_the_rows_that_this_process_decodes(
    pool: Pool, channel: ChannelPool, piece: CopyPiece, is_spooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_spooled:
        monkeypatch.setattr(split_task, "SPOOL_THRESHOLD", 10)
    serve(pool)
    (here,) = decode_here([piece])
    assert given(by_tasks(channel, piece)) == given(here)
    assert pool.verified.rows == ROWS
    assert not list(Path(piece.spool_folder).glob("*"))


@pytest.mark.long(
    "tests/stories/test_rows_by_spark.py has tasks in make test; rows of a copy that a target refuses are rare.",
)
def test_rows_that_the_target_refuses_come_again_one_by_one(
    pool: Pool, channel: ChannelPool, path: Path, tmp_path: Path
) -> None:
    serve(pool)
    target = open_target(f"sqlite:///{tmp_path / 't.db'}")
    target.bulk_rows = 200
    decode = lambda pieces: channel.chunks(pieces, Catalog())  # noqa: E731
    (rows,) = decoded(read_chunk(path), COLUMNS, KEYED, target, tmp_path / "spool", decode)
    assert [row[0] for row in rows.one_by_one().rows] == list(range(ROWS))
    target.close()


def test_a_chunk_that_was_replaced_meanwhile_is_one_that_is_gone(
    pool: Pool, channel: ChannelPool, piece: CopyPiece, path: Path
) -> None:
    serve(pool)
    kept = path.open("rb")  # so that the number of the file is not given to another
    (path.parent / "new").write_bytes(path.read_bytes())
    (path.parent / "new").rename(path)
    with pytest.raises(FileNotFoundError):
        channel.chunks([piece], Catalog())
    path.unlink()
    with pytest.raises(FileNotFoundError):
        channel.chunks([piece], Catalog())
    kept.close()


def test_packets_that_are_no_rows_are_an_error_of_the_log(pool: Pool, channel: ChannelPool, piece: CopyPiece) -> None:
    serve(pool)
    with pytest.raises(BinlogFormatError):
        channel.chunks([replace(piece, start=piece.start + 1)], Catalog())


def true_answer(attempt: Attempt) -> SplitResult:
    assert isinstance(attempt.piece, CopyPiece)
    return run_copy(replace(attempt.piece, spool_folder=""), "")


def changed(attempt: Attempt, **changes: Any) -> list[bytes]:
    """An answer whose rows are right but for the changes."""
    assert isinstance(attempt.piece, CopyPiece)
    chunk = replace(copied_chunk(attempt.piece), **changes)
    return with_chunks(attempt, [chunk], chunk.change_count)


def with_chunks(attempt: Attempt, chunks: list[TableChunk], rows: int) -> list[bytes]:
    return answer_of(attempt, SplitResult(inline=b"".join(pieces_of(encode_chunks(chunks))), rows=rows))


def fewer(attempt: Attempt) -> list[bytes]:
    """Consistent in itself: the rows of a piece without its last packets."""
    assert isinstance(attempt.piece, CopyPiece)
    chunk = copied_chunk(attempt.piece)
    return with_chunks(attempt, [replace(chunk, inserts=[], bulk=None, change_count=0)], 0)


def twice(attempt: Attempt) -> list[bytes]:
    assert isinstance(attempt.piece, CopyPiece)
    return with_chunks(attempt, [copied_chunk(attempt.piece)] * 2, 2 * ROWS)


LIES: dict[str, Lie] = {
    "an answer of an attempt before": lambda a: answer_of(replace(a, token=bytes(16)), true_answer(a)),
    "an answer of another piece": lambda a: answer_of(replace(a, number=a.number + 1), true_answer(a)),
    "a wrong checksum": lambda a: broken(answer_of(a, true_answer(a))),
    "a wrong number of rows": lambda a: answer_of(a, replace(true_answer(a), rows=ROWS - 1)),
    "fewer rows than there are": fewer,
    "the rows twice": twice,
    "rows of another table": lambda a: changed(a, table="user"),
    "a row that is to go": lambda a: changed(a, deletes=[(1,)]),
    "no rows": lambda a: with_chunks(a, [], 0),
    "an answer without a result": lambda a: answer_of(a, SplitResult()),
    "an error of no kind": lambda a: answer_of(
        a, SplitResult(error=dict.fromkeys(("kind", "message", "errno", "position", "hint"), "exec"))
    ),
    "a spool file outside the folder": lambda a: answer_of(a, spooled(Path(a.piece.path).with_name("mine"))),  # type: ignore[union-attr]
    "a spool file that is half written": half_written,
    "a spool file that is a link": linked,
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_about_a_copy_is_not_used_and_its_piece_is_given_again(
    pool: Pool, channel: ChannelPool, piece: CopyPiece, name: str
) -> None:
    (here,) = decode_here([piece])
    with lying(pool, LIES[name]):
        assert given(by_tasks(channel, piece)) == given(here)
    assert pool.verified.rows == ROWS


def ask(pool: Pool, piece: CopyPiece) -> None:
    with suppress(TasksFailed):
        pool.run("", [piece], Catalog())


def test_a_late_answer_of_a_killed_applier_reaches_nobody(
    pool: Pool, channel: ChannelPool, piece: CopyPiece, tmp_path: Path
) -> None:
    """Its pool is gone with its socket, and the next one's token is another."""
    before = Pool(tmp_path / "before", "channel ''")
    late = Liar(before)
    thread = begin(lambda: ask(before, piece))
    attempt = late.attempt()
    before.close()
    thread.join()
    with pytest.raises(OSError):
        for _ in range(100):
            late.connection.sendall(b"".join(answer_of(attempt, true_answer(attempt))))
    late.close()
    with lying(pool, lambda _: answer_of(attempt, true_answer(attempt))):
        assert by_tasks(channel, piece).change_count == ROWS
    assert pool.verified.ranges == 1


@pytest.fixture(autouse=True)
def _no_leftovers(tmp_path: Path) -> Iterator[None]:
    yield
    assert not list((tmp_path / "spool").glob("*.chunks"))

"""Rows events in order are decoded by tasks of a pool: the target gets what it gets where the driver decodes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.applier.apply import rows_ahead
from rplctl.applier.spark import split_task
from rplctl.applier.spark.answer import Attempt, answer_of
from rplctl.applier.spark.copy_task import run_ordered
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.applier.spark.pool import ChannelPool, Pool
from rplctl.applier.spark.split_task import SplitResult, encode_chunks, pieces_of
from rplctl.decode.ordered_rows import OrderedPiece, ordered_chunks
from rplctl.durable import private_folder
from rplctl.errors import RplError
from rplctl.schema.plan import Catalog
from rplctl.target.base import RowChange, TableChunk
from tests.applier.instance import Instance
from tests.applier.scenario import FOLDER, apply_in_order, scenario
from tests.applier.spark.test_pool import (
    Liar,
    Lie,
    begin,
    broken,
    elsewhere,
    half_written,
    linked,
    lying,
    pool,
    serve,
)

__all__ = ["pool"]  # the fixture
SCENARIOS = sorted(path.stem for path in FOLDER.glob("*.binlog"))


class PooledPipeline(InProcessPipeline):
    """Rows in order are decoded by the pool, which a test serves; splits as in the base."""

    takes_all = True

    def __init__(self, channel: ChannelPool) -> None:
        super().__init__()
        self._channel = channel
        self.asked: list[OrderedPiece] = []

    def in_order(self, pieces: Sequence[OrderedPiece], catalog: Catalog) -> list[TableChunk]:
        self.asked += pieces
        return self._channel.chunks(pieces, catalog)


@pytest.fixture
def pipeline(pool: Pool) -> PooledPipeline:
    return PooledPipeline(ChannelPool(pool, "", takes_all=True))


def with_pool(instance: Instance, pipeline: PooledPipeline) -> Instance:
    instance.pipeline = pipeline
    instance.applier = instance.reopen()
    return instance


@pytest.fixture
def instance(tmp_path: Path, pipeline: PooledPipeline) -> Iterator[Instance]:
    made = with_pool(Instance(tmp_path / "instance"), pipeline)
    yield made
    made.target.close()


def applied(instance: Instance, name: str) -> tuple[object, list[str]]:
    """What applying ends with, and what the target holds then."""
    try:
        outcome: object = apply_in_order(instance, scenario(name))
    except RplError as error:
        outcome = (type(error), error.message, error.errno, error.position)
    connection = instance.target.engine.raw_connection()
    dump = [line for line in connection.driver_connection.iterdump() if "rplctl" not in line]  # type: ignore[union-attr]
    connection.close()
    return outcome, dump


@pytest.mark.long("Two kinds of log stay.", keeps=r"^(cascades|savepoints)$")
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_target_gets_what_it_gets_from_the_driver(
    name: str, pool: Pool, instance: Instance, pipeline: PooledPipeline, tmp_path: Path
) -> None:
    serve(pool)
    other = Instance(tmp_path / "other")
    assert applied(instance, name) == applied(other, name)
    other.target.close()
    counts, others = instance.applier.bulk, other.applier.bulk
    assert others.rows_by_spark == 0
    assert counts.rows_by_spark + counts.rows_by_driver == others.rows_by_driver
    assert bool(counts.rows_by_spark) == bool(pipeline.asked)


def test_a_stretch_ends_before_a_statement_and_is_cut_for_the_tasks(
    pool: Pool, instance: Instance, pipeline: PooledPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_ahead, "PIECE_BYTES", 60)
    serve(pool)
    apply_in_order(instance, scenario("ddl"))
    bounds = [(piece.start, piece.end) for piece in pipeline.asked]
    assert bounds == sorted(bounds) and len(bounds) > 2
    assert instance.applier.bulk.rows_by_driver == 0 < instance.applier.bulk.rows_by_spark


def test_large_events_and_their_values_travel_by_private_files_that_are_gone_then(
    pool: Pool, instance: Instance, pipeline: PooledPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_ahead, "LARGEST_INLINE", 10)
    monkeypatch.setattr(split_task, "SPOOL_THRESHOLD", 10)
    serve(pool)
    apply_in_order(instance, scenario("ddl"))
    assert all(piece.path and not piece.events for piece in pipeline.asked)
    assert instance.applier.bulk.rows_by_spark > 0
    assert not list(instance.channel.spool_folder.iterdir())


def test_an_event_that_a_task_leaves_out_is_decoded_by_the_driver(instance: Instance, pool: Pool) -> None:
    def nothing(attempt: Attempt) -> list[bytes]:
        assert isinstance(attempt.piece, OrderedPiece)
        return with_chunks(attempt, [NOTHING] * len(attempt.piece.tables))

    liar = Liar(pool)

    def answer_once() -> None:
        liar.answer(nothing)
        liar.close()  # the answer is used, so the pool would give it the next range, too
        serve(pool)

    thread = begin(answer_once)
    apply_in_order(instance, scenario("ddl"))
    thread.join()
    assert instance.applier.bulk.rows_by_driver > 0 < instance.applier.bulk.rows_by_spark


NOTHING = TableChunk(database="", table="", change_count=0, foreign_keys_off=False)


def with_chunks(attempt: Attempt, chunks: list[TableChunk]) -> list[bytes]:
    rows = sum(chunk.change_count for chunk in chunks)
    return answer_of(attempt, SplitResult(inline=b"".join(pieces_of(encode_chunks(chunks))), rows=rows))


def true_chunks(attempt: Attempt) -> list[TableChunk]:
    assert isinstance(attempt.piece, OrderedPiece)
    found = ordered_chunks(attempt.piece, CATALOGS[-1])
    assert all(chunk.ordered for chunk in found)
    return found


CATALOGS: list[Catalog] = []


def true_answer(attempt: Attempt) -> SplitResult:
    assert isinstance(attempt.piece, OrderedPiece)
    return run_ordered(replace(attempt.piece, spool_folder=""), CATALOGS[-1], "")


def turned(change: RowChange) -> RowChange:
    return replace(change, before=change.after, after=change.before)


LIES: dict[str, Lie] = {
    "an answer of an attempt before": lambda a: answer_of(replace(a, token=bytes(16)), true_answer(a)),
    "a wrong checksum": lambda a: broken(answer_of(a, true_answer(a))),
    "a wrong number of rows": lambda a: answer_of(a, replace(true_answer(a), rows=7777)),
    "an event less": lambda a: with_chunks(a, true_chunks(a)[1:]),
    "an event more": lambda a: with_chunks(a, [*true_chunks(a), NOTHING]),
    "changes of another table": lambda a: with_chunks(a, [replace(c, table="user") for c in true_chunks(a)]),
    "deletes in place of inserts": lambda a: with_chunks(
        a, [replace(c, ordered=[*map(turned, c.ordered)]) for c in true_chunks(a)]
    ),
    "more than changes": lambda a: with_chunks(a, [replace(c, deletes=[(1,)]) for c in true_chunks(a)]),
    "an error": lambda a: answer_of(
        a, SplitResult(error={"kind": "error", "message": "", "errno": 0, "position": "", "hint": ""})
    ),
    "a spool file that is half written": half_written,
    "a spool file that is a link": linked,
    "a spool file of another name": elsewhere,
}


@pytest.mark.long(
    "Four lies stay; all are refused at one place.",
    keeps=r"^(a wrong checksum|an answer of an attempt before|a wrong number of rows|a spool file that is a link)$",
)
@pytest.mark.parametrize("name", LIES)
def test_a_lie_about_events_in_order_is_not_used_and_they_are_given_again(
    name: str, pool: Pool, instance: Instance, pipeline: PooledPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = pipeline.in_order

    def noting(pieces: Sequence[OrderedPiece], catalog: Catalog) -> list[TableChunk]:
        CATALOGS.append(catalog)
        return ask(pieces, catalog)

    monkeypatch.setattr(pipeline, "in_order", noting)
    private_folder(instance.channel.spool_folder.parent)
    with lying(pool, LIES[name]):
        apply_in_order(instance, scenario("ddl"))
    assert instance.query("SELECT id, price, name FROM ddl__goods ORDER BY id") == GOODS
    assert instance.applier.bulk.rows_by_driver == 0 < instance.applier.bulk.rows_by_spark


GOODS = [(1, "1.50", "ONE"), (2, "1.50", "TWO"), (3, "2.25", "three")]

"""A batch in bulk: job after job in one transaction, and what does not fit told before anything is committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.applier.apply.bulk import BulkApplier
from rplctl.applier.apply.committer import How
from rplctl.applier.feed.batch_size import FIRST_BYTES_AS_TEXT, FIRST_BYTES_AS_VALUES
from rplctl.applier.feed.plan import Batch, BatchKind, plan_batches
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.spark.pipeline import UnknownTables
from rplctl.applier.spark.split_task import Split
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.decode.net_changes import Inconsistent
from rplctl.errors import RplError
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import TableName
from rplctl.target.base import KeylessMismatch, RowSet, TableChunk
from tests.applier.apply.live_target import catalog_of
from tests.applier.apply.test_batch import FILES, first_bulk
from tests.applier.demo_log import demo_groups
from tests.applier.instance import Instance

CATALOG = catalog_of(
    "CREATE TABLE t (a INT PRIMARY KEY)", "CREATE TABLE u (a INT PRIMARY KEY)", "CREATE TABLE bag (a INT)"
)


def chunk(table: str = "t", count: int = 1, **more: Any) -> TableChunk:
    plain = TableChunk(
        database="d",
        table=table,
        absent=[],
        deletes=[],
        updates=[],
        inserts=[RowSet((0,), [(n,) for n in range(count)])],
        ordered=[],
        change_count=count,
        foreign_keys_off=False,
    )
    return replace(plain, **more)


class Parts:
    """What a BulkApplier is made of, and what it said to them; it is its target and its tables, too."""

    kind, takes_length_prefixed, statements = "sqlite", True, None
    catalog = CATALOG

    def __init__(
        self,
        folder: Path,
        *,
        bulk_rows: int = 0,
        in_xa: bool = False,
        loads_prepared: bool = False,
        max_bytes: int = 1 << 30,
        branches: Any = None,
    ) -> None:
        self.said: list[Any] = []
        self.has_no_more = True
        self.parents: set[tuple[str, str]] = set()
        self.bulk_rows, self.loads_prepared = bulk_rows, loads_prepared
        self.pipeline: Any = SimpleNamespace(parallelism=1, largest_job=1 << 62)
        self.tables: Any = self
        config = Config(datadir=folder, max_batch_bytes=max_bytes)
        parts: Any = (config, Channel("", folder), self, self, self.pipeline, Interrupter(threading.Event()))
        self.bulk = BulkApplier(*parts, in_xa=in_xa, branches=branches)

    def know(self, names: Iterable[TableName]) -> Catalog:
        if found := list(names):
            self.said.append(("know", *found))
        return self.catalog

    def find(self, unknown: UnknownTables) -> Catalog:
        self.said.append(("find", *unknown.names))
        self.catalog = CATALOG
        return self.catalog

    def check_bulk(self, models: Sequence[TableModel]) -> None:
        self.said.append(("check", *sorted(model.name for model in models)))

    def cascading_parents(self) -> set[TableName]:
        return self.parents

    def check_table(self, model: TableModel) -> None:
        self.said.append(model.name)

    def takes_multisets(self, model: TableModel) -> bool:
        self.said.append(f"bag {model.name}")
        return self.has_no_more

    def apply_chunks(self, piece: Sequence[TableChunk], models: object) -> None:
        self.said.append([one.table for one in piece])

    def looked(self) -> list[Any]:
        """What was asked of tables before their rows were applied."""
        return [said for said in self.said if isinstance(said, str | tuple)]

    def applied(self) -> list[list[str]]:
        return [said for said in self.said if isinstance(said, list)]


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path)
    yield made
    made.bulk.close()


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    made = Instance(tmp_path)
    yield made
    made.target.close()


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"bulk_rows": 200}, FIRST_BYTES_AS_TEXT),
        ({"bulk_rows": 0}, FIRST_BYTES_AS_VALUES),
        ({"bulk_rows": 200, "in_xa": True}, FIRST_BYTES_AS_VALUES),
        ({"bulk_rows": 200, "in_xa": True, "loads_prepared": True}, FIRST_BYTES_AS_TEXT),
        ({"bulk_rows": 200, "max_bytes": 1 << 20}, 1 << 20),
    ],
)
def test_the_first_batch_is_as_large_as_the_form_of_its_rows_lets_it(
    tmp_path: Path, options: dict[str, Any], first: int
) -> None:
    assert Parts(tmp_path, **options).bulk.size.batch_bytes == first


def demo_batch() -> Batch:
    groups = demo_groups()
    return next(batch for batch in plan_batches(groups, len(groups.scan)) if batch.kind is BatchKind.BULK)


Jobs = Callable[..., int]  # of lists of chunks


@pytest.fixture
def apply_jobs(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Apply one batch that is decoded as the given jobs; the transaction says whether foreign keys act in it."""
    parts.pipeline.largest_job = 1  # each piece of the log is a job

    def commit(apply: Callable[[], None], *, foreign_keys: bool, how: How) -> None:
        assert how is How.TOGETHER
        parts.said.append(foreign_keys)
        apply()

    def applied(*jobs: list[TableChunk]) -> int:
        decoded = iter(jobs)
        parts.pipeline.decode = lambda splits, catalog: next(decoded)
        whole = demo_batch()
        batch = replace(whole, last=whole.first + 10 * len(jobs))  # cut into that many pieces
        monkeypatch.setattr("rplctl.applier.spark.splits.SMALLEST_SPLIT", -(-(batch.end - batch.start) // len(jobs)))
        changes = parts.bulk.apply(batch, commit)
        assert next(decoded, None) is None
        return changes

    return applied


def test_a_table_is_looked_at_once_until_ddl_is_committed(parts: Parts, apply_jobs: Jobs) -> None:
    apply_jobs([chunk("t"), chunk("t")])
    apply_jobs([chunk("t"), chunk("u")])
    assert parts.looked() == [("check", "t"), "t", ("check", "t", "u"), "u"]
    parts.bulk.forget_tables()
    parts.said.clear()
    apply_jobs([chunk("t")])
    assert parts.looked() == [("check", "t"), "t"]


def test_foreign_keys_rest_where_parents_are_changed_or_the_source_did_not_check(
    parts: Parts, apply_jobs: Jobs
) -> None:
    def rest(*chunks: TableChunk) -> bool:
        parts.said.clear()
        apply_jobs(list(chunks))
        (acting,) = (said for said in parts.said if isinstance(said, bool))
        return not acting

    assert not rest(chunk("t"), chunk("u"))
    assert rest(chunk("t", foreign_keys_off=True), chunk("u"))
    parts.tables.parents = {("d", "t")}
    assert rest(chunk("t", cascades_logged=True))
    assert not rest(chunk("u"))
    with pytest.raises(Inconsistent, match="cascade"):
        apply_jobs([chunk("u"), chunk("t")])
    with pytest.raises(Inconsistent, match="cascade"):
        apply_jobs([chunk("t", cascades_logged=True), chunk("t")])


def test_rows_without_a_key_go_by_their_number_only_where_the_target_has_no_more_of_them(
    parts: Parts, apply_jobs: Jobs
) -> None:
    multiset = chunk("bag", deletes=[(1, 2)])
    for _ in range(2):
        apply_jobs([multiset])
    assert parts.said.count("bag bag") == 1
    parts.bulk.forget_tables()
    parts.has_no_more = False
    apply_jobs([chunk("bag")])  # rows that come alone are not looked for
    for _ in range(2):
        with pytest.raises(KeylessMismatch) as caught:
            apply_jobs([multiset])
        assert caught.value.table == ("d", "bag")


def test_chunks_of_one_split_are_applied_together(parts: Parts, apply_jobs: Jobs) -> None:
    apply_jobs([chunk("t"), chunk("u"), chunk("t"), chunk("t"), chunk("bag")])
    assert parts.applied() == [["t", "u"], ["t"], ["t", "bag"]]


def test_a_job_that_meets_unknown_tables_is_done_again_with_them(parts: Parts) -> None:
    asked: list[Catalog] = []

    def decode(splits: object, catalog: Catalog) -> list[TableChunk]:
        asked.append(catalog)
        if catalog is not CATALOG:
            raise UnknownTables([("d", "t")])
        return [chunk()]

    parts.pipeline.decode = decode
    parts.tables.catalog = Catalog()
    assert parts.bulk.apply(demo_batch(), lambda apply, **_: apply()) == 1
    assert len(asked) == 2 and ("find", ("d", "t")) in parts.said and parts.applied() == [["t"]]


def test_all_jobs_are_applied_in_the_transaction_that_the_first_one_asked_for(parts: Parts, apply_jobs: Jobs) -> None:
    assert apply_jobs([chunk("t", 2)], [chunk("u", 3)]) == 5
    assert [said for said in parts.said if isinstance(said, bool | list)] == [True, ["t"], ["u"]]
    parts.said.clear()
    off = chunk("t", foreign_keys_off=True)
    assert apply_jobs([off], [off], [chunk("u")]) == 3
    assert [said for said in parts.said if isinstance(said, bool | list)] == [False, ["t"], ["t"], ["u"]]


def test_large_tables_that_nothing_joins_are_shared_among_branches(tmp_path: Path) -> None:
    shared: list[list[int]] = []
    branches = SimpleNamespace(count=2, apply=lambda shares: shared.append(sorted(shares)))
    parts = Parts(tmp_path, branches=branches)
    parts.pipeline.decode = lambda splits, catalog: [chunk("t", 2000), chunk("u", 2000)]
    asked: list[How] = []

    def commit(apply: Callable[[], None], *, foreign_keys: bool, how: How) -> None:
        asked.append(how)
        apply()

    for _ in range(2):
        assert parts.bulk.apply(demo_batch(), commit) == 4000
    assert (asked, shared) == ([How.PARALLEL, How.PARALLEL], [[0, 1], [0, 1]])
    parts.bulk.close()


def test_rows_without_foreign_key_checks_behind_others_do_not_fit(apply_jobs: Jobs) -> None:
    with pytest.raises(Inconsistent, match="foreign_key_checks=0"):
        apply_jobs([chunk("t")], [chunk("u", foreign_keys_off=True)])


def test_a_batch_of_many_jobs_leaves_what_one_leaves_and_says_when_its_last_begins(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Instance(tmp_path / "whole")
    groups = demo_groups()
    batch, jobs = first_bulk(instance, groups), instance.pipeline.jobs
    assert first_bulk(whole, groups) == batch
    monkeypatch.setattr("rplctl.applier.spark.splits.SMALLEST_SPLIT", 4096)
    instance.applier.bulk.size.batch_bytes = 4096
    begun: list[int] = []
    told: list[tuple[int, int]] = []
    size = instance.applier.bulk.size
    monkeypatch.setattr(size, "job_decoded", lambda changes, net: told.append((changes, net)))
    changes = instance.applier.apply(batch, lambda: begun.append(instance.pipeline.jobs - jobs))
    made = instance.pipeline.jobs - jobs
    monkeypatch.undo()
    assert whole.applier.apply(batch) == changes and made > 2
    assert len(begun) == 1 and made - 2 <= begun[0] <= made
    assert sum(of_job for of_job, _ in told) == changes and all(0 < net <= of_job for of_job, net in told)
    for model in instance.applier.catalog.tables.values():
        sql = f"SELECT * FROM {model.database}__{model.name} ORDER BY 1"
        assert instance.query(sql) == whole.query(sql)
    whole.target.close()


def test_what_was_decoded_before_its_turn_is_not_decoded_again(instance: Instance) -> None:
    for name in FILES[:-1]:
        instance.apply(demo_groups(name))
    groups, jobs = demo_groups(FILES[-1]), instance.pipeline.jobs
    instance.applier.bulk.expect(groups, len(groups.scan), lambda: 0)
    assert instance.applier.apply(next(plan_batches(groups, len(groups.scan)))) > 0
    assert instance.pipeline.jobs == jobs + 1


def test_only_bulk_batches_that_lie_in_the_log_are_begun_ahead(parts: Parts) -> None:
    begun: list[tuple[str, int]] = []
    decoded = threading.Event()

    def decode(splits: list[Split], catalog: Catalog) -> list[TableChunk]:
        begun.append((splits[0].path, splits[0].start))
        decoded.set()
        return []

    parts.pipeline.decode = decode
    ddl, rows = demo_groups(FILES[0]), demo_groups(FILES[-1])
    kinds = [next(plan_batches(groups, len(groups.scan))).kind for groups in (ddl, rows)]
    assert BatchKind.BULK not in kinds[:1] and kinds[1] is BatchKind.BULK
    parts.bulk.expect(ddl, len(ddl.scan), lambda: 0)
    parts.bulk.expect(rows, 0, lambda: 0)
    parts.bulk.expect(rows, len(rows.scan), lambda: 0)
    assert decoded.wait(60)
    assert begun == [(str(rows.path), int(rows.scan.start[0]))]  # one thread, in turn: nothing else was begun before


def test_tables_are_learned_before_the_first_rows_where_the_target_describes_itself(parts: Parts) -> None:
    batch = demo_batch()
    parts.bulk.learn_tables(batch)
    parts.tables.statements = parts.tables
    parts.bulk.learn_tables(batch)  # some are known
    parts.tables.catalog = Catalog()
    parts.bulk.learn_tables(replace(batch, kind=BatchKind.SINGLE))
    assert parts.said == []
    parts.bulk.learn_tables(batch)
    assert parts.said and parts.said[0][0] == "know" and ("shop", "customers") in parts.said[0]
    parts.bulk.learn_tables(batch)
    assert len(parts.said) == 1  # a filter may leave out all that comes: it is not asked for with each transaction


def test_what_fails_when_tables_are_learned_is_met_again_in_its_turn(parts: Parts) -> None:
    def fail(names: object) -> Catalog:
        raise RplError("met again in its turn")

    parts.tables.statements = parts.tables
    parts.tables.catalog = Catalog()
    parts.tables.know = fail
    parts.bulk.learn_tables(demo_batch())


def test_tables_whose_rows_go_one_by_one_are_told_to_the_tasks(parts: Parts) -> None:
    batch, given = demo_batch(), list[Split]()

    def decode(splits: list[Split], catalog: Catalog) -> list[TableChunk]:
        given.extend(splits)
        return []

    def refuse(apply: Callable[[], None], **_: object) -> None:
        raise KeylessMismatch("d", "bag", "two rows instead of one")

    parts.pipeline.decode = decode
    with pytest.raises(KeylessMismatch):
        parts.bulk.apply(batch, refuse)
    parts.bulk.apply(batch, lambda apply, **_: apply())
    parts.bulk.forget_tables()
    parts.bulk.apply(batch, lambda apply, **_: apply())
    _, told, forgotten = given
    assert told.in_order == {("d", "bag")} and told.length_prefixed and told.bulk_rows == 0
    assert forgotten.in_order == frozenset() and forgotten.start == batch.start

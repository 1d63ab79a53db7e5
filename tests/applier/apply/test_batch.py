"""A batch into the target: whole, exact, and stopped at the very transaction that does not fit (design D2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rplctl.demo
from rplctl.applier.apply import committer
from rplctl.applier.feed.plan import Batch, BatchKind, plan_batches
from rplctl.demo.checksum import sqlite_checksum
from rplctl.errors import RplError, TargetError
from rplctl.event.header import BINLOG_MAGIC
from rplctl.event.scan import GroupKind
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.model import Column, TableModel
from rplctl.schema.plan import DatabaseModel
from rplctl.target.base import CountMismatch, RowChange
from tests.applier.demo_log import demo_groups, groups_of
from tests.applier.instance import Instance, transactions_in_order
from tests.event.logs import event, events, log

FILES = ("binlog.000001", "binlog.000002", "binlog.000003")


def batches_between(groups: RelayGroups, start: int, stop: int) -> Iterator[Batch]:
    for batch in plan_batches(groups, stop):
        if batch.last > start:
            yield Batch(kind=batch.kind, groups=groups, first=max(batch.first, start), last=batch.last)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    made = Instance(tmp_path)
    yield made
    made.target.close()


def assert_equals_source(instance: Instance) -> None:
    driver = instance.target.connection.connection.driver_connection
    for table in rplctl.demo.source_state().tables:
        name = f"{table.database}__{table.name}"
        found = sqlite_checksum(driver, name, table.columns, table.primary_key)  # type: ignore[arg-type]
        assert found == (table.rows, table.sha256), name


def test_the_recorded_source_is_reproduced_to_the_byte(instance: Instance) -> None:
    for name in FILES:
        instance.apply(demo_groups(name))
    assert_equals_source(instance)
    assert instance.applier.info.exec_position == demo_groups(FILES[-1]).end_source
    assert instance.applier.info.gtid_executed.startswith("0-")


def test_a_restart_between_any_two_batches_goes_on_where_it_was(instance: Instance) -> None:
    for name in FILES:
        groups = demo_groups(name)
        for stop in range(len(groups.scan) // 3, len(groups.scan) + 1, len(groups.scan) // 3):
            at = instance.applier.info.relay_log_position
            done = (
                int(np.searchsorted(groups.scan.end, at.log_pos, side="right")) if at.log_name == groups.log_name else 0
            )
            for batch in batches_between(groups, done, stop):
                instance.applier.apply(batch)
            instance.applier = instance.reopen()
        for batch in batches_between(groups, stop, len(groups.scan)):
            instance.applier.apply(batch)
    assert_equals_source(instance)


def test_many_transactions_take_one_job(instance: Instance) -> None:
    groups = demo_groups()
    instance.apply(groups)
    ddl = int((groups.scan.kind == GroupKind.QUERY).sum())
    assert int((groups.scan.kind == GroupKind.ROWS).sum()) > 50
    assert instance.pipeline.jobs <= ddl + 1


def test_a_row_that_is_missing_on_the_target_stops_at_its_transaction(instance: Instance) -> None:
    instance.apply(demo_groups(FILES[0]))
    instance.execute("DELETE FROM shop__customers WHERE id = (SELECT max(id) FROM shop__customers)")
    before = instance.applier.info.exec_position
    with pytest.raises(TargetError) as caught:
        for name in FILES[1:]:
            instance.apply(demo_groups(name))
    assert caught.value.errno == 1032
    assert "rows_v1 event on table shop.customers; Can't find record in 'customers'" in caught.value.message
    stopped = instance.applier.info.exec_position
    assert not stopped.is_before(before)
    assert instance.reopen().info.exec_position == stopped


def test_a_long_batch_that_does_not_fit_is_halved_and_stops_at_the_same_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not gone through in order from its start: that takes minutes where there are 100,000 transactions."""
    stops, most_in_order = [], []
    for most in (1000, 4):
        in_order = transactions_in_order(monkeypatch)
        monkeypatch.setattr("rplctl.applier.apply.strategy.MOST_IN_ORDER", most)
        instance = Instance(tmp_path / str(most))
        instance.apply(demo_groups(FILES[0]))
        instance.execute("DELETE FROM shop__customers WHERE id = (SELECT max(id) FROM shop__customers)")
        with pytest.raises(TargetError) as caught:
            for name in FILES[1:]:
                instance.apply(demo_groups(name))
        stops.append((caught.value.errno, caught.value.message, instance.applier.info.exec_position))
        most_in_order.append(max(in_order))
        instance.target.close()
    assert stops[0] == stops[1]
    assert most_in_order[0] > 4 >= most_in_order[1]


def test_a_row_that_is_there_already_stops_with_everything_before_it_committed(instance: Instance) -> None:
    groups = demo_groups(FILES[0])
    kinds = groups.scan.kind
    half = int(np.flatnonzero(kinds == GroupKind.ROWS)[40])
    instance.apply(groups, half)
    last = instance.query("SELECT max(id) FROM shop__customers")[0][0]
    columns = [row[1] for row in instance.query("PRAGMA table_info(shop__customers)")]
    copied = {"id": "id + 1", "email": "'x' || email"}
    values = ", ".join(copied.get(column, f'"{column}"') for column in columns)
    instance.execute(f"INSERT INTO shop__customers SELECT {values} FROM shop__customers WHERE id = {last}")
    with pytest.raises(TargetError) as caught:
        for name in FILES:
            rest = demo_groups(name)
            start = half if name == FILES[0] else 0
            for batch in batches_between(rest, start, len(rest.scan)):
                instance.applier.apply(batch)
    assert caught.value.errno == 1062
    assert f"Duplicate entry '{last + 1}' for key 'PRIMARY'" in caught.value.message
    assert "Write_rows_v1 event on table shop.customers" in caught.value.message


def test_the_position_never_goes_back_for_events_that_hold_no_transaction(instance: Instance) -> None:
    groups = demo_groups(FILES[0])
    instance.apply(groups)
    end = instance.applier.info
    first_real = int(np.flatnonzero(groups.scan.kind != GroupKind.CONTROL)[0])
    instance.apply(groups, first_real)
    assert instance.applier.info == end
    assert instance.reopen().info.exec_position == end.exec_position


def first_bulk(instance: Instance, groups: RelayGroups) -> Batch:
    """The first batch of many; what comes before it is applied."""
    for batch in plan_batches(groups, len(groups.scan)):
        if batch.kind is BatchKind.BULK and batch.last - batch.first > 2:
            return batch
        instance.applier.apply(batch)
    raise AssertionError("the demo's log has no long batch")


def short_bulk(instance: Instance) -> Batch:
    batch = first_bulk(instance, demo_groups(FILES[0]))
    return replace(batch, last=batch.first + 8)


def commits_of(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each COMMIT of the target from here on."""
    commits: list[int] = []
    commit = instance.target.commit

    def noted() -> None:
        commit()
        commits.append(len(commits))

    monkeypatch.setattr(instance.target, "commit", noted)
    return commits


def misfit(*_: object) -> None:
    raise CountMismatch("rows", 0, 1)


def test_a_transient_error_is_tried_again_behind_what_is_committed(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction is a commit here; an error comes after one of them, and another after three."""
    batch = short_bulk(instance)
    monkeypatch.setattr("rplctl.applier.apply.batch.RETRY_PAUSE_SECONDS", 0)
    monkeypatch.setattr("rplctl.applier.apply.strategy.MOST_IN_ORDER", 1)
    monkeypatch.setattr(instance.target, "apply_chunks", misfit)
    commits = commits_of(instance, monkeypatch)
    failures = {1: 1213, 3: 2013}
    told, reconnected = list[int | None](), list[int]()
    begin, reconnect = instance.target.begin, instance.target.reconnect

    def begin_or_fail(*, foreign_keys: bool) -> None:
        if errno := failures.pop(len(commits), 0):
            raise TargetError("x", errno=errno, transient=True)
        begin(foreign_keys=foreign_keys)

    def noted() -> None:
        reconnected.append(len(told))
        reconnect()

    monkeypatch.setattr(instance.target, "begin", begin_or_fail)
    monkeypatch.setattr(instance.target, "reconnect", noted)
    instance.applier.on_retry = lambda error: told.append(error.errno)
    assert instance.applier.apply(batch) > 0
    assert len(commits) == batch.last - batch.first, "none is applied twice"
    assert (instance.applier.retried, told, reconnected) == (2, [1213, 2013], [2]), "a deadlock keeps the connection"
    assert instance.applier.info.exec_position == batch.source_position


@pytest.mark.parametrize(("errno", "is_sought"), [(1205, True), (2013, False)])
def test_after_all_attempts_the_transaction_that_cannot_be_had_is_sought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errno: int, is_sought: bool
) -> None:
    instance = Instance(tmp_path, replica_transaction_retries=0)
    batch = short_bulk(instance)
    before = instance.applier.info.exec_position
    commits = commits_of(instance, monkeypatch)

    def fail(*_: object) -> None:
        raise TargetError("x", errno=errno, transient=True)

    def fail_after_three(change: RowChange, model: TableModel) -> None:
        fail() if len(commits) == 3 else apply_change(change, model)

    apply_change = instance.target.apply_change
    monkeypatch.setattr(instance.target, "apply_chunks", fail)
    monkeypatch.setattr(instance.target, "apply_change", fail_after_three)
    with pytest.raises(TargetError) as caught:
        instance.applier.apply(batch)
    assert caught.value.errno == errno
    assert len(commits) == 3 * is_sought
    behind_three = batch.scan.source_position(batch.first + 2)
    assert instance.applier.info.exec_position == (behind_three if is_sought else before)
    instance.target.close()


@pytest.mark.parametrize("is_transient", [False, True])
def test_in_order_what_goes_away_is_not_gone_through_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_transient: bool
) -> None:
    """The error ends the first attempt to apply the whole batch in order, and comes once."""
    instance = Instance(tmp_path, replica_transaction_retries=0)
    batch = short_bulk(instance)
    commits = commits_of(instance, monkeypatch)
    failures = [TargetError("x", errno=2013 if is_transient else 1205, transient=is_transient)]
    apply_change = instance.target.apply_change

    def fail_once(change: RowChange, model: TableModel) -> None:
        if failures:
            raise failures.pop()
        apply_change(change, model)

    monkeypatch.setattr(instance.target, "apply_chunks", misfit)
    monkeypatch.setattr(instance.target, "apply_change", fail_once)
    with pytest.raises(TargetError) if is_transient else nullcontext():
        assert instance.applier.apply(batch) > 0
    assert len(commits) == (0 if is_transient else batch.last - batch.first)
    instance.target.close()


def test_each_commit_is_staged_for_the_log_and_moves_the_position_with_the_rows(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def note(name: str) -> None:
        really = getattr(committer, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            said.append(name)
            return really(*arguments, **options)

        monkeypatch.setattr(committer, name, noted)

    for name in ("stage", "commit_group", "commit_after"):
        note(name)
    instance.apply(demo_groups(FILES[0]))
    assert len(said) > 2 and said == ["stage", "commit_group"] * (len(said) // 2)


def test_a_group_that_nobody_may_apply_stops_before_it(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(BINLOG_MAGIC + next(events(log("my97-torture-mixed"))) + event(99))
    groups = groups_of(path)
    instance = Instance(tmp_path / "instance", groups)
    with pytest.raises(RplError, match="99"):
        instance.apply(groups)
    assert instance.applier.info.relay_log_pos == int(groups.scan.start[-1])
    instance.target.close()


def test_tables_that_were_made_without_the_sources_ddl_are_known(instance: Instance) -> None:
    model, defaults = (
        TableModel(database="d", name="t", columns=(Column(name="a", type="int"),)),
        DatabaseModel(name="d", charset="utf8mb4"),
    )
    instance.applier.learned({("d", "t"): model}, {"d": defaults})
    catalog = instance.applier.catalog
    assert (catalog.tables["d", "t"], catalog.databases["d"]) == (model, defaults)


def test_what_is_skipped_moves_the_position_and_counts_no_change(instance: Instance) -> None:
    batch = first_bulk(instance, demo_groups(FILES[0]))
    before = instance.query("SELECT COUNT(*) FROM shop__customers")
    assert instance.applier.apply(replace(batch, kind=BatchKind.SKIP)) == 0
    assert instance.applier.info.exec_position == batch.source_position
    assert instance.query("SELECT COUNT(*) FROM shop__customers") == before

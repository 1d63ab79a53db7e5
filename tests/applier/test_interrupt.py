"""STOP in the middle of a batch: rolled back within moments, begun again by the next start, a COMMIT never cut."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from rplctl.applier import interrupt
from rplctl.applier.interrupt import Interrupter, Stopped
from rplctl.errors import TargetError
from tests.applier.demo_log import demo_groups
from tests.applier.instance import Instance

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def test_a_statement_in_work_is_cut_off_and_its_error_is_no_error() -> None:
    stop = threading.Event()
    cut = threading.Event()
    with Interrupter(stop, (cut.set,)) as interrupter, pytest.raises(Stopped), interrupter.work():
        stop.set()
        assert cut.wait(120)
        raise TargetError("interrupted")


def test_nothing_is_cut_off_outside_of_work_and_behind_the_door_before_commit() -> None:
    stop = threading.Event()
    cuts: list[float] = []
    with Interrupter(stop, (lambda: cuts.append(time.monotonic()),)) as interrupter:
        with interrupter.work():
            interrupter.before_commit()
            stop.set()
            time.sleep(0.5)
        assert not cuts
        with pytest.raises(Stopped):
            interrupter.check()


def test_an_error_that_nobody_caused_stays_an_error() -> None:
    with Interrupter(threading.Event()) as interrupter, pytest.raises(TargetError), interrupter.work():
        raise TargetError("Duplicate entry", errno=1062)


def test_work_that_does_not_end_when_it_is_cut_ends_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "GRACE_SECONDS", 0.1)
    stop, left = threading.Event(), threading.Event()
    stuck = threading.Event()

    def hang() -> None:
        stuck.wait(300)  # no excuse

    with Interrupter(stop, (hang,), left.set) as interrupter, pytest.raises(Stopped):
        with interrupter.work():
            stop.set()
            assert left.wait(120)
            stuck.set()
            raise TargetError("late")


def test_before_anything_is_applied_the_process_ends_at_once_and_not_later() -> None:
    stop, left = threading.Event(), threading.Event()
    with Interrupter(stop, leave=left.set) as interrupter:
        with interrupter.abortable():
            pass
        with pytest.raises(Stopped), interrupter.abortable():
            stop.set()
            assert left.wait(120)
    stop, left = threading.Event(), threading.Event()
    with Interrupter(stop, leave=left.set) as interrupter, pytest.raises(Stopped):
        with interrupter.abortable(patience=120):
            stop.set()
        assert not left.is_set()


def test_sqlite_gives_up_a_statement_and_all_before_it(tmp_path: Path) -> None:
    instance = Instance(tmp_path)
    instance.apply(demo_groups("binlog.000001"))
    before = instance.query("SELECT count(*) FROM shop__orders")
    instance.target.begin(foreign_keys=False)
    instance.target.connection.exec_driver_sql("DELETE FROM shop__orders")
    driver = instance.target.connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    ended = threading.Event()

    def cut() -> None:  # again, lest one comes before the statement
        while not ended.wait(0.2):
            instance.target.interrupt()

    thread = threading.Thread(target=cut)
    thread.start()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        driver.execute(ENDLESS).fetchone()
    ended.set()
    thread.join()
    instance.target.rollback()
    assert instance.target.is_idle()
    assert instance.query("SELECT count(*) FROM shop__orders") == before
    instance.target.close()


def test_a_batch_that_stop_met_is_begun_again_by_the_next_start(tmp_path: Path) -> None:
    instance = Instance(tmp_path)
    groups = demo_groups("binlog.000001")
    applied = instance.target.apply_chunks

    def stop_in_the_middle(*arguments: object) -> None:
        applied(*arguments)  # type: ignore[arg-type]
        if instance.query("SELECT count(*) FROM sqlite_master WHERE name = 'shop__orders'") == [(1,)]:
            instance.stop.set()
            time.sleep(0.3)

    instance.target.apply_chunks = stop_in_the_middle  # type: ignore[method-assign,assignment]
    with instance.applier.interrupter, pytest.raises(Stopped):
        instance.apply(groups)
    at = instance.applier.info
    assert at == instance.reopen().info
    assert instance.query("SELECT count(*) FROM shop__orders") == [(0,)]
    instance.target.apply_chunks = applied  # type: ignore[method-assign]
    instance.stop.clear()
    done = groups.scan.end.searchsorted(at.relay_log_pos, side="right")
    instance.applier = instance.reopen()
    instance.apply_from(groups, int(done))
    assert instance.applier.info.exec_position == groups.end_source
    assert instance.query("SELECT count(*) FROM shop__orders")[0][0] > 0
    instance.target.close()

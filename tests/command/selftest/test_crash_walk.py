"""Each check of `crash-test` can fail: the program is broken in one place, and the walk says FAIL where it says OK."""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.applied_log.writer import BinaryLogWriter
from rplctl.command.selftest.crash_cases import COMMITTED, FETCHED, FINISHED, ROLLED_BACK, CrashCase
from rplctl.command.selftest.crash_run import ChildOutcome, in_child
from rplctl.command.selftest.crash_walk import CrashWalk, judge
from rplctl.demo.crash_log import State
from rplctl.failpoint import crash_point
from rplctl.position import BinlogPosition
from rplctl.receiver import receiver
from rplctl.recovery import recover_relay_log
from rplctl.relay_log import purge
from tests.kit.servers import MariadbServer

PURGE_NAMES = purge.purge_names
WRITE = BinaryLogWriter.write

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def walk_in(target: str) -> Iterator[CrashWalk]:
    folder = Path(tempfile.mkdtemp(prefix="rplctl-walk-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    walk = CrashWalk(folder, target, "")
    try:
        walk.prepare()
        yield walk
    finally:
        walk.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def walk() -> Iterator[CrashWalk]:
    yield from walk_in("")


@pytest.fixture(scope="module")
def on_mariadb(mariadb: MariadbServer) -> Iterator[CrashWalk]:
    yield from walk_in(mariadb.url())


def position_first(target: Any, store: Any, step: Any, apply: Callable[[], None], **_: Any) -> None:
    """The position in a transaction of its own, before the data's."""
    target.begin(foreign_keys=True)
    store.advance(target.connection, *step)
    target.commit()
    target.begin(foreign_keys=True)
    apply()
    crash_point("crash_commit_before")
    target.commit()
    store.committed(step[1])


def data_first(target: Any, store: Any, step: Any, apply: Callable[[], None], **_: Any) -> None:
    """The data in a transaction of their own, before the position's."""
    target.begin(foreign_keys=True)
    apply()
    target.commit()
    target.begin(foreign_keys=True)
    store.advance(target.connection, *step)
    crash_point("crash_commit_before")
    target.commit()
    store.committed(step[1])


def log_forgets(writer: Any, pieces: Any, record: Any, timestamp: int, *, durable: bool) -> None:
    """A binary log that counts what it did not write."""
    WRITE(writer, iter(()), record, timestamp, durable=durable)


def deletes_one_more(channel: Any, names: Any) -> None:
    """A purge that takes the log that the applier is in, too."""
    from rplctl.relay_log.index import RelayLogIndex

    PURGE_NAMES(channel, RelayLogIndex(channel).names()[: len(names) + 1])


def deletes_before_it_writes(switch: Any, store: bool) -> None:
    info = switch.old.read()
    switch.old.remove()
    crash_point("switch_after_write")
    switch.write(info)
    switch.store_option()


COMMIT = "rplctl.applier.apply.committer.commit_group"
BROKEN = {
    "position before data": ("crash_commit_before", "marker", COMMIT, position_first),
    "data before position": ("crash_commit_before", "transaction", COMMIT, data_first),
    "binary log forgets": (
        "crash_commit_after", "marker+log", "rplctl.applied_log.writer.BinaryLogWriter.write", log_forgets,
    ),
}  # fmt: skip


@pytest.mark.long("It tests the test; tests/commit/test_fault_matrix.py has a wrong order in make test.")
@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_commit_is_seen(walk: CrashWalk, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    point, mode, where, broken = BROKEN[name]
    case = CrashCase(
        point=point,
        mode=mode,
        kind="transaction",
        expected=ROLLED_BACK if point == "crash_commit_before" else COMMITTED,
    )
    assert walk.run(case) == case.expected
    monkeypatch.setattr(where, broken)
    seen = walk.run(case)
    assert seen not in (ROLLED_BACK, COMMITTED), seen


@pytest.mark.long("It tests the test itself, which is run in tests/command/test_crash_test.py.")
@pytest.mark.mariadb
@pytest.mark.parametrize("mode", ["xa", "xa-pages", "xa-binlog"])
def test_a_recovery_that_does_not_heed_the_decision_is_seen(
    on_mariadb: CrashWalk, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    case = CrashCase(point="crash_commit_after_log", mode=mode, kind="transaction", expected=COMMITTED)

    def rolls_back(_participants: Any, engine: Any, prefix: str, verbs: Any, *_: Any) -> None:
        for xid in verbs.prepared_xids(engine, prefix):
            verbs.end_prepared(engine, "ROLLBACK", xid)

    assert on_mariadb.run(case) == COMMITTED
    monkeypatch.setattr("rplctl.commit.resolve.resolve_prepared", rolls_back)
    assert on_mariadb.run(case) != COMMITTED


@pytest.mark.long("It is a test of `crash-test`, whose walk tests/command/test_crash_test.py holds.")
def test_a_receiver_that_asks_for_too_much_again_is_seen(walk: CrashWalk, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CrashCase(point="crash_after_relay_log_append", mode="-", kind="receiver", expected=FETCHED)
    assert walk.run(case) == FETCHED

    def from_the_start(*given: Any) -> Any:
        return replace(recover_relay_log(*given), next_event=BinlogPosition("binlog.000001", 4))

    monkeypatch.setattr(receiver, "recover_relay_log", from_the_start)
    assert walk.run(case) != FETCHED


@pytest.mark.long("It tests the test; tests/commit/test_fault_matrix.py has a wrong order in make test.")
@pytest.mark.parametrize(
    ("case", "where", "broken"),
    [
        (
            CrashCase(point="crash_purge_before_update_index", mode="-", kind="purge", expected=FINISHED),
            "rplctl.relay_log.purge.purge_names",
            deletes_one_more,
        ),
        (
            CrashCase(point="switch_after_write", mode="-", kind="to table", expected="undone"),
            "rplctl.repository.switch.Switch.copy_and_delete",
            deletes_before_it_writes,
        ),
    ],
)
def test_a_wrong_order_of_files_is_seen(
    walk: CrashWalk, monkeypatch: pytest.MonkeyPatch, case: CrashCase, where: str, broken: Callable[..., None]
) -> None:
    assert walk.run(case) == case.expected
    monkeypatch.setattr(where, broken)
    assert walk.run(case) != case.expected


END = State(kind="", log_name="b.000001", log_pos=9, digest="rows")


@pytest.mark.parametrize(
    ("seen", "killed", "restarted", "says"),
    [
        (ROLLED_BACK, ["commit", "b.000001:5"], ["end", "b.000001:9", "rows", []], "was committed, but is missing"),
        (COMMITTED, ["start"], ["end", "b.000001:5", "rows", []], "rows or position differ"),
        (COMMITTED, ["start"], ["end", "b.000001:9", "other", []], "rows or position differ"),
        (COMMITTED, ["start"], ["end", "b.000001:9", "rows", [".x.tmp7"]], "left over: .x.tmp7"),
    ],
)
def test_what_is_lost_late_or_left_over_is_said(seen: str, killed: list[Any], restarted: list[Any], says: str) -> None:
    judged = judge(seen, ChildOutcome(killed=True, said=(killed,)), ChildOutcome(killed=False, said=(restarted,)), END)
    assert says in judged
    assert (
        judge(
            seen,
            ChildOutcome(killed=True, said=()),
            ChildOutcome(killed=False, said=(["end", "b.000001:9", "rows", []],)),
            END,
        )
        == seen
    )


def test_a_child_that_ends_unasked_is_reported_with_its_signal() -> None:
    def die(_say: object) -> None:
        faulthandler.disable()  # pytest's would print a traceback that looks like a crash of the run
        os.kill(os.getpid(), signal.SIGBUS)

    ended = in_child(die)
    assert ended == ChildOutcome(killed=False, said=(), error="the child was killed by SIGBUS, unasked")

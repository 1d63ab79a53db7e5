"""The commit protocol's fault matrix: crash point × mode × kind of group × sync period × pass × GTIDs × second kill ×
what the power cut left of relay-log.info. Every pair of values that can meet does; `make torture` walks the product.

Each case is a real process, killed with SIGKILL in a channel that goes on from case to case. Checked after each:
rows and position agree, and every transaction is there once and whole; what was acknowledged is there, and at most one
more; the record reads as one whole; the channel goes on by itself; no prepared transaction and no temporary file stays.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from rplctl.channel import Channel
from rplctl.command.selftest.crash_cases import COMMITTED, ONE_TRANSACTION, POSITION_AFTER, TWO_PHASES
from rplctl.command.selftest.crash_run import Say, in_child, leftovers, load_what_is_loaded_by
from rplctl.commit import transaction
from rplctl.commit.participants.line import LinePosition
from rplctl.commit.position_store import open_position_store
from rplctl.commit.resolve import terminate_predecessor
from rplctl.commit.step import CommitStep, PositionStore
from rplctl.config import Config
from rplctl.errors import TargetError
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_target
from rplctl.target.base import Target
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import count_torture, walk

pytestmark = pytest.mark.slow

PROBE = "rplctl_matrix"
OLDER = "relay-log.info.older"
PARTS = 5  # rows of one transaction
RUN = 3  # transactions of a process that is to be killed
MODES = ("transaction", "marker", "xa", "xa-pages")


@dataclass(frozen=True)
class Case:
    mode: str
    point: str
    kind: str  # rows: one commit; failed: an attempt that fails comes first; after: commit_after
    sync_relay_log_info: int
    at: int  # pass that kills
    gtid: bool
    again: bool  # the restart is killed at the point, too
    power: bool  # what was not synced of relay-log.info is gone as well

    def expected(self) -> str:
        return outcomes(self.mode, self.kind)[self.point]


def outcomes(mode: str, kind: str) -> dict[str, str]:
    if kind == "after" and not mode.startswith("xa"):
        return POSITION_AFTER
    if kind == "after":  # test_noted.py has what is between the two commits
        return {point: outcome for point, outcome in POSITION_AFTER.items() if point != "crash_commit_after"}
    table = TWO_PHASES if mode.startswith("xa") else ONE_TRANSACTION
    return {point: outcome for point, outcome in table.items() if not point.startswith("crash_recovery")}


def product(mode: str) -> Iterator[Case]:
    for kind in ("rows", "failed", "after"):
        axes = (sorted(outcomes(mode, kind)), (0, 1, 10_000), (1, 2, 3), (False, True), (False, True), (False, True))
        for point, sync, at, gtid, again, power in itertools.product(*axes):
            if power and (mode != "marker" or sync == 1):
                continue  # nothing there that is not synced
            if mode == "transaction" and sync != 1:
                continue  # has no effect
            yield Case(mode, point, kind, sync, at, gtid, again, power)


def pairs(case: Case) -> set[Any]:
    return set(itertools.combinations(asdict(case).items(), 2))


@cache
def chosen(mode: str) -> list[Case]:
    """Few, with every pair of values: one after another that with the most pairs which none before it has."""
    cases = {case: pairs(case) for case in product(mode)}
    missing = set().union(*cases.values())
    found = list[Case]()
    while missing:
        found.append(max(cases, key=lambda case: len(cases[case] & missing)))
        missing -= cases[found[-1]]
    return found


def test_the_suite_has_every_pair() -> None:
    for mode in MODES:
        all_pairs = set().union(*(pairs(case) for case in product(mode)))
        assert set().union(*(pairs(case) for case in chosen(mode))) == all_pairs
    assert sum(len(chosen(mode)) for mode in MODES) >= 100


def at(number: int, gtid: bool) -> RelayLogInfo:
    info = RelayLogInfo(gtid_executed=f"0-1-{number}" if gtid and number else "")
    return info.at(RelayLogPosition("relay-bin.000001", 10 * number + 4), BinlogPosition("bin.000001", number + 4))


class Bench:
    """A channel at number 0 on an empty target."""

    def __init__(self, folder: Path, mode: str, url: str = "") -> None:
        self.folder, self.mode, self.url = folder, mode, url
        self.channel = Channel("", folder)
        folder.mkdir(exist_ok=True)
        self.table = f"rplctl.{PROBE}" if url else PROBE
        load_what_is_loaded_by(self._prepare)
        load_what_is_loaded_by(partial(self.run, Case(mode, "", "rows", 1, 1, False, False, False), 0))

    def config(self, sync: int = 10_000) -> Config:
        return Config(
            self.folder,
            target=self.url,
            relay_log_info_repository="TABLE" if self.mode == "transaction" else "FILE",
            commit_mode="xa" if self.mode.startswith("xa") else "auto",
            prepared_position="pages" if self.mode == "xa-pages" else "line",
            sync_relay_log_info=sync,
        )

    def _prepare(self, _say: Say) -> None:
        target = open_target(self.config().target_url)
        create_own_tables(target.engine)
        create_tables(target.engine, "")
        with target.engine.begin() as connection:
            connection.execute(text(f"DROP TABLE IF EXISTS {self.table}"))
            connection.execute(text(f"CREATE TABLE {self.table} (seq INTEGER, part INTEGER, PRIMARY KEY (seq, part))"))
        repository = open_relay_log_info(self.config(), self.channel, lambda: target.engine)
        repository.flush(at(0, False), force=True)

    def run(self, case: Case, count: int, say: Say) -> None:
        """A start: recovery, `count` transactions, an orderly end. Says the state found, then each commit."""
        target = open_target(self.config().target_url)
        terminate_predecessor(self.channel, target.engine)
        target.fence("")
        store = open_position_store(self.config(case.sync_relay_log_info), self.channel, target.engine)
        info = store.open()
        say(["found", *self.state(target, info)])
        if self.mode != "transaction":
            shutil.copy(self.channel.relay_log_info_path, self.folder / OLDER)
        for _ in range(count):
            info = self._apply(case, target, store, info)
            say(["acknowledged", info.master_log_pos - 4])
        store.close(info)
        left = leftovers(self.config(), target.engine)
        say(["ended", *self.state(target, info), left])

    def _apply(self, case: Case, target: Target, store: PositionStore, info: RelayLogInfo) -> RelayLogInfo:
        number = info.master_log_pos - 4 + 1
        commit = transaction.commit_after if case.kind == "after" else transaction.commit_group
        step = CommitStep(info, at(number, case.gtid))

        def insert() -> None:
            for part in range(PARTS):
                target.connection.exec_driver_sql(f"INSERT INTO {self.table} VALUES ({number}, {part})")

        def fail() -> None:
            insert()
            raise TargetError("no", errno=1062)

        if case.kind == "failed":
            with suppress(TargetError):
                commit(target, store, step, fail)
        commit(target, store, step, insert)
        return step.after

    def state(self, target: Target, info: RelayLogInfo) -> tuple[int, list[str]]:
        """(the position's number, what is wrong with rows and record)."""
        number = info.master_log_pos - 4
        with target.engine.connect() as connection:
            rows = [tuple(row) for row in connection.execute(text(f"SELECT seq, part FROM {self.table} ORDER BY 1, 2"))]
        wrong = []
        if rows != [(seq, part) for seq in range(1, number + 1) for part in range(PARTS)]:
            wrong.append(f"position {number}, but {len(rows)} rows up to {rows[-1:]}")
        if (info.relay_log_pos, info.gtid_executed) not in [(10 * number + 4, g) for g in ("", f"0-1-{number}")]:
            wrong.append(f"a mixed record: {info}")
        return number, wrong

    def violations(self, case: Case) -> list[str]:
        """Carry the case out; what it broke."""
        killed = in_child(partial(self.run, case, RUN), f"{case.point}=kill@{case.at}")
        if not killed.killed:
            return [killed.error or "the point was not passed"]
        if case.power:
            shutil.copy(self.folder / OLDER, self.channel.relay_log_info_path)
        start = next(said[1] for said in killed.said if said[0] == "found")
        acknowledged = max([start, *(said[1] for said in killed.said if said[0] == "acknowledged")])
        expected = acknowledged + (case.expected() == COMMITTED)
        if case.again:
            second = in_child(partial(self.run, case, RUN), f"{case.point}=kill")
            if not second.killed:
                return [second.error or "the point was not passed again"]
            found = [said[1] for said in second.said if said[0] == "found"]
            if found != [expected]:
                return [f"the first restart found {found}, not {expected}"]
            expected += case.expected() == COMMITTED
        done = in_child(partial(self.run, case, 1))
        if done.error:
            return [f"did not go on: {done.error}"]
        _, number, wrong = done.said[0]
        if number != expected:
            wrong.append(f"found at {number}, not at {expected} (acknowledged {acknowledged})")
        _, ended, wrong_at_end, left = done.said[-1]
        return [*wrong, *wrong_at_end, *left, *([f"ended at {ended}"] if ended != number + 1 else [])]

    def walk(self, cases: list[Case]) -> dict[Case, list[str]]:
        found = {case: self.violations(case) for case in cases}
        for case in cases:
            count_torture("commit matrix", case.point, len(found[case]))
        return {case: wrong for case, wrong in found.items() if wrong}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is room: a killed process loses nothing of what it wrote, synced or not."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="rplctl-matrix-", dir=memory if memory.is_dir() else tmp_path))
    yield made
    shutil.rmtree(made)


LONG = pytest.mark.torture


@pytest.mark.long("tests/command/test_crash_test.py::test_points_on_a_sqlite_file walks the crash points.")
@pytest.mark.slow
@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=LONG)], ids=["pairs", "all"])
@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.timeout(3600)
def test_no_crash_point_breaks_an_invariant_on_sqlite(folder: Path, mode: str, everything: bool) -> None:
    cases = walk("commit matrix", mode, list(product(mode))) if everything else chosen(mode)
    assert Bench(folder, mode).walk(cases) == {}


@pytest.mark.long("The default mode stays; tests/applier/test_two_phase.py has two points of this one.")
@pytest.mark.slow
@pytest.mark.mariadb
@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=LONG)], ids=["pairs", "all"])
@pytest.mark.parametrize("mode", MODES[2:])
@pytest.mark.timeout(3600)
def test_no_crash_point_breaks_an_invariant_in_two_phases(
    mariadb: MariadbServer, folder: Path, mode: str, everything: bool
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS rplctl")
    cases = walk("commit matrix", mode, list(product(mode))) if everything else chosen(mode)
    try:
        assert Bench(folder, mode, mariadb.url()).walk(cases) == {}
        assert mariadb.sql("XA RECOVER") == []
    finally:
        mariadb.sql("DROP DATABASE IF EXISTS rplctl")


def position_before_data(target: Target, store: PositionStore, step: Any, apply: Callable[[], None], **_: Any) -> None:
    """In a transaction of its own, as one that updates relay-log.info before COMMIT."""
    target.begin(foreign_keys=True)
    store.advance(target.connection, *step)
    target.commit()
    store.committed(step[1])
    crash_point("crash_after_update_pos_before_apply")
    target.begin(foreign_keys=True)
    apply()
    target.commit()


def data_before_position(target: Target, store: PositionStore, step: Any, apply: Callable[[], None], **_: Any) -> None:
    target.begin(foreign_keys=True)
    apply()
    target.commit()
    crash_point("crash_commit_after")
    target.begin(foreign_keys=True)
    store.advance(target.connection, *step)
    target.commit()
    store.committed(step[1])


@pytest.mark.long("Commit mode `transaction` stays in make test.", keeps=r"-transaction$")
@pytest.mark.parametrize("mode", ["transaction", "marker"])
@pytest.mark.parametrize(
    ("broken", "point"),
    [(position_before_data, "crash_after_update_pos_before_apply"), (data_before_position, "crash_commit_after")],
)
def test_a_wrong_order_is_caught(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mode: str, broken: Callable[..., None], point: str
) -> None:
    monkeypatch.setattr(transaction, "commit_group", broken)
    case = Case(mode, point, "rows", 1, 2, True, False, False)
    assert any("rows" in wrong or "did not go on" in wrong for wrong in Bench(folder, mode).violations(case))


def test_a_file_that_says_more_than_the_marker_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the acknowledged: a marker that is not written leaves an old file alone after the power cut."""
    from rplctl.commit.marker import MarkerPositionStore

    monkeypatch.setattr(MarkerPositionStore, "advance", lambda *_: None)
    case = Case("marker", "crash_commit_after", "rows", 10_000, 2, True, False, True)
    assert Bench(folder, "marker").violations(case)


@pytest.mark.mariadb
def test_a_decision_that_is_not_stored_is_caught(
    mariadb: MariadbServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two phases without the position's vote: the target's transaction is rolled back, although it was decided."""
    mariadb.sql("DROP DATABASE IF EXISTS rplctl")
    bench = Bench(folder, "xa", mariadb.url())
    monkeypatch.setattr(LinePosition, "prepare", lambda *_: None)
    case = Case("xa", "crash_commit_after_log", "rows", 1, 1, True, False, False)
    try:
        assert any("found at 0, not at 1" in wrong for wrong in bench.violations(case))
    finally:
        mariadb.sql("DROP DATABASE IF EXISTS rplctl")

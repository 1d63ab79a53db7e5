"""Two operators at once on one channel with a live receiver: one wins, the other gets a clear error with its fixed exit
code, and both records stay whole, each in one place (G04). Every pair of all commands: tests/command/test_deadlock.py.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of, running
from rplctl.command.flush_relay_logs import flush_relay_logs
from rplctl.command.process.start_request import StartRequest
from rplctl.command.purge_relay_logs import purge_relay_logs
from rplctl.command.reset import reset
from rplctl.command.show_status import show_status
from rplctl.command.start import start
from rplctl.command.stop import stop
from rplctl.command.switch_repo import switch_repo
from rplctl.config import Config, load_config
from rplctl.errors import LockBusy, RepositoryConflict, RplError, UsageError
from rplctl.repository import open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.switch import RECORDS
from tests.command.test_deadlock import together
from tests.kit.torture_page import count_torture, walk
from tests.source.binlogs import FIRST_EVENT, statements, write_log

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
RECEIVER = StartRequest(roles=("receiver",))
REFUSALS = {(2, 3081), (2, 3021), (75, 0)}  # threads run; another command works on the channel
POSITIONS = [("bin.000001", 4), ("bin.000001", FIRST_EVENT)]


class Operators:
    def __init__(self, datadir: Path, archive: Path) -> None:
        self.datadir = datadir
        self.archive = archive
        self.all: dict[str, Callable[[], object]] = {
            "start": lambda: start(self.config(), "", RECEIVER),
            "stop": lambda: stop(self.config(), ""),
            "reset": lambda: reset(self.config(), ""),
            "change-master": lambda: self.change(*POSITIONS[0]),
            "change-master again": lambda: self.change(*POSITIONS[1]),
            "to table": lambda: switch_repo(self.config(), "", "table"),
            "to file": lambda: switch_repo(self.config(), "", "file"),
            "purge-relay-logs": lambda: purge_relay_logs(self.config(), ""),
            "flush-relay-logs": lambda: flush_relay_logs(self.config(), ""),
        }

    def config(self) -> Config:
        return load_config(self.datadir)

    def change(self, name: str, position: int) -> None:
        changes = MasterChanges(master_binlog_dir=str(self.archive), master_log_file=name, master_log_pos=position)
        change_master(self.config(), "", changes)

    def places(self) -> list[list[str]]:
        """Of each record the kinds of repository that hold it."""
        config = self.config()
        return [
            [
                str(kind)
                for kind in RepositoryKind
                if open_repository(record, kind, config, Channel("", self.datadir), engine_of(config)).exists()
            ]
            for record in RECORDS.values()
        ]

    def wrong(self) -> list[str]:
        """What no outcome may leave behind. Stops the receiver."""
        stop(self.config(), "")
        found = [f"{place}" for place in self.places() if len(place) > 1]
        left = [*self.datadir.rglob("switch-*.json"), *self.datadir.rglob("*.pending"), *self.datadir.rglob("*~rec~")]
        found += [path.name for path in (*left, *self.datadir.rglob(".*.tmp*"))]
        status = show_status(self.config(), "")
        if status.Master_Log_File not in ("", "bin.000001"):
            found.append(f"reads {status.Master_Log_File}")
        start(self.config(), "", RECEIVER)  # and it goes on
        return found + ([] if "receiver" in running(Channel("", self.datadir)) else ["it does not start"])


@pytest.fixture
def operators(tmp_path: Path) -> Iterator[Operators]:
    archive = tmp_path / "archive"
    archive.mkdir()
    write_log(archive / "bin.000001", statements(50, start=FIRST_EVENT))
    made = Operators(tmp_path / "instance", archive)
    made.datadir.mkdir(mode=0o700)
    made.change(*POSITIONS[0])
    yield made
    stop(made.config(), "")


def race(operators: Operators, one: str, two: str, is_running: bool) -> list[str]:
    (operators.all["start"] if is_running else operators.all["stop"])()
    outcomes = together(operators.all[one], operators.all[two])
    wrong = []
    for name, error in zip((one, two), outcomes, strict=True):
        if error is None:
            continue
        if not isinstance(error, RplError) or (error.exit_code, error.errno) not in REFUSALS or not error.hint:
            wrong.append(f"{name} beside {one}, {two}: {error!r}")
    needs_stopped = {"reset", "to table", "to file", "change-master", "change-master again"}
    if not is_running and all(outcomes) and "start" not in (one, two):
        wrong.append(f"{one}, {two}: neither won")
    if is_running and "stop" not in (one, two):
        wrong += [f"{name} while it ran" for name, error in zip((one, two), outcomes, strict=True)
                  if name in needs_stopped and error is None]  # fmt: skip
    wrong += [f"after {one}, {two}: {text}" for text in operators.wrong()]
    count_torture("admin races", f"{one} | {two}", len(wrong))
    return wrong


@pytest.mark.long("The race with start stays; each pair waits for the same lock.", keeps=r"^start-to table-False$")
@pytest.mark.long("One race of each kind of record stays.", keeps=r"start-to table|change-master again|purge")
@pytest.mark.parametrize(
    ("one", "two", "is_running"),
    [
        ("start", "stop", False),
        ("start", "to table", False),
        ("to table", "to file", True),
        ("start", "change-master", False),
        ("change-master", "change-master again", False),
        ("reset", "to file", True),
        ("purge-relay-logs", "flush-relay-logs", True),
    ],
)
def test_one_wins_and_the_other_is_told_why(operators: Operators, one: str, two: str, is_running: bool) -> None:
    assert race(operators, one, two, is_running) == []


@pytest.mark.torture
def test_one_wins_in_every_pair(operators: Operators) -> None:
    pairs = [*itertools.combinations_with_replacement(operators.all, 2)] * 5
    cases = list(itertools.product(pairs, (False, True)))
    random.Random(2775).shuffle(cases)
    wrong = []
    for (one, two), is_running in walk("admin races", "pairs", cases):
        wrong += race(operators, one, two, is_running)
    assert wrong == []


@pytest.mark.long("test_one_wins_and_the_other_is_told_why holds the lock.")
def test_a_start_that_waited_for_a_switch_goes_by_what_the_switch_left(operators: Operators) -> None:
    before = operators.config()
    operators.all["to table"]()
    assert start(before, "", RECEIVER).started == ("receiver",)
    assert operators.places() == [["TABLE"], ["TABLE"]]
    assert operators.wrong() == []


@pytest.mark.long("test_one_wins_and_the_other_is_told_why stays in make test.")
def test_a_change_that_waited_for_a_switch_goes_by_what_the_switch_left(operators: Operators) -> None:
    before = operators.config()
    operators.all["to table"]()
    change_master(before, "", MasterChanges(master_log_file="bin.000001", master_log_pos=FIRST_EVENT))
    assert operators.places() == [["TABLE"], ["TABLE"]]
    assert show_status(operators.config(), "").Read_Master_Log_Pos == FIRST_EVENT
    reset(before, "")
    assert operators.places() == [["TABLE"], []]
    assert operators.wrong() == []


@pytest.mark.long("test_one_wins_and_the_other_is_told_why holds the race of two changes.")
def test_who_looks_beside_switches_sees_the_channel(operators: Operators) -> None:
    """With options from before, as a command that began a moment ago has them."""
    before = operators.config()
    switches = [operators.all[to] for to in ("to table", "to file")] * 4

    def look() -> None:
        while switching.is_alive():
            stop(before, "")
            status = show_status(before, "")
            assert (status.Master_Binlog_Dir, status.Relay_Log_File) == (str(operators.archive), "relay-bin.000001")

    switching = Thread(target=lambda: [switch() for switch in switches])
    switching.start()
    assert together(look, look) == [None, None]
    switching.join()


def test_a_change_with_options_that_name_the_other_kind_makes_no_second_record(operators: Operators) -> None:
    named = replace(operators.config(), master_info_repository="TABLE")
    changes = MasterChanges(master_binlog_dir=str(operators.archive))
    with pytest.raises(RepositoryConflict, match=r"master.info, and master_info_repository names .*slave_") as refused:
        change_master(named, "", changes)
    assert (refused.value.exit_code, refused.value.hint) == (
        5,
        "to move the record, run: rplctl switch-repo --to table",
    )
    assert operators.places() == [["FILE"], ["FILE"]]


@pytest.mark.long("test_one_wins_and_the_other_is_told_why holds the lock.")
@pytest.mark.parametrize("name", ["reset", "to table", "change-master"])
def test_what_needs_it_stopped_is_refused_while_it_runs_or_starts(operators: Operators, name: str) -> None:
    operators.all["start"]()
    with pytest.raises((UsageError, LockBusy)) as refused:
        operators.all[name]()
    assert (refused.value.exit_code, refused.value.errno) in REFUSALS

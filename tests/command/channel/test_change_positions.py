"""CHANGE MASTER as a state machine: whatever option is given to a stopped channel, in whatever state it is, and
wherever the command is killed, each transaction is applied once afterwards (design D22). Only an option that names a
position or another source may say otherwise, and then what it says is what happens.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rplctl.command.channel import change_store, context
from rplctl.command.channel.change_options import CHANGE_OPTIONS, MasterChanges
from rplctl.command.channel.context import open_repositories
from rplctl.errors import UsageError
from tests.kit.channel_life import TRANSACTIONS, Archive, Life

KINDS = [("FILE", "FILE"), ("TABLE", "TABLE"), ("FILE", "TABLE"), ("TABLE", "FILE")]
STATES = [(0, 0), (3, 0), (6, 0), (6, 3), (6, 6)]  # received, applied
BEGUN_AT = 2  # where a position is given
VALUES: dict[str, Any] = {
    "master_user": "u2",
    "master_connect_retry": 10,
    "master_retry_count": 3,
    "master_heartbeat_period": 7.5,
    "ignore_server_ids": (77,),
    "do_domain_ids": (7,),
    "ignore_domain_ids": (8,),
    "master_delay": 0,
    "master_compression_algorithms": "uncompressed",
    "master_zstd_compression_level": 3,
    "privilege_checks_user": "",
    "network_namespace": "",
    "require_table_primary_key_check": "ON",
    "master_use_gtid": "no",
    "assign_gtids_to_anonymous_transactions": "off",
    "master_auto_position": True,
    "master_port": 3307,
    "password": "secret",
}
NAMES_A_PLACE = {"master_log_file", "master_log_pos", "relay_log_file", "relay_log_pos", "master_host"}


def value_of(name: str, archive: Archive) -> Any:
    if name in VALUES:
        return VALUES[name]
    row = CHANGE_OPTIONS[name]
    kinds = {"switch": not row.refused, "ids": (), "number": max(1, row.low), "text": "x", "seconds": 1.0}
    return str(archive.folder) if row.kind in ("file", "folder") else kinds[row.kind]


@dataclass(frozen=True)
class Way:
    """How the channel finds its position: by what the operator gave at first."""

    name: str
    given: dict[str, Any]
    first: int  # transactions before it


WAYS = ["first log", "a position", "GTID"]


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    usable = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="rplctl-", dir=usable))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def archive(memory: Path) -> Archive:
    (memory / "source").mkdir()
    made = Archive(memory / "source")
    made.fill()
    return made


class States:
    """A channel in each state, made once; tests go on with copies."""

    def __init__(self, memory: Path, archive: Archive) -> None:
        self._memory, self._archive = memory, archive
        self._made: dict[Any, Life] = {}
        self._copies = 0

    def way(self, name: str) -> Way:
        at = self._archive.end_of(BEGUN_AT)
        given = {"master_log_file": at.log_name, "master_log_pos": at.log_pos}
        return {
            "first log": Way(name, {}, 0),
            "a position": Way(name, given, BEGUN_AT),
            "GTID": Way(name, {"master_auto_position": True}, 0),
        }[name]

    def copy(self, kinds: tuple[str, str], way: str, state: tuple[int, int]) -> Life:
        key = (kinds, way, state)
        if key not in self._made:
            folder = self._memory / f"state-{len(self._made)}"
            options = {"master_info_repository": kinds[0], "relay_log_info_repository": kinds[1]}
            life = Life.begin(folder, self._archive, MasterChanges(**self.way(way).given), **options)
            received, applied = state
            if received:
                life.receive(received)
            if applied:
                life.apply(applied)
            assert len(life.numbers()) == applied
            self._made[key] = life
        self._copies += 1
        return self._made[key].fork(self._memory / f"copy-{self._copies}")

    def expected(self, way: str) -> list[int]:
        return list(range(self.way(way).first + 1, TRANSACTIONS + 1))


@pytest.fixture(scope="module")
def states(memory: Path, archive: Archive) -> States:
    return States(memory, archive)


def forget(life: Life) -> None:
    shutil.rmtree(life.folder)


MOVES_NOTHING = [name for name in (*CHANGE_OPTIONS, "password") if name not in NAMES_A_PLACE | {"master_port"}]
WAY_OPTIONS = ("master_auto_position", "assign_gtids_to_anonymous_transactions")  # MySQL refuses some of them at times
IN_EACH_STATE = pytest.mark.parametrize("state", STATES, ids=lambda s: f"{s[0]} received, {s[1]} applied")


def change_and_compare(life: Life, names: Sequence[str], archive: Archive) -> None:
    before = life.records()
    try:
        life.change(MasterChanges(**{name: value_of(name, archive) for name in names}))
    except UsageError as refused:
        assert names[0] in WAY_OPTIONS, refused
    after = life.records()
    assert (after[1].exec_position, after[1].gtid_executed) == (before[1].exec_position, before[1].gtid_executed), names
    if names[0] not in WAY_OPTIONS:
        assert after[0].read_position == before[0].read_position, names


@pytest.mark.long(
    "A position stays; the others are stored in the same record.",
    keeps=r"^a position-6 received, 3 applied$",
)
@pytest.mark.slow
@IN_EACH_STATE
@pytest.mark.parametrize("way", WAYS)
def test_no_option_moves_the_position_loses_or_repeats_a_transaction(
    states: States, archive: Archive, way: str, state: tuple[int, int]
) -> None:
    """One; all the others at once; those that find the position in another way."""
    others = [
        name for name in MOVES_NOTHING if name not in (*WAY_OPTIONS, "ignore_domain_ids")
    ]  # not with the other list
    for number, changes in enumerate(
        ([["master_connect_retry"]], [["master_delay"], others], [[n] for n in WAY_OPTIONS])
    ):
        life = states.copy(KINDS[(STATES.index(state) + number) % 4], way, state)
        for names in changes:
            change_and_compare(life, names, archive)
        life.go_on()
        assert life.numbers() == states.expected(way), changes
        forget(life)


@pytest.mark.torture
@IN_EACH_STATE
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kinds", KINDS)
def test_no_option_alone_does(
    states: States, archive: Archive, way: str, state: tuple[int, int], kinds: tuple[str, str]
) -> None:
    for name in MOVES_NOTHING:
        life = states.copy(kinds, way, state)
        change_and_compare(life, [name], archive)
        life.go_on()
        assert life.numbers() == states.expected(way), name
        forget(life)


@pytest.mark.long("test_no_option_moves_the_position_loses_or_repeats_a_transaction tries these options, too.")
@pytest.mark.slow
@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[1]])
@pytest.mark.parametrize("way", WAYS[:2])
def test_by_gtid_and_back_again_is_where_it_was(states: States, way: str, kinds: tuple[str, str]) -> None:
    """There is no start between: what is executed is known by its place in the log alone, if at all."""
    for state in STATES[1:]:
        life = states.copy(kinds, way, state)
        for on in (True, False, True, False):
            if on and way == "a position":  # the GTIDs before it are not known
                with pytest.raises(UsageError, match="would send applied transactions again") as refused:
                    life.change(MasterChanges(master_auto_position=True))
                assert (refused.value.errno, "import-info" in refused.value.hint) == (1776, True)
            else:
                life.change(MasterChanges(master_auto_position=on))
        assert life.records()[1].exec_position.log_name or not state[1]
        life.go_on()
        assert life.numbers() == states.expected(way), state
        forget(life)


@pytest.mark.long("test_no_option_moves_the_position_loses_or_repeats_a_transaction tries these options, too.")
@pytest.mark.slow
@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[1]])
def test_what_names_a_position_or_another_source_is_taken_at_its_word(
    states: States, archive: Archive, kinds: tuple[str, str]
) -> None:
    to_the_fifth = archive.end_of(5)
    everything = list(range(1, TRANSACTIONS + 1))
    for given, follows in (
        ({"master_log_file": to_the_fifth.log_name, "master_log_pos": to_the_fifth.log_pos}, everything[5:]),
        ({"master_port": 3307}, everything),
        ({"master_host": "elsewhere"}, everything),
        ({"relay_log_file": "relay-bin.000001", "relay_log_pos": 4}, everything),
    ):
        life = states.copy(kinds, "first log", (6, 3))
        life.change(MasterChanges(**given))
        if "master_host" in given:
            life.change(MasterChanges(master_binlog_dir=str(archive.folder)))
        life.go_on()
        assert life.numbers() == [1, 2, 3, *follows], given
        forget(life)


STEPS = ["replace_file", "purge_all", "master", "relay", "remove_file"]


class Killed(BaseException):
    pass


def killed_at(step: str) -> Any:
    def kill(*_: object, **__: object) -> None:
        raise Killed

    if step in ("master", "relay"):
        flushes = {"master": "MASTER_INFO", "relay": "RELAY_LOG_INFO"}[step]
        return killed_at_flush(flushes, kill)
    return patch.object(change_store, step, kill)


def killed_at_flush(record: str, kill: Any) -> Any:
    def flush(repositories: Any, *rest: Any) -> Any:
        opened = open_repositories(repositories, *rest)
        place = opened.master_info if record == "MASTER_INFO" else opened.relay_log_info
        object.__setattr__(opened, "master_info" if record == "MASTER_INFO" else "relay_log_info", Deadly(place, kill))
        return opened

    return patch.object(context, "open_repositories", flush)


class Deadly:
    """A repository whose process dies when it writes."""

    def __init__(self, place: Any, kill: Any) -> None:
        self._place, self.flush = place, kill

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place, name)


@pytest.mark.long("One crash point of a change by GTID stays; the others go the same way.", keeps=r"^GTID-master$")
@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_killed_anywhere_it_is_done_or_not_done(states: States, archive: Archive, way: str, step: str) -> None:
    at = archive.end_of(3)
    named: dict[str, Any] = {
        "master_log_file": at.log_name,
        "master_log_pos": at.log_pos,
        "master_auto_position": False,
    }
    retry: dict[str, Any] = {"master_connect_retry": 9}
    for number, given in enumerate((retry, named)):
        life = states.copy(KINDS[(STEPS.index(step) + number) % 4], way, (6, 3 - states.way(way).first))
        with killed_at(step):
            try:
                life.change(MasterChanges(**given))
                assert step == "purge_all" and given is not named
            except Killed:
                pass
        life.go_on()
        assert life.numbers() == states.expected(way), given
        forget(life)

"""`rename-channel`: nothing is lost or applied twice under the new name, wherever the command was killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rplctl import failpoint
from rplctl.channel import Channel
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import administer, engine_of, known_channels, one_engine, open_repositories
from rplctl.command.rename_channel import rename_channel
from rplctl.config import Config, load_config
from rplctl.failpoint import RENAME_POINTS
from rplctl.option_file import store_options
from rplctl.own_tables.tables import has_rows
from rplctl.renaming import journal_path
from tests.kit.channel_life import TRANSACTIONS, Archive, Life

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12
NEW = "East/ä"
POINTS = ("rename_after_journal", "rename_after_rows", "rename_after_relay_logs", "rename_after_records",
          "rename_after_options", "rename_after_folder", "")  # fmt: skip
LONG = pytest.mark.long(
    "A repository in either place stays; both are of one kind there.", keeps="FILE-FILE|TABLE-TABLE"
)
KINDS = [pytest.param(kinds, id="-".join(kinds)) for kinds in product(["FILE", "TABLE"], repeat=2)]  # Master, relay


class Renamed(Life):
    """The channel under its new name."""

    def __init__(self, life: Life) -> None:
        super().__init__(life.folder, life.archive)
        self.channel = Channel(NEW, life.folder)

    @property
    def config(self) -> Config:
        return load_config(self.folder, NEW)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        with one_engine():
            yield open_repositories(self.config, NEW)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    folder = tmp_path / "archive"
    folder.mkdir()
    made = Archive(folder)
    made.fill()
    return made


def worked(folder: Path, archive: Archive, kinds: tuple[str, str] = ("FILE", "FILE")) -> Life:
    """A channel that has received more than it has applied, with options of its own."""
    options = {"master_info_repository": kinds[0], "relay_log_info_repository": kinds[1]}
    life = Life.begin(folder, archive, MasterChanges(master_log_file="binlog.000001", master_log_pos=4), **options)
    store_options(folder, "", {"max_sync_age": 77}, only_this_channel=True)
    life.receive(6)
    life.apply(3)
    return life


def in_child(point: str, body: Callable[[], object]) -> int:
    """Its wait status, of a process in which the point is armed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.environ[failpoint.ENVIRONMENT] = f"{point}=kill" if point else ""
            failpoint.rearm()
            body()
            status = 0
        except BaseException as error:  # noqa: BLE001 - the child must not return into pytest
            sys.stderr.write(f"{error!r}\n")
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


@pytest.mark.long("tests/command/test_rename_channel.py renames in make test; a kill in a rename is rare.")
@LONG
@pytest.mark.parametrize("kinds", KINDS)
def test_killed_behind_each_step_the_next_command_finishes_it(
    tmp_path: Path, archive: Archive, kinds: tuple[str, str]
) -> None:
    assert {*filter(None, POINTS)} == RENAME_POINTS
    before = worked(tmp_path / "before", archive, kinds)
    for number, point in enumerate(POINTS):
        life = before.fork(tmp_path / f"after{point}")
        status = in_child(point, lambda: rename_channel(life.config, "", NEW))  # noqa: B023
        assert os.WTERMSIG(status) == signal.SIGKILL if point else status == 0, point
        assert journal_path(life.folder).exists() == bool(point)
        name = ("", NEW)[number % 2]
        with administer(load_config(life.folder, name), name):  # as every verb that changes it, and a start
            assert not journal_path(life.folder).exists()
        renamed = Renamed(life)
        master, relay = renamed.records()
        old_master, old_relay = before.records()
        base = renamed.channel.relay_log_base
        moved = replace(old_relay, channel_name=NEW, relay_log_name=old_relay.relay_log_name.replace("relay-bin", base))
        assert replace(relay, left_at="") == replace(moved, left_at=""), point
        flushed = old_master.flushed_relay_log_name.replace("relay-bin", base)
        assert master == replace(old_master, channel_name=NEW, flushed_relay_log_name=flushed)
        assert renamed.config.max_sync_age == 77 and load_config(life.folder).max_sync_age == 3600
        assert known_channels(renamed.config) == [NEW]
        left = [
            path.name for path in life.folder.iterdir() if path.name.startswith(("relay-bin.", "master.", "relay-log."))
        ]
        assert left == [] and {path.suffix for path in Channel("", life.folder).run_folder.iterdir()} == {".lock"}
        with one_engine(), engine_of(renamed.config)().connect() as connection:
            assert has_rows(connection, NEW) and not has_rows(connection, "")
        renamed.apply(1)  # of what was received before
        renamed.go_on()
        assert renamed.numbers() == [*range(1, TRANSACTIONS + 1)], point

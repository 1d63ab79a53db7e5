"""A copy in every commit mode, and into another database than the source's: both ends are killed while rows come.

Invariant: the position is committed with the rows in each mode, so that a kill neither repeats nor loses any.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from sqlalchemy import Connection

from rplctl.config import load_config
from rplctl.target import open_engine
from tests.command.test_clone import Compare, compare, only, replica, wait_cloned
from tests.command.test_clone_two_channels import HARMLESS, fill, write
from tests.kit.load import working
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

__all__ = ["compare", "replica"]
pytestmark = [
    pytest.mark.long("A copy that is killed is rare; tests/command/test_clone.py copies in make test."),
    pytest.mark.slow,
    pytest.mark.mariadb,
]
NAME = "north"
FILE = ("--relay-log-info-repository", "file", "--master-info-repository", "file")
TABLE = ("--relay-log-info-repository", "table", "--master-info-repository", "table")
XA = (*FILE, "--commit-mode", "xa")
MODES = {
    "transaction": TABLE,
    "marker": FILE,
    "xa": XA,
    "xa-pages": (*XA, "--prepared-position", "pages"),
}
PREPARES = ("mariadb", "postgresql")
CASES = [
    pytest.param(
        kind,
        MODES[mode],
        id=f"{kind}-{mode}",
        marks=[
            *([pytest.mark.postgresql] if kind == "postgresql" else []),
            *([] if (kind, mode) in {("sqlite", "marker"), ("mariadb", "xa-pages")} else [pytest.mark.torture]),
        ],
    )
    for kind in ("sqlite", *PREPARES)
    for mode in MODES
    if kind in PREPARES or not mode.startswith("xa")
]


def copied_though_killed(source: MariadbServer, replica: Replica) -> None:
    """Beside a writer; the process that reads, and the one that loads, are killed in turn."""
    works = [partial(write, random.Random(number), False) for number in range(2)]
    with working(source, NAME, works, harmless=HARMLESS, pause_s=0.02):
        replica.run("clone", "--max-rate", "2")
        for role in ("applier", "receiver", "applier"):
            time.sleep(0.7)
            replica.kill(role)
            replica.run("start")
        replica.run("clone", "--max-rate", "0")
        wait_cloned(replica)
    replica.wait_synced(source, 120)
    assert replica.status()["Passed_Over_Errors"] == 0


@contextmanager
def target_of(replica: Replica) -> Iterator[Connection]:
    engine = open_engine(load_config(replica.datadir).target_url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.mark.parametrize(("compare", "mode"), CASES, indirect=["compare"])
def test_rows_come_once_in_every_commit_mode_though_both_ends_are_killed(
    mariadb: MariadbServer, replica: Replica, compare: Compare, mode: tuple[str, ...]
) -> None:
    replica.run("init", *mode)
    fill(mariadb, NAME, cased=False)
    replica.change_master(mariadb)
    only(replica, NAME)
    copied_though_killed(mariadb, replica)
    compare(mariadb, NAME)


@pytest.mark.parametrize("compare", ["mariadb"], indirect=True)
def test_rows_and_what_follows_come_into_the_database_that_the_rewrite_names(
    mariadb: MariadbServer, replica: Replica, compare: Compare
) -> None:
    fill(mariadb, NAME, cased=False)
    replica.change_master(mariadb)
    replica.run("change-filter", "--replicate-rewrite-db", f"{NAME}->moved", "--replicate-do-db", "moved")
    copied_though_killed(mariadb, replica)
    mariadb.sql(f"USE {NAME}; ALTER TABLE other ADD z INT DEFAULT 3; INSERT INTO other VALUES (90001, NULL, 4)")
    replica.wait_synced(mariadb, 60)
    with target_of(replica) as target:
        for table in ("Names", "other"):
            found = target.exec_driver_sql(f"SELECT * FROM moved.{table} ORDER BY id").all()
            assert [tuple(row) for row in found] == mariadb.sql(f"SELECT * FROM {NAME}.{table} ORDER BY id")

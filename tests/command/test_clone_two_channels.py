"""Two sources are copied into one target at the same time, with tables whose names differ in letter case only; each
kind of target has another commit mode: transaction (TABLE), marker (FILE), and xa.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.command.test_clone import Compare, compare, replica
from tests.kit.load import working
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

__all__ = ["compare", "replica"]
pytestmark = [
    pytest.mark.long(
        "tests/command/test_clone.py::test_a_living_source_is_copied_and_followed_strictly holds it for one channel."
    ),
    pytest.mark.slow,
    pytest.mark.mariadb,
]
NORTH, SOUTH = "north", "south"
ROWS = 4000
HARMLESS = (1213, 1062, 1205, 1020, 1452)
TABLES = (
    "CREATE TABLE Names (id INT PRIMARY KEY, v VARCHAR(900))",
    "CREATE TABLE other (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES Names (id) ON DELETE CASCADE)",
)
LOWER = "CREATE TABLE names (id INT PRIMARY KEY, v VARCHAR(900), w INT, UNIQUE (w))"


def fill(source: MariadbServer, name: str, *, cased: bool) -> None:
    made = (*TABLES, LOWER) if cased else TABLES
    source.sql(
        f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}; USE {name}; {'; '.join(made)};"
        f"INSERT INTO Names SELECT seq, REPEAT('{name[0]}', 800) FROM seq_1_to_{ROWS};"
        "INSERT INTO other SELECT seq, seq FROM seq_1_to_300"
        + "; INSERT INTO names SELECT id, 'low', id FROM Names"
        * cased
    )


def write(chance: random.Random, cased: bool, cursor: Any) -> None:
    a, b = chance.sample(range(1, ROWS), 2)
    changes = [
        [f"UPDATE Names SET v = '{a}' WHERE id = {b}", f"DELETE FROM Names WHERE id = {a % 300}"],
        [f"INSERT IGNORE INTO Names VALUES ({a}, 'new')", f"REPLACE INTO other SELECT {b}, MIN(id) FROM Names"],
        *[[f"REPLACE INTO names VALUES ({a}, 'new', {b})", f"UPDATE Names SET v = '{a}' WHERE id = {b}"]] * cased,
    ]
    for statement in ("BEGIN", *chance.choice(changes), "COMMIT"):
        cursor.execute(statement)


@pytest.mark.parametrize("mode", [(), pytest.param(("--commit-mode", "xa"), marks=pytest.mark.torture)], ids=str)
@pytest.mark.parametrize(
    "compare",
    [
        "mariadb",
        pytest.param("sqlite", marks=pytest.mark.torture),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.torture]),
    ],
    indirect=True,
)
def test_two_sources_are_copied_into_one_target_at_once(
    mariadb: MariadbServer,
    mariadb_factory: Callable[..., MariadbServer],
    replica: Replica,
    compare: Compare,
    mode: tuple[str, ...],
    request: pytest.FixtureRequest,
) -> None:
    kind = request.node.callspec.params["compare"]
    if mode and kind == "sqlite":
        pytest.skip("it cannot prepare")
    cased = kind != "sqlite"
    if mode:
        replica.run("init", *mode, "--relay-log-info-repository", "file", "--master-info-repository", "file")
    sources = {NORTH: mariadb, SOUTH: mariadb_factory()}
    for name, source in sources.items():
        fill(source, name, cased=cased)
        replica.change_master(source, "--channel", name)
        replica.run("change-filter", "--channel", name, "--replicate-do-db", name)
    ends = time.monotonic() + 120
    with (
        working(sources[NORTH], NORTH, [partial(write, random.Random(1), cased)], harmless=HARMLESS, pause_s=0.02),
        working(sources[SOUTH], SOUTH, [partial(write, random.Random(2), cased)], harmless=HARMLESS, pause_s=0.02),
    ):
        for name in sources:
            replica.run("clone", "--channel", name)
        Replica(replica.datadir.parent, NORTH).kill("applier")
        Replica(replica.datadir.parent, SOUTH).kill("receiver")
        for name in sources:
            replica.run("start", "--channel", name)
        while not all(row["State"] == "done" for name in sources for row in shown(replica, name)):
            assert time.monotonic() < ends, [Replica(replica.datadir.parent, name).logs() for name in sources]
            time.sleep(0.2)
    for name, source in sources.items():
        file, position = source.master_status()
        replica.run("wait", "--pos", f"{file}:{position}", "--timeout", "60", "--channel", name)
        compare(source, name)
    assert [row["Passed_Over_Errors"] for row in json.loads(replica.run("show-status", "--json").stdout)] == [0, 0]


def shown(replica: Replica, channel: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(replica.run("show-clone", "--json", "--channel", channel).stdout)
    return found

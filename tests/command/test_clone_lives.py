"""Many lives of a copy at once: each seed has a database, and its order of transactions there; all are copied together
while either end is killed, the source purges its logs and alters tables. Each ends as the source's, strictly.

`make torture` lives 300 of them on each kind of target.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import pytest

from tests.command.test_clone import Compare, compare, replica, wait_cloned
from tests.kit.load import Work, working
from tests.kit.replica import Replica, new_log, purge_logs, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import count_torture

__all__ = ["compare", "replica"]
pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
LIVES, WRITERS = 30, 3
KEYS = 60
HARMLESS = (1213, 1062, 1452, 1205, 1020, 1146, 1412, 1050, 1060, 1091)
TABLES = (
    "CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(200) NOT NULL, n DECIMAL(12,3), KEY (n))",
    "CREATE TABLE swaps (id INT PRIMARY KEY, u INT NULL, v BIGINT, UNIQUE (u))",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE tool (id INT PRIMARY KEY, v INT)",
)
DDL = (
    "ALTER TABLE tool ADD z INT DEFAULT 3",
    "ALTER TABLE tool DROP z",
    "TRUNCATE tool",
    "ALTER TABLE plain ADD KEY (v)",
    "RENAME TABLE tool TO gone, gone TO tool",
)


def fill(source: MariadbServer, name: str) -> None:
    source.sql(
        f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}; USE {name};"
        + ";".join(TABLES)
        + f"; INSERT INTO plain SELECT seq, REPEAT('x', seq), seq / 7 FROM seq_1_to_{KEYS};"
        f"INSERT INTO swaps SELECT seq, seq, seq FROM seq_1_to_{KEYS}; INSERT INTO tool SELECT id, u FROM swaps;"
        "INSERT INTO parent SELECT id FROM swaps;"
        f"INSERT INTO child SELECT seq, seq % {KEYS} + 1 FROM seq_1_to_{2 * KEYS}"
    )


def change(chance: random.Random) -> Sequence[str]:
    """One transaction: key moves, unique swaps, cascades, deletes."""
    a, b = chance.sample(range(1, KEYS), 2)
    return chance.choice(
        [
            [f"UPDATE plain SET v = '{a}' WHERE id = {b}", f"DELETE FROM plain WHERE id = {a}"],
            [f"REPLACE INTO plain VALUES ({a}, 'again', {b})"],
            [f"UPDATE IGNORE plain SET id = {a} WHERE id = {b}"],
            [f"UPDATE swaps SET u = NULL WHERE id = {a}", f"UPDATE swaps SET u = {a} + 1000 WHERE id = {b}",
             f"UPDATE swaps SET u = {b} WHERE id = {a} AND {a} NOT IN (SELECT u FROM (SELECT u FROM swaps) s)"],
            [f"DELETE FROM parent WHERE id = {a}", f"INSERT IGNORE INTO parent VALUES ({b})",
             f"REPLACE INTO child SELECT {b}, id FROM parent ORDER BY id LIMIT 1"],
            [f"UPDATE tool SET v = v + {a} WHERE id = {b}", f"REPLACE INTO tool (id, v) VALUES ({a}, {b})"],
        ]
    )  # fmt: skip


def writer(seeds: Sequence[int]) -> Work:
    chances = {seed: random.Random(seed) for seed in seeds}
    order = random.Random(seeds[0])

    def work(cursor: Any) -> None:
        seed = order.choice(seeds)
        cursor.execute(f"USE life{seed}")
        cursor.execute("BEGIN")
        for statement in change(chances[seed]):
            cursor.execute(statement)
        cursor.execute("COMMIT")

    return work


def alterer(seeds: Sequence[int]) -> Work:
    chance = random.Random(-1 - seeds[0])

    def work(cursor: Any) -> None:
        time.sleep(chance.random())
        cursor.execute(f"USE life{chance.choice(seeds)}")
        cursor.execute(chance.choice(DDL))

    return work


@pytest.mark.torture  # at each step: selftest/test_clone_walk.py
@pytest.mark.parametrize("first", range(0, 300, LIVES))
@pytest.mark.parametrize(
    "compare",
    ["sqlite", "mariadb", pytest.param("postgresql", marks=pytest.mark.postgresql)],
    indirect=True,
)
def test_killed_at_any_moment_each_goes_on_and_ends_strict(
    mariadb: MariadbServer, replica: Replica, compare: Compare, first: int
) -> None:
    seeds = range(first, first + LIVES)
    chance = random.Random(first)
    for seed in seeds:
        fill(mariadb, f"life{seed}")
    replica.change_master(mariadb)
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_wild_do_table = "life%.%"\n{options.read_text()}')
    parts = [seeds[number::WRITERS] for number in range(WRITERS)]
    with working(mariadb, f"life{first}", [*map(writer, parts)], harmless=HARMLESS, pause_s=0.03):
        with working(mariadb, f"life{first}", [alterer(seeds)], harmless=HARMLESS):
            replica.run("clone")
            for number in range(3):
                time.sleep(chance.random() * 1.5)
                if chance.random() < 0.25:
                    replica.run("stop")
                else:
                    replica.kill(chance.choice(["receiver", "applier"]))
                replica.run("start")
                if number == 1:
                    kept = new_log(mariadb)
                    wait_until(lambda kept=kept: str(replica.status()["Master_Log_File"]) >= kept, 60)  # type: ignore[misc]
                    purge_logs(mariadb, kept)
        wait_cloned(replica)
    replica.wait_synced(mariadb, 120)
    for seed in seeds:
        compare(mariadb, f"life{seed}")
        mariadb.sql(f"DROP DATABASE life{seed}")
    assert replica.status()["Passed_Over_Errors"] == 0
    count_torture("clone lives", "seed", 0, LIVES)

"""Workers of Spark, its JVM and the applier killed at random moments while a source is written to, by seeds.

One seed is a random list of transactions, and random kills while they are replicated. A worker is killed from outside,
or by the crash point that takes its range with it. The applier must go on after the death of a worker; after the death
of its JVM, or its own, the next start must. Then every row of the target is the source's, and Spark decoded all rows.
`SEEDS=17 pytest -m torture tests/stories/test_random_kills.py` runs seed 17, `SEEDS=0-600` runs that many.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from rplctl.failpoint import arm
from tests.applier.test_killed_parts import JAVA, children_of, tasks_of
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import count_torture

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
IN_LONG_PART, IN_TORTURE = 3, 300
TRANSACTIONS, KILLS = 30, 3
TABLES = "CREATE TABLE keyed (id INT AUTO_INCREMENT PRIMARY KEY, n INT, note LONGTEXT); CREATE TABLE bare (n INT)"


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory, mariadb: MariadbServer) -> Iterator[Replica]:
    mariadb.sql("DROP DATABASE IF EXISTS kills; CREATE DATABASE kills")
    mariadb.sql(TABLES, "kills")
    replica = Replica(tmp_path_factory.mktemp("kills"))
    replica.run("init")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "kills"\n{options.read_text()}')
    replica.change_master(mariadb)
    replica.run("start")
    yield replica
    replica.close()


def transactions(chance: Random) -> Iterator[str]:
    """Yield statements: few rows or many, small or of a megabyte, which comes by a spool file."""
    yield "DELETE FROM keyed; DELETE FROM bare WHERE n > 2"
    for _ in range(TRANSACTIONS):
        n, rows = chance.randrange(7), chance.choice((1, 1, 20, 300))
        length = chance.choice((0, 30, 5000))
        yield chance.choice(
            (
                f"INSERT INTO keyed (n, note) SELECT {n}, REPEAT('x', {length}) FROM seq_1_to_{rows}",
                f"UPDATE keyed SET n = n + {n}, note = CONCAT(LEFT(note, 9), id) WHERE id % 3 = {n % 3}",
                f"DELETE FROM keyed WHERE id % 7 = {n}",
                f"INSERT INTO bare SELECT seq % 5 FROM seq_1_to_{rows}",
                f"DELETE FROM bare WHERE n = {n}",
            )
        )


def write(source: MariadbServer, chance: Random) -> None:
    with contextlib.closing(source.connect("kills")) as connection, connection.cursor() as cursor:
        for statements in transactions(chance):
            for statement in statements.split("; "):
                cursor.execute(statement)
            time.sleep(chance.uniform(0, 0.05))


def kill_worker(replica: Replica, applier: int, chance: Random) -> None:
    with contextlib.suppress(ProcessLookupError):
        if workers := tasks_of(applier):
            os.kill(chance.choice(workers), signal.SIGKILL)


def kill_worker_with_range(replica: Replica, _: int, chance: Random) -> None:
    arm(replica.channel.run_folder, f"crash_task_with_range=kill@{chance.randint(1, 3)}")


def kill_java(replica: Replica, applier: int, _: Random) -> None:
    """The applier ends with it, or starts another one if it was about to use it for the first time."""
    for java in children_of(applier, JAVA):
        os.kill(java, signal.SIGKILL)
        wait_until(lambda: replica.pid("applier") != applier or children_of(applier, JAVA) not in ([], [java]))  # noqa: B023


def kill_applier(replica: Replica, _: int, __: Random) -> None:
    replica.kill("applier")


VICTIMS: tuple[Callable[[Replica, int, Random], None], ...] = (
    *(kill_worker, kill_worker, kill_worker_with_range, kill_worker_with_range),
    *(kill_java, kill_applier),
)


def run_to_the_end(replica: Replica, source: MariadbServer) -> None:
    """Start the applier whenever it does not run, until it has applied everything."""
    end = source.master_status()

    def is_there() -> bool:
        if replica.pid("applier") is None:
            replica.run("start", "--applier")
        status = replica.status()
        return (status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]) == end

    wait_until(is_there)


def seeds() -> list[object]:
    if wanted := os.environ.get("SEEDS"):
        first, _, last = wanted.partition("-")
        wanted_seeds = range(int(first), int(last or first) + 1)
        return [pytest.param(seed, marks=pytest.mark.torture) for seed in wanted_seeds]
    long = [
        pytest.param(seed, marks=pytest.mark.long("tests/stories/test_rows_by_spark.py kills each part of Spark once."))
        for seed in range(IN_LONG_PART)
    ]
    return [*long, *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(IN_LONG_PART, IN_TORTURE))]


@pytest.mark.parametrize("seed", seeds())
def test_every_row_arrives_whatever_part_of_spark_is_killed(
    replica: Replica, mariadb: MariadbServer, seed: int
) -> None:
    chance = Random(seed)
    writer = Thread(target=write, args=(mariadb, Random(seed)))
    writer.start()
    killed = []
    for _ in range(KILLS):
        time.sleep(chance.uniform(0, 0.5))  # the random moment: nothing is waited for
        kill = chance.choice(VICTIMS)
        if (applier := replica.pid("applier")) is None:
            replica.run("start", "--applier")
        else:
            kill(replica, applier, chance)
            killed.append(kill.__name__)
    writer.join()
    run_to_the_end(replica, mariadb)
    assert_same_tables(mariadb, replica, "kills")
    status = replica.status()
    assert (status["Last_Error"], status["Rows_By_Driver"]) == ("", 0), killed
    assert not list(Path(replica.channel.spool_folder).glob("*")), killed
    for name in killed:
        count_torture("random kills", name, 0)

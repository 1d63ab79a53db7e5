"""Several connections commit a channel's batches, as an operator meets it: kill, STOP, others' locks, other options."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.commit.test_branches import MADE, SLOTS, TABLES, prepared, rows
from tests.kit.private_server import PASSWORD, USER
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer

pytestmark = [
    pytest.mark.long("Several connections are not the default; tests/commit/test_branches.py holds each step."),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
WORKERS = ("--replica-parallel-workers", "3")
WRITTEN = """BEGIN; INSERT INTO f.a SELECT {0} + seq, REPEAT('a', 30) FROM f.seq_1_to_4000;
INSERT INTO f.b SELECT {0} + seq, {0} + seq, 0 FROM f.seq_1_to_4000;
INSERT INTO f.c SELECT {0} + seq, seq, {0} + seq FROM f.seq_1_to_4000;
INSERT INTO f.d SELECT {0}, 'd' FROM f.seq_1_to_4000;
COMMIT;
UPDATE f.a SET v = CONCAT(v, '+') WHERE id > {0}; UPDATE f.c SET v = v + 1; DELETE FROM f.d WHERE v < {0}"""


def is_equal(source: MariadbServer, target: MariadbServer | PostgresqlServer) -> bool:
    return all(rows(source, table) == rows(target, table) for table in TABLES)


def goes_through_kills(source: MariadbServer, target: MariadbServer | PostgresqlServer, replica: Replica) -> None:
    chance = random.Random(24)
    source.sql(MADE)
    replica.run("start")
    for turn in range(1, 4):
        source.sql(WRITTEN.format(10_000 * turn))
        time.sleep(chance.uniform(0, 0.5))
        replica.kill("applier")
        replica.run("start")
    replica.wait_synced(source)
    assert prepared(target) == 0 and is_equal(source, target)
    source.sql(WRITTEN.format(90_000))
    began = time.monotonic()
    replica.run("stop")
    assert time.monotonic() - began < 6
    assert prepared(target) == 0
    replica.run("start", "--until-synced")
    assert is_equal(source, target)
    assert replica.status()["Passed_Over_Errors"] == 0


def test_a_mariadb_target_goes_through_kills_and_stops(
    mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    source, target = mariadb_factory(), mariadb_factory()
    replica = Replica(tmp_path, spark=False)
    with closing(replica):
        replica.set_up(source, *replica.into(target), *WORKERS)
        goes_through_kills(source, target, replica)


@pytest.mark.torture
@pytest.mark.postgresql
def test_a_postgresql_target_goes_through_kills_and_stops_and_waits_for_locks_of_others(
    mariadb_factory: Callable[..., MariadbServer],
    postgresql_factory: Callable[..., PostgresqlServer],
    tmp_path: Path,
) -> None:
    source, target = mariadb_factory(), postgresql_factory(*SLOTS)
    replica = Replica(tmp_path, spark=False)
    with closing(replica):
        password = tmp_path / "target-password"
        password.touch(0o600)
        password.write_text(PASSWORD)
        where = f"postgresql://{USER}@{target.host}:{target.port}/postgres"
        replica.set_up(source, "--target", where, "--target-password-file", str(password), *WORKERS)
        goes_through_kills(source, target, replica)
        replica.run("start")
        with closing(target.connect()) as other:
            other.autocommit = False
            other.execute("LOCK TABLE f.c IN ACCESS EXCLUSIVE MODE")
            source.sql(WRITTEN.format(200_000))
            log = replica.channel.log_path("applier")
            wait_until(lambda: "one connection commits these tables from now on" in log.read_text(), 60)
            other.rollback()
        replica.wait_synced(source)
        assert prepared(target) == 0 and is_equal(source, target)
        replica.run("stop")
        source.sql(WRITTEN.format(300_000))
        replica.run("start", "--until-synced", environment={"RPLCTL_REPLICA_PARALLEL_WORKERS": "0"})
        assert is_equal(source, target)

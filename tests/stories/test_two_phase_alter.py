"""MariaDB's ALTER TABLE in two groups (binlog_alter_two_phase): START ALTER, others' transactions, COMMIT or ROLLBACK.

Two run at once on the source, one of them fails. An applier that ends behind every single group, as kill -9 between
START and COMMIT would have it, comes to the source's rows.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.applier.scenario import apply_in_order
from tests.kit.neutral_state import differences as sqlite_differences, state_of
from tests.kit.postgresql_state import connect, differences as postgresql_differences, new_database
from tests.kit.servers import MariadbServer, PostgresqlServer

pytestmark = [
    pytest.mark.long("ALTER in two groups is rare; tests/commit/test_two_phase.py has two phases in make test."),
    pytest.mark.slow,
]

ROWS = 5_000  # long enough for others to commit meanwhile; where they did not, the log is still a valid one
SCHEMA = "".join(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT);" for name in "tuo") + (
    f"INSERT INTO t SELECT seq, seq FROM seq_1_to_{ROWS}; INSERT INTO u SELECT seq, 7 FROM seq_1_to_{ROWS}"
)
AFTER = "INSERT INTO t VALUES (-1, 1, 1); INSERT INTO u VALUES (-1, 7); ALTER TABLE o ADD w INT DEFAULT 3 FIRST"
PHASED = "SET binlog_alter_two_phase=ON;"


@pytest.fixture(scope="module")
def log(mariadb: MariadbServer) -> Iterator[RelayGroups]:
    mariadb.sql("DROP DATABASE IF EXISTS phased; FLUSH BINARY LOGS; CREATE DATABASE phased")
    mariadb.sql(SCHEMA, "phased")

    def alter(clauses: str) -> None:
        with contextlib.suppress(pymysql.IntegrityError):  # that of u has duplicates
            mariadb.sql(f"{PHASED} ALTER TABLE {clauses}, ALGORITHM=COPY", "phased")

    alters = [threading.Thread(target=alter, args=(text,)) for text in ("t ADD w INT DEFAULT 5", "u ADD UNIQUE (v)")]
    for thread in alters:
        thread.start()
    number = 0
    while number < 12 and (any(thread.is_alive() for thread in alters) or number < 3):
        number += 1
        mariadb.sql(f"INSERT INTO o VALUES ({number}, 1)", "phased")
    for thread in alters:
        thread.join()
    mariadb.sql(PHASED + AFTER, "phased")
    yield groups_of(mariadb.binlog_files[-1])


@pytest.mark.parametrize(
    ("target", "ignored"), [("sqlite", ""), ("sqlite", "phased.t"), ("postgresql", ""), ("mariadb", "")]
)
def test_an_alter_in_two_groups_is_carried_out_once_whatever_lies_between(
    log: RelayGroups, mariadb: MariadbServer, request: pytest.FixtureRequest, target: str, ignored: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"replicate_ignore_table": ignored}
    if target == "postgresql":
        postgresql: PostgresqlServer = request.getfixturevalue("postgresql")
        options["target"] = new_database(postgresql)
    elif target == "mariadb":
        server: MariadbServer = request.getfixturevalue("mariadb_factory")()
        server.sql("CREATE DATABASE rplctl")
        options["target"] = server.url()
    instance = Instance(tmp_path, log, **options)
    for number in range(len(log.scan)):
        apply_in_order(instance, log, number, number + 1)
        instance.applier = instance.reopen()
    end = instance.applier.info.exec_position
    instance.target.close()
    assert end == log.scan.source_position(len(log.scan) - 1)
    state = "".join(state_of(mariadb, ["phased"]))
    left_out = frozenset(filter(None, [ignored]))
    if target == "postgresql":
        with connect(options["target"]) as there:
            assert postgresql_differences(there, state, left_out) == []
    elif target == "mariadb":
        found = "".join(state_of(server, ["phased"])).split("#TABLE\t")
        wanted = [block for block in state.split("#TABLE\t") if not (ignored and block.startswith("phased\tt\n"))]
        assert [sorted(block.splitlines()) for block in found] == [sorted(block.splitlines()) for block in wanted]
    else:
        with contextlib.closing(sqlite3.connect(tmp_path / "target.db")) as file:
            assert sqlite_differences(file, state, left_out) == []

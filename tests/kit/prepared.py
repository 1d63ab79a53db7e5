"""All that the tests set and an operator does not, each with its reason. tests/house/test_prepared.py holds the list.

tests/stories/test_bare_environment.py runs a channel without any of it.
"""

from __future__ import annotations

from typing import Final

_OTHER_PORT: Final = "servers of several tests are on one machine"
_QUICK: Final = "a killed process loses nothing by it; only a power cut would"

ENVIRONMENT: Final = {
    "PYSPARK_PYTHON": "a Spark of the test's own process; the program sets its own (rplctl/applier/spark)",
    "PYTEST_DEBUG_TEMPROOT": "the tests' folders are in memory",
    "PYTHONPATH": "Spark's tasks without Java, in tests that do not promise Spark (tests/kit/without_java)",
    "XDG_CONFIG_HOME": "the options of the person who runs the tests must not count",
}
SERVER_OPTIONS: Final = {
    "--bind-address": _OTHER_PORT,
    "--relay-log": "the name by which tests find the logs of a native replica; by default it has the host's name",
    "--log-bin": "MariaDB has no binary log by default; the quick start sets it. MySQL's is called binlog by default",
    "--binlog-format": "the quick start sets ROW; MariaDB's default is MIXED, and doctor warns of it",
    "--binlog-row-metadata": "names and signs of columns in the log; without it rplctl reads them from the log's DDL",
    "--sync-binlog": _QUICK,
    "--innodb-flush-log-at-trx-commit": _QUICK,
    "--secure-file-priv": "the unpacked MySQL has no folder for its default, and does not start without one",
    "--local-infile": "tests of LOAD DATA LOCAL on the source; on a target rplctl works without it (doctor tells)",
    "--user": "a server does not run as root without it",
    "--skip-slave-start": "a native replica begins when its test says so",
    "--skip-replica-start": "a native replica begins when its test says so",
    "--log-slave-updates": "a native replica in the middle of a chain; MySQL has it by default",
    "--innodb-log-file-size": "the folder of a server is in memory",
    "--gtid-mode": "tests of GTIDs; by position it makes no difference",
    "--enforce-gtid-consistency": "--gtid-mode needs it",
    "--mysqlx": _OTHER_PORT,
    "--ssl": "the unpacked server lacks the libraries of its certificates; other servers have TLS on",
}
POSTGRESQL_SETTINGS: Final = {
    "listen_addresses": _OTHER_PORT,
    "port": _OTHER_PORT,
    "unix_socket_directories": _OTHER_PORT,
    "max_prepared_transactions": "two phases are off by default; without them rplctl says so and uses one",
    "dynamic_shared_memory_type": "a killed server leaves nothing in /dev/shm",
    "fsync": _QUICK,
    "timezone": "tests compare texts; sessions of rplctl set a time zone of their own",
}

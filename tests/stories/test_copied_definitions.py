"""The tables that a copy creates on a server target: names, defaults and keys as those of the source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, MysqlServer
from tests.stories.test_recopy import begun, wait_copied

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


def test_a_literal_default_of_a_timestamp_is_the_same_moment_in_another_time_zone(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    """With MINIMAL images, the target fills in its own default."""
    source, target = mariadb_factory("--default-time-zone=+05:00", "--binlog-row-image=MINIMAL"), mariadb_factory()
    source.sql("DROP DATABASE IF EXISTS anew; CREATE DATABASE anew")
    source.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NOT NULL DEFAULT '2024-01-01 12:00:00')", "anew")
    replica.run("init", *replica.into(target), "--replicate-do-db", "anew")
    name, position = source.master_status()
    replica.change_master(source, "--master-log-file", name, "--master-log-pos", str(position))
    replica.run("clone")
    wait_copied(replica)
    source.sql("INSERT INTO t (id) VALUES (1)", "anew")
    replica.wait_synced(source)
    replica.run("verify")
    moment = "SELECT UNIX_TIMESTAMP(ts) FROM anew.t"
    assert target.sql(moment) == source.sql(moment)


def test_a_renamed_table_that_is_copied_again_takes_the_names_of_its_constraints(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source, target = mariadb_factory(), mariadb_factory()
    begun(replica, source, *replica.into(target), "--on-uncomputable-ddl", "recopy")
    source.sql("ALTER TABLE child ADD CONSTRAINT fk_of_old FOREIGN KEY (k) REFERENCES parent (k)", "anew")
    source.sql("ALTER TABLE child RENAME TO a_child, ADD u CHAR(36) DEFAULT (UUID())", "anew")
    replica.wait_synced(source)
    wait_copied(replica)
    replica.run("verify")
    assert target.sql("SHOW TABLES FROM anew LIKE '%child'") == [("a_child",)]


@pytest.mark.mysql
def test_a_table_without_a_key_is_copied_to_a_server_that_requires_keys_if_the_channel_does_not(
    replica: Replica, mysql: MysqlServer, mysql_factory: Callable[..., MysqlServer]
) -> None:
    target = mysql_factory("--sql-require-primary-key=ON")
    mysql.sql("DROP DATABASE IF EXISTS anew; CREATE DATABASE anew")
    mysql.sql("CREATE TABLE keyless (a INT); INSERT INTO keyless VALUES (1), (1)", "anew")
    replica.run("init", *replica.into(target), "--replicate-do-db", "anew")
    more = ("--get-master-public-key", "1", "--master-auto-position", "1", "--require-table-primary-key-check", "off")
    replica.change_master(mysql, *more)
    replica.run("clone")
    wait_copied(replica)
    mysql.sql("INSERT INTO keyless VALUES (2)", "anew")
    replica.wait_synced(mysql)
    replica.run("verify")
    assert target.rows("anew", "keyless") == [(1,), (1,), (2,)]

"""DuckDB beside a real source: one process holds the file, every command says so, and the rows are the source's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import pytest

from tests.command.test_repair import differences
from tests.command.test_verify import ALL_TYPES, FAULTS, FILL, PLAIN, ROWS
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.mariadb, pytest.mark.slow]

SCHEMA = """
RESET MASTER; DROP DATABASE IF EXISTS other; DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop;
CREATE TABLE customer (id INT UNSIGNED PRIMARY KEY, mail VARCHAR(40) UNIQUE, since DATE, seen TIMESTAMP(3) NULL);
CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, customer INT UNSIGNED, amount DECIMAL(12,2), took TIME(2),
  FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE tree (id INT PRIMARY KEY, above INT, FOREIGN KEY (above) REFERENCES tree (id) ON DELETE CASCADE);
INSERT INTO customer VALUES (1,'a@x','0000-00-00','2024-02-29 12:00:00.125'),(2,'b@x','2024-02-29',NULL),
  (3,NULL,NULL,NULL);
INSERT INTO orders VALUES (18446744073709551615,1,1.10,'-838:59:59.25'),(2,2,99.99,'00:00:01'),(3,3,NULL,NULL);
INSERT INTO tree VALUES (1,NULL),(2,1),(3,2),(4,3),(10,NULL),(11,10);
"""
CHANGES = """
USE shop;
UPDATE customer SET id=20 WHERE id=2;
DELETE FROM customer WHERE id=1;
DELETE FROM tree WHERE id=1;
ALTER TABLE customer ADD COLUMN name VARCHAR(20) NOT NULL DEFAULT 'none' AFTER id, MODIFY mail VARCHAR(80);
ALTER TABLE orders ADD COLUMN note TEXT;
UPDATE customer SET name=CONCAT('n', id);
RENAME TABLE tree TO twig;
CREATE DATABASE IF NOT EXISTS other;
CREATE TABLE other.Orders LIKE orders;
INSERT INTO other.Orders SELECT * FROM orders;
"""
MORE_FAULTS = (
    "UPDATE words SET v = 0 WHERE v = 9",
    "DELETE FROM words WHERE v = 10",
    "UPDATE types SET p = 'it''s é', t = unhex('00ff'), k = '-infinity', l = '-00:00:01' WHERE id = 3",
    "UPDATE types SET h = 0.5, x = '[1]', z = uuid(), i = 511, m = '1999-12-31 23:59:59.125' WHERE id = 4",
    "UPDATE types SET n = '2024-01-01 00:00:00.000002+00', f = 0.2, q = NULL WHERE id = 101",
    "DELETE FROM types WHERE id = 18446744073709551615",
    "UPDATE types SET id = 501 WHERE id = 1",
)


def synced(replica: Replica, source: MariadbServer) -> None:
    log, position = source.master_status()
    replica.run("wait", "--pos", f"{log}:{position}", "--timeout", "120")


def copied(copy: Path, table: str) -> int:
    """Rows of the table in the copy for readers."""
    if not copy.exists():
        return 0
    with duckdb.connect(str(copy), read_only=True) as reader:
        try:
            row = reader.execute(f"SELECT count(*) FROM shop.{table}").fetchone()
        except duckdb.CatalogException:
            return 0
    assert row is not None
    return int(row[0])


def test_the_rows_are_the_sources_and_the_file_is_the_appliers(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    mariadb = mariadb_factory()  # of its own: all of it is compared
    mariadb.sql(SCHEMA)
    target = tmp_path / "shop.duckdb"  # a schema and the file's own catalog have one name then
    replica = Replica(tmp_path, spark=False)
    copy = tmp_path / "readers.duckdb"
    replica.set_up(mariadb, "--target", f"duckdb:///{target}?threads=2&export_to={copy}")
    replica.run("start")
    synced(replica, mariadb)
    wait_until(lambda: copied(copy, "customer") == 3, timeout_s=30)
    assert (target.stat().st_mode | target.with_name("shop.duckdb.wal").stat().st_mode) & 0o077 == 0

    pid = replica.pid("applier")
    for words, code in ((["verify"], 7), (["show-clone"], 7), (["load-schema", "--from-source"], 2)):
        done = replica.run(*words, expect=code)
        assert code == 2 or f"(process {pid})" in done.stderr, done.stderr
    doctor = replica.run("doctor", expect=None).stdout
    (line,) = [line for line in doctor.splitlines() if line.startswith("target\t")]
    assert line.startswith("target\tOK") and f"(process {pid})" in line
    assert f"copy for readers\tOK\t{copy} is " in doctor
    assert replica.run("check").stdout.startswith("RPLCTL OK")
    assert replica.status()["Exec_Master_Log_Pos"] == mariadb.master_status()[1]

    mariadb.sql(CHANGES)
    replica.kill("applier")
    replica.run("start", "--applier")
    synced(replica, mariadb)
    wait_until(lambda: copied(copy, "twig") == 2, timeout_s=30)
    replica.run("stop")
    verified = json.loads(replica.run("verify", "--json").stdout)
    assert [(row["Table_name"], row["Row_count"], row["Equal"]) for row in verified] == [
        ("Orders", 2, 2), ("customer", 2, 2), ("orders", 2, 2), ("twig", 2, 2)
    ]  # fmt: skip
    with duckdb.connect(str(target)) as reader:
        assert reader.execute("SELECT id, customer FROM shop.shop.orders ORDER BY id").fetchall() == [(2, 20), (3, 3)]
        reader.execute("UPDATE shop.shop.customer SET name = 'other' WHERE id = 3")
        reader.execute("DELETE FROM shop.shop.orders WHERE id = 2")
    found = replica.run("verify", expect=None)
    assert found.returncode == 1, found.stderr


@pytest.mark.long("test_the_rows_are_the_sources_and_the_file_is_the_appliers holds the file for one process.")
def test_a_clone_is_loaded_while_the_applier_has_the_file_and_repair_mends_it(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    mariadb = mariadb_factory()  # of its own: all of it is compared
    mariadb.sql(SCHEMA)
    mariadb.sql("USE shop; CREATE TABLE log (a INT, b TEXT); INSERT INTO log SELECT seq % 7, 'x' FROM seq_1_to_500")
    more = "INSERT INTO types (id) SELECT 100 + seq FROM seq_1_to_40"
    mariadb.sql("; ".join(("USE shop; SET sql_mode=''", ALL_TYPES, *PLAIN[:2], ROWS, *FILL[:2], more)))
    replica = Replica(tmp_path, spark=False)
    replica.run("init", "--target", f"duckdb:///{tmp_path / 'shop.duckdb'}")
    replica.change_master(mariadb, "--master-use-gtid", "slave_pos")
    replica.run("clone")
    mariadb.sql("DELETE FROM shop.customer WHERE id = 1; DELETE FROM shop.log WHERE a = 3")
    wait_until(lambda: "applier: copied at" in replica.logs(), timeout_s=60)
    synced(replica, mariadb)
    replica.run("stop")
    verified = json.loads(replica.run("verify", "--json").stdout)
    equal = {row["Table_name"]: (row["Row_count"], row["Equal"]) for row in verified}
    great = {"types": (44, 44), "plain": (3000, 3000), "words": (300, 300)}
    assert equal == {"customer": (2, 2), "orders": (2, 2), "tree": (6, 6), "log": (428, 428), **great}
    repaired(replica, tmp_path / "shop.duckdb")


def repaired(replica: Replica, target: Path) -> None:
    """What is wrong is found and mended, row by row; the undo SQL, run by DuckDB alone, brings it back."""

    def run(statements: Iterable[str]) -> None:
        with duckdb.connect() as other:
            other.execute(f"ATTACH '{target}' AS replica; USE replica.shop")
            for sql in statements:
                other.execute(sql)

    def found(name: str) -> Counter[str]:
        replica.run("verify", "--report", str(replica.datadir.parent / name), expect=1)
        return differences(replica.datadir.parent / name)

    run([*(sql.format(t="plain") for sql in FAULTS), *MORE_FAULTS])
    planted = found("planted")
    rows = json.loads(replica.run("repair", "--json").stdout)
    written = {row["Table_name"]: (row["Inserted"], row["Deleted"], row["Updated"]) for row in rows}
    assert written == {"plain": (1, 1, 12), "words": (1, 0, 1), "types": (2, 1, 3)}
    assert {row["Left_over"] for row in rows} == {0}
    replica.run("verify")
    (undo,) = replica.channel.undo_folder.iterdir()
    run(path.read_text() for path in sorted(undo.iterdir()))
    assert found("again") == planted


def test_a_table_is_no_repository_of_a_file_that_one_process_opens(tmp_path: Path) -> None:
    replica = Replica(tmp_path, spark=False)
    done = replica.run(
        "init", "--target", f"duckdb:///{tmp_path / 't.duckdb'}", "--relay-log-info-repository", "TABLE", expect=78
    )
    assert "one process at a time" in done.stderr
    assert not (tmp_path / "t.duckdb").exists()
    done = replica.run("init", "--target", f"duckdb:///{tmp_path / 't.duckdb'}?colour=red", expect=78)
    assert "no option 'colour'" in done.stderr

"""`rplctl verify`: what is equal is told as equal, whatever its types; what differs is told, and nothing else."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rplctl.verify.report_file import read_report
from tests.cli.test_json_page import PAGE
from tests.kit.load import Work, working
from tests.kit.postgresql_state import connect, new_database
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SCHEMA = "DROP DATABASE IF EXISTS living; CREATE DATABASE living CHARACTER SET utf8mb4; USE living; SET sql_mode=''"
ALL_TYPES = """CREATE TABLE types (
  id BIGINT UNSIGNED PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT UNSIGNED, e BIGINT,
  f FLOAT, g DOUBLE, h DECIMAL(20,6), i BIT(9), j YEAR, k DATE, l TIME(2), m DATETIME(3), n TIMESTAMP(6) NULL,
  o CHAR(10), p VARCHAR(40), q TEXT, r VARCHAR(20) CHARACTER SET latin1, s BINARY(4), t VARBINARY(9), u BLOB,
  v ENUM('ä','b'), w SET('x','y','z'), x JSON, y INET6, z UUID, aa INT AS (a + 1) STORED,
  bb VARCHAR(9) CHARACTER SET ucs2)"""
ROWS = """INSERT INTO types (id,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,bb) VALUES
 (1,-1,1,-1,1,-1,0.1,0.1,'-1.5',b'1',2024,'2024-02-29','-00:00:00.01','2024-01-01 00:00:00.5',
  '2024-01-01 00:00:00.000001','a','ä ','t','é',x'0100',x'0100',x'00ff',1,'x,z','{"a": [1, 2]}','::1.2.3.4',
  '123e4567-e89b-12d3-a456-426655440000','日'),
 (18446744073709551615,127,65535,8388607,4294967295,9223372036854775807,3.4e38,-1.7e308,'0',b'111111111',1901,
  '9999-12-31','838:59:59','9999-12-31 23:59:59.999','2037-01-01 00:00:00','','','','','','','',2,'','[]','::',
  '00000000-0000-0000-0000-000000000000',''),
 (3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL),
 (4,0,0,0,0,0,-0.0,-0.0,'0.000001',b'0',0,'0000-00-00','00:00:00','0000-00-00 00:00:00',NULL,'Z','z','\\\\N','\t',
  x'ff',x'ff',x'5c4e','b','y','"é"','255.255.255.255','ffffffff-ffff-ffff-ffff-ffffffffffff','a')"""
ODD = ("parts", "versions", "texts")
PLAIN = (
    "CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(40), n DECIMAL(9,2), g DOUBLE, m DATETIME(3), x LONGTEXT)",
    "CREATE TABLE words (w VARCHAR(40) COLLATE utf8mb4_bin, k BINARY(3), d DATE, v INT, PRIMARY KEY (w, k, d))",
    "CREATE TABLE keyless (a INT, b VARCHAR(20))",
    "CREATE TABLE empty (id INT PRIMARY KEY)",
    "CREATE TABLE parts (id INT PRIMARY KEY, v VARCHAR(9)) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE versions (id INT PRIMARY KEY, v VARCHAR(9)) WITH SYSTEM VERSIONING",
    "CREATE TABLE texts (id INT PRIMARY KEY, v VARCHAR(9), FULLTEXT (v))",
)
FILL = (
    "INSERT INTO plain SELECT seq, CONCAT('v', seq), seq / 7, seq / 3, '2024-01-01' + INTERVAL seq SECOND,"
    " CONCAT('{\"a\": ', seq, ', \"b\": 2}') FROM seq_1_to_3000",
    "INSERT INTO words SELECT CONCAT('w', seq % 9, IF(seq % 2, 'é', '')), CHAR(seq), '2024-01-01' + INTERVAL seq DAY,"
    " seq FROM seq_1_to_300",
    "INSERT INTO keyless SELECT seq % 10, 'same' FROM seq_1_to_100",
    *(
        f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c'); UPDATE {name} SET v = 'd' WHERE id = 3"
        for name in ODD
    ),
)
FAULTS = {  # set on the target: what is found
    "UPDATE {t} SET v = 'V7' WHERE id = 7": ("different", "7", ("v",)),
    "UPDATE {t} SET v = 'v8 ' WHERE id = 8": ("different", "8", ("v",)),
    "UPDATE {t} SET v = NULL WHERE id = 9": ("different", "9", ("v",)),
    "UPDATE {t} SET v = '' WHERE id = 10": ("different", "10", ("v",)),
    "UPDATE {t} SET v = 'vé' WHERE id = 11": ("different", "11", ("v",)),
    "UPDATE {t} SET n = '1.72' WHERE id = 12": ("different", "12", ("n",)),
    "UPDATE {t} SET g = g + 1e-12 WHERE id = 13": ("different", "13", ("g",)),
    "UPDATE {t} SET m = '2024-01-01 00:00:14.001' WHERE id = 14": ("different", "14", ("m",)),
    'UPDATE {t} SET x = \'{{"b": 2, "a": 15}}\' WHERE id = 15': ("different", "15", ("x",)),
    "UPDATE {t} SET v = 'x', n = 0 WHERE id = 16": ("different", "16", ("v", "n")),
    "DELETE FROM {t} WHERE id = 17": ("missing", "17", ()),
    "INSERT INTO {t} (id, v) VALUES (5000, 'more')": ("extra", "5000", ()),
    "UPDATE {t} SET v = 'v19' WHERE id = 18": ("different", "18", ("v",)),
    "UPDATE {t} SET v = 'v18' WHERE id = 19": ("different", "19", ("v",)),
}
Target = Callable[[str], object]  # executes on it; {db} is how the database's tables begin


@contextmanager
def opened(kind: str, replica: Replica, request: pytest.FixtureRequest) -> Iterator[Target]:
    """An instance into a new target of that kind."""
    folder = replica.datadir.parent
    if kind == "sqlite":
        replica.run("init")

        def in_sqlite(sql: str) -> None:
            with closing(sqlite3.connect(replica.datadir / "target.db", timeout=30)) as connection:
                connection.executescript(f"BEGIN; {sql.replace('{db}', 'living__')}; COMMIT")

        yield in_sqlite
    elif kind == "postgresql":
        url = new_database(request.getfixturevalue("postgresql"))
        password = folder / "password"
        password.write_text("rpl\n")
        password.chmod(0o600)
        shown = url.replace("rpl:rpl@", "rpl@").replace("+psycopg", "")
        replica.run("init", "--target", shown, "--target-password-file", str(password))

        def in_postgresql(sql: str) -> None:
            with connect(url) as connection:
                connection.execute(sql.replace("{db}", "living.").encode())
                connection.commit()

        yield in_postgresql
    else:
        server = request.getfixturevalue(f"{kind}_factory")("--skip-log-bin")
        tables = ("--master-info-repository", "table", "--relay-log-info-repository", "table")
        replica.run("init", *replica.into(server), *tables)
        yield lambda sql: server.sql(f"SET NAMES utf8mb4; {sql.replace('{db}', 'living.')}")


@pytest.fixture(params=["sqlite", "mariadb", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def target(request: pytest.FixtureRequest, replica: Replica) -> Iterator[Target]:
    with opened(request.param, replica, request) as found:
        yield found


def write(chance: random.Random, cursor: Any) -> None:
    """Rows that come, go, move to another key, change, and change back at once; none of those that get faults."""
    a, b = chance.sample(range(1000, 3000), 2)
    for statement in chance.choice(
        [
            [f"UPDATE plain SET v = '{b}' WHERE id = {a}"],
            [f"UPDATE plain SET v = 'other' WHERE id = {a}", f"UPDATE plain SET v = 'v{a}' WHERE id = {a}"],
            [f"DELETE FROM plain WHERE id = {a}", f"INSERT IGNORE INTO plain (id, v) VALUES ({b}, 'again')"],
            [f"UPDATE IGNORE words SET v = v + 1, k = CHAR({a % 256}) WHERE v = {100 + b % 200}"],
            [f"INSERT INTO keyless VALUES ({a % 10}, 'same')", f"DELETE FROM keyless WHERE a = {b % 10} LIMIT 1"],
        ]
    ):
        cursor.execute(statement)


def alter(cursor: Any) -> None:
    cursor.execute("ALTER TABLE empty ADD z INT")
    cursor.execute("ALTER TABLE empty DROP z")
    time.sleep(0.3)


def verified(replica: Replica, *options: str, expect: int = 0) -> dict[str, dict[str, Any]]:
    rows = json.loads(replica.run("verify", "--json", *options, expect=expect).stdout)
    return {row["Table_name"]: row for row in rows}


@pytest.mark.long("tests/command/test_verify_stopped.py finds and repairs a planted fault in make test.")
def test_planted_faults_are_all_that_is_found(
    target: Target, replica: Replica, source: MariadbServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source.sql("; ".join((SCHEMA, ALL_TYPES, *PLAIN, ROWS, *FILL)))
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "living"\n{options.read_text()}')
    replica.change_master(source)
    replica.run("start")
    replica.wait_synced(source)
    found = verified(replica)
    assert list(found["types"]) == PAGE["verify"]
    assert {name: (row["Row_count"], row["Equal"], row["Note"]) for name, row in found.items()} == {
        "types": (4, 4, ""), "plain": (3000, 3000, ""), "words": (300, 300, ""), "keyless": (100, 100, ""),
        "empty": (0, 0, ""), **dict.fromkeys(ODD, (3, 3, "")),
    }  # fmt: skip
    if request.node.callspec.params["target"] == "sqlite":
        what_is_in_motion_is_no_difference(target, replica, source)
    for sql in FAULTS:
        target(sql.format(t="{db}plain"))
    target("UPDATE {db}words SET v = 0 WHERE v = 9")
    target("DELETE FROM {db}words WHERE v = 10")
    target("INSERT INTO {db}keyless VALUES (77, 'more')")
    for name in ODD:
        target(f"UPDATE {{db}}{name} SET v = 'x' WHERE v = 'b'")
    report = tmp_path / "report"
    found = verified(replica, "--report", str(report), "--show", "2", expect=1)
    assert [(found["plain"][name]) for name in ("Missing", "Extra", "Different", "In_motion")] == [1, 1, 12, 0]
    assert [(found["words"][name]) for name in ("Missing", "Extra", "Different")] == [1, 0, 1]
    assert [(found[name]["Different"], found[name]["Equal"]) for name in ODD] == [(1, 2)] * 3
    assert [(found["keyless"][name]) for name in ("Missing", "Extra", "Different")] == [0, 1, 0]
    assert (found["types"]["Equal"], len(found["plain"]["Differences"])) == (4, 2)
    differing = [d for d in read_report(report).differences() if d.table == "plain"]
    assert {(d.kind, d.key["id"], d.columns) for d in differing} == set(FAULTS.values())
    words = [d for d in read_report(report).differences() if d.table == "words"]
    assert sorted((d.kind, d.key["k"]) for d in words) == [
        ("different", {"hex": "090000"}),
        ("missing", {"hex": "0a0000"}),
    ]
    if request.node.callspec.params["target"] == "mariadb":
        definitions_are_compared_and_mended(target, replica)


def definitions_are_compared_and_mended(target: Target, replica: Replica) -> None:
    """The statements that a verify prints, and what is the target's own."""
    target("ALTER TABLE {db}words ADD own INT DEFAULT 7, ADD KEY own (own)")
    target("ALTER TABLE {db}empty ADD KEY own (id); CREATE TABLE {db}own (id INT)")
    found = verified(replica, expect=1)
    assert [row["Drift"] for row in found.values()] == [[]] * 9
    assert {name: row["Note"] for name, row in found.items() if row["Note"]} == {
        "own": "only the target has this table"
    }
    target("ALTER TABLE {db}texts MODIFY v VARCHAR(9) CHARACTER SET latin1 DEFAULT 'x', DEFAULT CHARACTER SET latin1")
    target("ALTER TABLE {db}empty DROP PRIMARY KEY, MODIFY id BIGINT NULL")
    found = verified(replica, "--tables", "living.texts,living.empty", expect=1)
    assert (found["texts"]["Different"], len(found["texts"]["Drift"]), len(found["empty"]["Drift"])) == (1, 2, 2)
    for statement in (*found["texts"]["Drift"], *found["empty"]["Drift"]):
        target(statement)
    target("UPDATE {db}texts SET v = 'b' WHERE v = 'x'")
    assert verified(replica, "--tables", "living.texts,living.empty")["texts"]["Equal"] == 3


def what_is_in_motion_is_no_difference(target: Target, replica: Replica, source: MariadbServer) -> None:
    """A fault is found all the same, in a table that is written to, too, beside DDL and an applier that was killed;
    nothing is left over.
    """
    target("INSERT INTO {db}plain (id, v) VALUES (9000, 'fault')")
    works: list[Work] = [alter, *(partial(write, random.Random(number)) for number in range(2))]
    with working(source, "living", works, harmless=(1213, 1205, 1020, 1062), pause_s=0.004):
        for number in range(3):
            if number == 1:
                replica.kill("applier")
                replica.run("start")
            found = verified(replica, "--databases", "living", expect=1)
            differing = {(name, kind): row[kind] for name, row in found.items()
                         for kind in ("Missing", "Extra", "Different") if row[kind]}  # fmt: skip
            assert differing == {("plain", "Extra"): 1}, found
    replica.wait_synced(source)
    found = verified(replica, expect=1)
    assert [(row["In_motion"], row["Note"]) for row in found.values()] == [(0, "")] * 8
    target("DELETE FROM {db}plain WHERE id = 9000")


@pytest.mark.long("tests/command/test_verify_stopped.py compares a stopped channel.")
def test_a_stopped_source_is_what_its_folder_says(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    """Its data folder after a crash, and one with the note that a backup has; nothing is written there."""
    source = mariadb_factory()
    source.sql("; ".join((SCHEMA, *PLAIN, *FILL)))
    replica.run("init")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "living"\n{options.read_text()}')
    replica.change_master(source)
    replica.run("start")
    replica.wait_synced(source)
    folder = "--offline-source", str(source.data)
    assert "a server runs in" in replica.run("verify", *folder, expect=2).stderr
    source.kill()
    replica.run("stop")
    with closing(sqlite3.connect(replica.datadir / "target.db")) as connection, connection:
        connection.execute("UPDATE living__plain SET v = 'x' WHERE id = 7")
    before = files_of(source.data)
    found = verified(replica, *folder, expect=1)
    assert {name: (row["Equal"], row["Different"], row["Note"]) for name, row in found.items()} == {
        "plain": (2999, 1, ""), "words": (300, 0, ""), "keyless": (100, 0, ""), "empty": (0, 0, ""),
        **dict.fromkeys(ODD, (3, 0, "")),
    }  # fmt: skip
    assert (files_of(source.data), replica.channel.verify_source_folder.exists()) == (before, False)
    at = read_report(replica.channel.verify_report_path).header.position
    cold = tmp_path / "cold"
    shutil.copytree(source.data, cold)
    (cold / "xtrabackup_binlog_info").write_text(at.replace(":", "\t"))
    source.start()
    source.sql("UPDATE plain SET v = 'later' WHERE id > 2900", "living")
    replica.run("start")
    replica.wait_synced(source)
    found = verified(replica, "--offline-source", str(cold), expect=1)
    assert (found["plain"]["Different"], found["plain"]["In_motion"], found["plain"]["Equal"]) == (1, 100, 2899)
    replica.run("flush-relay-logs")
    source.sql("UPDATE plain SET v = 'last' WHERE id > 2900", "living")
    replica.wait_synced(source)
    replica.run("purge-relay-logs")
    found = verified(replica, "--offline-source", str(cold), expect=1)
    assert "the relay logs that show" in found["plain"]["Note"], "no difference is taken for one that is under way"
    assert (found["words"]["Equal"], found["words"]["Note"]) == (300, "")
    refused = replica.run("verify", "--offline-source", str(cold), "--at", "binlog.000099:400", expect=3)
    assert "rplctl start --until-master-log-file binlog.000099" in refused.stderr
    (cold / "ibdata1").unlink()
    assert "not the data folder" in replica.run("verify", "--offline-source", str(cold), expect=2).stderr


def files_of(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}

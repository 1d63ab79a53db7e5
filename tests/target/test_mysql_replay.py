"""Net changes reach MariaDB as rows of the binary log where that is safe, and are stored as its own replica would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import RplError
from rplctl.relay_log.reader import RelayGroups
from rplctl.target import open_target
from rplctl.target.mysql_replay import Replay
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.conftest import Factory
from tests.servers import MariadbServer

pytestmark = pytest.mark.mariadb

TABLES = {
    "types": """id INT UNSIGNED, t TINYINT, b BIT(17), d DECIMAL(30,10), f FLOAT, g DOUBLE, y YEAR, da DATE, ti TIME(3),
        dt DATETIME(6), ts TIMESTAMP(2) NULL, c CHAR(5) CHARACTER SET latin1, v VARCHAR(300) CHARACTER SET utf8mb4,
        vb VARBINARY(20), bl BLOB, tx MEDIUMTEXT, e ENUM('a','b'), s SET('x','y','z'), j JSON, i4 INET4, u UUID,
        p POINT, PRIMARY KEY (id)""",
    "composite": "v VARCHAR(20), a INT NOT NULL, b VARCHAR(30) NOT NULL, n INT, PRIMARY KEY (b, a), KEY (n)",
    "uniq": "v INT, k DECIMAL(5,2) NOT NULL, UNIQUE (k)",
    "wide": "id INT PRIMARY KEY, " + ", ".join(f"c{n} INT" for n in range(300)),
    "made": "id INT PRIMARY KEY, a INT, twice INT AS (2*a) STORED",
    "twofold": "id INT PRIMARY KEY, u INT UNIQUE",
    "large": "id INT PRIMARY KEY, t LONGTEXT",
}
CHANGES = """
INSERT INTO types (id, t, b, d, f, g, y, da, ti, dt, ts, c, v, vb, bl, tx, e, s, j, i4, u, p) SELECT
    seq + 4294967000, seq % 100, seq, seq / 7, seq / 3, seq / 9, 1901 + seq % 200, '2024-02-29' + INTERVAL seq DAY,
    SEC_TO_TIME(-77.0 * seq), '2024-02-29 01:02:03.4' + INTERVAL seq MICROSECOND, '2024-02-29 01:02:03.45', 'ä',
    CONCAT('€', seq), UNHEX('00FF0A09'), REPEAT(CHAR(seq), 300), REPEAT('\\n\\t', seq), 'b', 'x,z', '{"a": [1, 2]}',
    '1.2.3.4', UUID(), POINT(seq, 2) FROM seq_1_to_200;
INSERT INTO types (id) SELECT seq FROM seq_1_to_50;
UPDATE types SET t = 5, j = NULL, v = 'new' WHERE id % 2 = 0;
DELETE FROM types WHERE id % 5 = 0;
UPDATE types SET id = id + 1000, tx = 'moved' WHERE id < 20 ORDER BY id DESC;
INSERT INTO composite SELECT seq, seq % 7, CONCAT('k', seq), NULL FROM seq_1_to_300;
UPDATE composite SET v = NULL, n = a WHERE a < 3;
DELETE FROM composite WHERE a = 4;
INSERT INTO uniq SELECT seq, seq / 10 FROM seq_1_to_300;
UPDATE uniq SET v = -v WHERE k < 20;
DELETE FROM uniq WHERE k > 25;
INSERT INTO wide (id, c0, c299) SELECT seq, seq, -seq FROM seq_1_to_300;
UPDATE wide SET c8 = 8, c299 = NULL WHERE id < 200;
DELETE FROM wide WHERE id > 250;
INSERT INTO made (id, a) SELECT seq, seq FROM seq_1_to_20;
UPDATE made SET a = a + 1;
INSERT INTO twofold SELECT seq, seq FROM seq_1_to_20;
UPDATE twofold SET u = 21 - u ORDER BY id LIMIT 0;
DELETE FROM twofold WHERE id = 3;
INSERT INTO large SELECT seq, REPEAT('x', 400000 * seq) FROM seq_1_to_4;
"""
LATER = "UPDATE types SET e = 'a' WHERE id > 30; DELETE FROM uniq WHERE k > 10; UPDATE composite SET n = 4"


class Logged:
    def __init__(self, source: MariadbServer) -> None:
        self.source = source
        source.sql("CREATE DATABASE r")
        for name, columns in TABLES.items():
            source.sql(f"CREATE TABLE {name} ({columns})", "r")
        for part in (CHANGES, LATER):
            source.sql("FLUSH BINARY LOGS")
            for statement in filter(str.strip, part.split(";")):
                source.sql(statement, "r")
        self.groups = [groups_of(path) for path in source.binlog_files]


@pytest.fixture(scope="module")
def logged(mariadb_factory: Factory[MariadbServer]) -> Logged:
    return Logged(mariadb_factory())


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch: pytest.MonkeyPatch, mariadb: MariadbServer) -> None:
    monkeypatch.setattr("rplctl.target.mysql.BULK_ROWS", 1)
    mariadb.sql("DROP DATABASE IF EXISTS r; DROP DATABASE IF EXISTS rplctl")


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Events that the target executed."""
    events: list[bytes] = []
    execute = Replay.events

    def noted(self: Replay, data: bytes) -> None:
        events.append(data)
        execute(self, data)

    monkeypatch.setattr(Replay, "events", noted)
    return events


def rows_events(events: list[bytes]) -> int:
    return sum(data[4] == 19 for data in events)  # each begins with its table map


def apply(folder: Path, target: MariadbServer | str, groups: list[RelayGroups], **options: Any) -> Instance:
    url = target if isinstance(target, str) else target.url()
    instance = Instance(folder, groups[0], target=url, **options)
    for part in groups:
        instance.apply(part)
    return instance


def same(logged: Logged, target: MariadbServer, database: str = "r") -> None:
    for name in TABLES:
        theirs, ours = logged.source.rows("r", name), target.rows(database, name)
        assert sorted(ours, key=repr) == sorted(theirs, key=repr), name


def test_rows_of_every_type_and_key_are_those_of_the_source(
    tmp_path: Path, logged: Logged, mariadb: MariadbServer, replayed: list[bytes]
) -> None:
    instance = apply(tmp_path, mariadb, logged.groups)
    same(logged, mariadb)
    named = b"".join(data[28:60] for data in replayed if data[4] == 19)
    assert {name for name in TABLES if name.encode() in named} == {"types", "composite", "uniq", "wide"}
    instance.target.close()


@pytest.mark.parametrize("setting", ["slave_exec_mode=IDEMPOTENT", "slave_type_conversions=ALL_LOSSY"])
def test_a_server_that_forgives_or_converts_gets_text(
    tmp_path: Path, logged: Logged, mariadb: MariadbServer, replayed: list[bytes], setting: str
) -> None:
    name = setting.partition("=")[0]
    mariadb.sql(f"SET GLOBAL {setting}")
    try:
        apply(tmp_path, mariadb, logged.groups).target.close()
    finally:
        mariadb.sql(f"SET GLOBAL {name}=DEFAULT")
    same(logged, mariadb)
    assert rows_events(replayed) == 0


def test_a_server_that_begins_to_forgive_is_still_strict(
    tmp_path: Path, logged: Logged, mariadb: MariadbServer, replayed: list[bytes]
) -> None:
    instance = apply(tmp_path, mariadb, logged.groups[:-1])
    assert rows_events(replayed) > 0
    replayed.clear()
    mariadb.sql("DELETE FROM r.composite WHERE b = 'k9'; SET GLOBAL slave_exec_mode=IDEMPOTENT")
    try:
        with pytest.raises(RplError) as caught:
            instance.apply(logged.groups[-1])
    finally:
        mariadb.sql("SET GLOBAL slave_exec_mode=DEFAULT")
    assert caught.value.errno == 1032
    assert rows_events(replayed) == 0
    instance.target.close()


def test_a_row_that_is_missing_stops_at_its_transaction(
    tmp_path: Path, logged: Logged, mariadb: MariadbServer, replayed: list[bytes]
) -> None:
    instance = apply(tmp_path, mariadb, logged.groups[:-1])
    mariadb.sql("DELETE FROM r.uniq WHERE k = 15")
    with pytest.raises(RplError) as caught:
        instance.apply(logged.groups[-1])
    assert caught.value.errno == 1032
    assert "r.uniq" in caught.value.message
    assert mariadb.sql("SELECT COUNT(*) FROM r.types WHERE id > 30 AND e = 'a'") != [(0,)], (
        "what was before it is there"
    )
    assert mariadb.sql("SELECT COUNT(*) FROM r.composite WHERE n = 4") != mariadb.sql(
        "SELECT COUNT(*) FROM r.composite"
    )
    instance.target.close()


def test_a_column_of_another_type_on_the_target_is_filled_as_before(
    tmp_path: Path, logged: Logged, mariadb: MariadbServer, replayed: list[bytes]
) -> None:
    instance = apply(tmp_path, mariadb, logged.groups[:-1])
    mariadb.sql("ALTER TABLE r.composite MODIFY v VARCHAR(300)")
    instance.applier = instance.reopen()
    instance.apply(logged.groups[-1])
    same(logged, mariadb)
    assert not instance.target.replays_rows
    instance.target.close()


def test_a_user_without_the_privilege_gets_text(mariadb: MariadbServer) -> None:
    mariadb.sql("CREATE OR REPLACE USER plain@'%' IDENTIFIED BY 'rpl'; GRANT ALL ON *.* TO plain@'%'")
    mariadb.sql("REVOKE SUPER, BINLOG REPLAY ON *.* FROM plain@'%'")
    for user, expected in (("plain", False), ("rpl", True)):
        target = open_target(mariadb.url().replace("//rpl:", f"//{user}:"))
        assert target.replays_rows is expected
        target.close()
    mariadb.sql("DROP USER plain@'%'")


def test_a_rewritten_database_gets_text(
    tmp_path: Path, logged: Logged, mariadb: MariadbServer, replayed: list[bytes]
) -> None:
    mariadb.sql("CREATE OR REPLACE DATABASE other")
    apply(tmp_path, mariadb, logged.groups, replicate_rewrite_db="r->other").target.close()
    same(logged, mariadb, "other")
    mariadb.sql("DROP DATABASE other")

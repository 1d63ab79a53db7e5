"""A definition that a server prints is one statement to every reader, or it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rplctl.errors import RplError
from rplctl.schema.definition import copied_definition, sequence_definition, table_definition
from rplctl.schema.model import Key, KeyPart
from rplctl.sql_text import backticked
from tests.kit.servers import MariadbServer

MYSQL = """CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a;b` varchar(9) CHARACTER SET latin1 DEFAULT ';--' COMMENT 'it''s\\'; /* ''',
  `g` int GENERATED ALWAYS AS ((`id` + json_extract(`j`,_utf8mb4'$.a'))) VIRTUAL /*!80023 INVISIBLE */,
  `j` json DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`a;b`(3)) /*!80000 INVISIBLE */,
  KEY `k``k` (`id`,`g`),
  FULLTEXT KEY `f` (`a;b`) /*!50100 WITH PARSER `ngram` */ ,
  CONSTRAINT `c` CHECK ((`id` > -1)) /*!80016 NOT ENFORCED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='select;'
/*!50100 PARTITION BY RANGE (`id`)
(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB,
 PARTITION p1 VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */"""
VERSIONS = """CREATE TABLE `t` (
  `id` int(11) DEFAULT nextval(`d`.`s`),
  `s` timestamp(6) GENERATED ALWAYS AS ROW START,
  PERIOD FOR SYSTEM_TIME (`s`, `e`)
) ENGINE=Aria DEFAULT CHARSET=utf8mb3 PAGE_CHECKSUM=1 WITH SYSTEM VERSIONING"""
PLAIN = "CREATE TABLE `t` (\n  `id` int\n) ENGINE=InnoDB"
NOT_TABLES = [
    f"{PLAIN}; DROP DATABASE x",
    f"{PLAIN} /*! ; DROP DATABASE x */",
    f"{PLAIN} /*M! ; DROP DATABASE x */",
    f"{PLAIN} /*M!100000 comment='*/ comment='*/ ; DROP DATABASE x; -- '",
    f"{PLAIN} /*!50100 COMMENT='a /* b' */",
    f"{PLAIN} /*!50100 /*!80000 CHECKSUM=1 */ */",
    f"{PLAIN} /*!50100 CHECKSUM=1",
    f"{PLAIN} CHECKSUM=1 */",
    f"{PLAIN} /* CHECKSUM=1 */",
    f"{PLAIN} -- x",
    f"{PLAIN} --\x01x",
    f"{PLAIN} #x",
    f"{PLAIN} COMMENT='x",
    f'{PLAIN} COMMENT="x"',
    f"{PLAIN}\u00a0CHECKSUM=1",
    f"{PLAIN} AS SELECT * FROM mysql.user",
    f"{PLAIN} /*!99999 AS SELECT 1 */",
    f"{PLAIN} CHECKSUM=1e0SELECT 1",
    f"{PLAIN} TABLE mysql.user",
    f"{PLAIN} VALUES ROW (1)",
    f"{PLAIN} WITH x AS (VALUES (1))",
    f"{PLAIN})",
    "CREATE TABLE `t` (`id` int /*!50100 ) ENGINE=InnoDB */",
    "CREATE TABLE `t` (`a` int, `b` int",
    "CREATE TABLE `t` (`id` int DEFAULT (@x := 1)) ENGINE=InnoDB",
    "CREATE TABLE `u` (`id` int) ENGINE=InnoDB",
    "CREATE TABLE `d`.`t` (`id` int) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS `t` (`id` int)",
    "CREATE VIEW `t` (`id`) AS VALUES IN (1)",
    "DROP TABLE `t` (",
    "",
]
ODD = {
    "mariadb": """
        CREATE TABLE `a``b;
c` (`x'y` INT COMMENT 'a\\\\''b\n;-- /* */', `"` VARCHAR(9) DEFAULT ';') COMMENT='\\\\';
        CREATE TABLE t1 (a INT, b INT AS (a + 1) STORED, c INT DEFAULT (a * 2), CHECK (b > ';'), KEY (a) IGNORED,
          j JSON, e ENUM('a;''b', ','), INDEX (e, a), p POINT NOT NULL, SPATIAL KEY (p)) ENGINE=Aria TRANSACTIONAL=1;
        CREATE TABLE t2 (id INT, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, b DATE, c DATE,
          PERIOD FOR SYSTEM_TIME (s, e), PERIOD FOR x (b, c), UNIQUE (id, x WITHOUT OVERLAPS)) WITH SYSTEM VERSIONING;
        CREATE TABLE t3 (id INT PRIMARY KEY) PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2
          (PARTITION p0 VALUES LESS THAN (5) COMMENT 'x', PARTITION p1 VALUES LESS THAN MAXVALUE);
        CREATE TABLE t4 (id INT) PARTITION BY LIST (id) (PARTITION p VALUES IN (1, 2), PARTITION q DEFAULT);
        CREATE SEQUENCE s; CREATE TABLE t5 (id INT DEFAULT NEXTVAL(s), u UUID DEFAULT UUID(), x LONGTEXT COMPRESSED)
    """,
    "mysql": """
        CREATE TABLE `a``b;
c` (`x'y` INT COMMENT 'a\\\\''b\n;-- /* */', `"` VARCHAR(9) DEFAULT ';' INVISIBLE, v VECTOR(3)) COMMENT='\\\\';
        CREATE TABLE t1 (a INT, b INT AS (a + 1) STORED, c INT DEFAULT (a * 2), CHECK (b > 1) NOT ENFORCED, j JSON,
          x VARCHAR(9) AS (j->>'$.a;') INVISIBLE, e ENUM('a;''b', ','), KEY ((a + 1)), KEY (a) INVISIBLE,
          KEY z (e, a DESC), p POINT NOT NULL SRID 0, SPATIAL KEY (p), f TEXT, FULLTEXT (f) WITH PARSER ngram,
          KEY ((CAST(j->'$.b' AS UNSIGNED ARRAY))));
        CREATE TABLE t3 (id INT PRIMARY KEY) PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2
          (PARTITION p0 VALUES LESS THAN (5) COMMENT 'x', PARTITION p1 VALUES LESS THAN MAXVALUE);
        CREATE TABLE t4 (id INT, KEY (id)) PARTITION BY LIST (id) (PARTITION p VALUES IN (1, 2));
        CREATE TABLE t5 (a DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, b BINARY(3) DEFAULT 'a')
    """,
}
SEQUENCE = (
    "CREATE SEQUENCE `s` start with 1 minvalue -5 maxvalue 9223372036854775806 increment by 1 cache 1000 nocycle"
    " ENGINE=InnoDB COMMENT='it''s; --'"
)


def test_what_servers_print_stays_as_it_is() -> None:
    found = table_definition(MYSQL, "t")
    assert "".join(found.create().split()) == "".join(MYSQL.split())
    assert [element.column for element in found.elements] == ["id", "a;b", "g", "j", *[""] * 5]
    keys = [
        Key(name="u", kind="unique", parts=(KeyPart("a;b"),)),
        Key(name="k`k", kind="index", parts=(KeyPart("id"),)),
        Key(name="f", kind="fulltext", parts=()),
    ]
    assert {name: str(text) for name, text in found.keys(keys).items()} == {
        "u": "UNIQUE KEY `u` (`a;b`(3)) /*!80000 INVISIBLE */",
        "k`k": "KEY `k``k` (`id`,`g`)",
    }
    without = found.create(keys)
    assert "`u`" not in without and "FULLTEXT KEY" in without and "CONSTRAINT" in without
    assert table_definition(without, "t").keys(keys) == {}
    assert copied_definition(VERSIONS, "t").tail.endswith("VERSIONING")
    assert sequence_definition(SEQUENCE, "s") == SEQUENCE.replace("SEQUENCE", "SEQUENCE IF NOT EXISTS", 1)


@pytest.mark.parametrize("text", NOT_TABLES)
def test_what_is_more_than_a_table_is_refused(text: str) -> None:
    with pytest.raises(RplError, match="cannot execute a text"):
        table_definition(text, "t")


@pytest.mark.parametrize("engine", ["MRG_MyISAM", "FEDERATED", "CONNECT", "'SPIDER'", ""])
def test_tables_that_reach_further_are_not_copied(engine: str) -> None:
    with pytest.raises(RplError, match="cannot execute a text"):
        copied_definition(f"CREATE TABLE `t` (\n  `id` int\n) ENGINE={engine}", "t")


@pytest.mark.parametrize(
    "more",
    ["; DROP DATABASE x", " /*! ; DROP DATABASE x */", " -- x", " AS SELECT 1", " ENGINE=CONNECT", " `x`", " DO 1"],
)
def test_what_is_more_than_a_sequence_is_refused(more: str) -> None:
    with pytest.raises(RplError, match="cannot execute a text"):
        sequence_definition(SEQUENCE + more, "s")


@pytest.mark.long("The tables of MariaDB stay in make test.", keeps="mariadb")
@pytest.mark.parametrize(
    "kind", [pytest.param("mariadb", marks=pytest.mark.mariadb), pytest.param("mysql", marks=pytest.mark.mysql)]
)
def test_every_table_of_a_server_is_understood(kind: str, request: pytest.FixtureRequest) -> None:
    server: MariadbServer = request.getfixturevalue(kind)
    dump = (Path(__file__).parents[1] / "data" / f"dump_{kind}.sql").read_text(errors="replace")
    server.sql("CREATE OR REPLACE DATABASE d" if kind == "mariadb" else "DROP DATABASE IF EXISTS d; CREATE DATABASE d")
    server.sql(f"SET sql_mode=''; {ODD[kind]}", "d")
    listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
    names = [name for name in server.sql(listed) if name[0] != "information_schema"]
    shown = {tuple(name): str(server.sql(f"SHOW CREATE TABLE {backticked(*map(str, name))}")[0][1]) for name in names}
    texts = [(name, text) for (_, name), text in shown.items()]
    for text in re.findall(r"^CREATE TABLE `.*?\n\).*?(?=;$)", dump, re.M | re.S):
        texts.append((text.split(" (\n")[0].removeprefix("CREATE TABLE `")[:-1].replace("``", "`"), text))
    assert len(texts) > 40
    for name, text in texts:
        assert "".join(table_definition(text, str(name)).create().split()) == "".join(text.split()), text
    server.sql("DROP DATABASE d")

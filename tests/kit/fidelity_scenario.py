"""The statements that `tests/tools/record_fidelity.py` runs on a real server: they end with `;` at the end of a line.

Paragraphs are one session's turn; one that begins with `@2` is the second session's. A statement after `!` must fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pymysql

from tests.kit.servers import MariadbServer

Session: TypeAlias = "pymysql.connections.Connection[Any]"

_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def typed_columns(kind: str, version: str) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """(column type, three values as SQL) of every type of both vendors, edges first."""
    for name, bits in _INTEGERS.items():
        yield name, (str(-(1 << bits - 1)), str((1 << bits - 1) - 1), "-1")
        yield f"{name} UNSIGNED", ("0", str((1 << bits) - 1), str(1 << bits - 1))
    yield "DECIMAL(65,30)", (f"-{'9' * 35}.{'9' * 30}", f"{'9' * 35}.{'9' * 30}", "-0.000000000000000000000000000001")
    yield "DECIMAL(10,0) UNSIGNED", ("0", "9999999999", "1")
    yield "FLOAT", ("-3.402823e38", "1.17549435e-38", "0.1")
    yield "DOUBLE", ("-1.7976931348623157e308", "2.2250738585072014e-308", "-0.0e0")
    for bits in (1, 8, 17, 63, 64):
        yield f"BIT({bits})", ("0", str((1 << bits) - 1), "1")
    yield "YEAR", ("0", "1901", "2155")
    yield "DATE", ("'0000-00-00'", "'9999-12-31'", "'2024-00-07'")
    for digits in range(7):
        part = f".{'123456'[:digits]}" if digits else ""
        yield f"TIME({digits})", (f"'-838:59:58{part}'", f"'838:59:58{part}'", f"'-00:00:00{part}'")
        yield f"DATETIME({digits})", ("'0000-00-00'", f"'9999-12-31 23:59:58{part}'", f"'2024-02-00 01:02:03{part}'")
        yield f"TIMESTAMP({digits}) NULL", (f"'1970-01-01 00:00:01{part}'", f"'2038-01-19 03:14:06{part}'", "0")
    for charset, text in _TEXTS.items():
        yield f"CHAR(12) CHARACTER SET {charset}", ("''", f"'{text}'", "'a b'")
        yield f"VARCHAR(300) CHARACTER SET {charset}", (f"REPEAT('{text}',20)", "'  x '", "NULL")
        yield f"TEXT CHARACTER SET {charset}", (f"REPEAT('{text}',99)", "''", f"'{text}'")
    yield "BINARY(5)", ("x'00'", "x'ffff00ff00'", "x'41'")
    yield "VARBINARY(300)", ("x''", "REPEAT(x'00ff',150)", "x'00'")
    for name in ("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"):
        yield name, ("x''", "REPEAT(x'00',200)", "x'ff'")
    yield "ENUM('a','ü','🦄🐘','it''s','')", ("'🦄🐘'", "1", "'it''s'")
    yield f"ENUM({','.join(repr(f'm{n}') for n in range(300))})", ("'m0'", "'m299'", "'m256'")
    yield "SET('x','é','🦄','z')", ("''", "'x,é,🦄,z'", "'🦄'")
    yield f"SET({','.join(repr(f's{n}') for n in range(64))})", ("'s63'", "18446744073709551615", "'s0,s31,s32'")
    yield "JSON", ('\'{"b": [1, 2.50, true, null], "a": "ü\\\\n"}\'', "'[]'", "'\"x\"'")
    yield "GEOMETRY", ("ST_GeomFromText('POINT(1 -2)')", "ST_GeomFromText('LINESTRING(0 0,1 1.5)',4326)", "NULL")
    if kind == "mysql":
        if not version.startswith(("5.", "8.")):
            yield "VECTOR(3)", ("TO_VECTOR('[1,2,3]')", "TO_VECTOR('[-0.5,1e10,0]')", "NULL")
    else:
        yield "INET6", ("'::'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'", "'::ffff:1.2.3.4'")
        if not version.startswith("10.5"):
            yield from _later_types()
        yield "VARCHAR(200) COMPRESSED", ("REPEAT('ü',150)", "''", "'short'")
        yield "BLOB COMPRESSED", ("REPEAT('q',9000)", "''", "x'00'")


def _later_types() -> Iterator[tuple[str, tuple[str, str, str]]]:
    yield "UUID", ("'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'", "NULL")
    yield "INET4", ("'0.0.0.0'", "'255.255.255.255'", "'1.2.3.4'")


_TEXTS = {
    "utf8mb4": "é🦄'' x", "utf8mb3": "čáü", "latin1": "é€ß", "cp1251": "Жук", "gbk": "中文", "sjis": "日本ｱ", "utf16": "é🦄",
    "ucs2": "éΩ", "utf32": "🦄a", "big5": "中", "euckr": "한글", "koi8r": "ёж", "greek": "Ωα", "ujis": "日本",
}  # fmt: skip


def all_types(kind: str, version: str = "") -> str:
    """One table per type: insert of edges and NULL, update of each, delete of one. `version`: '' is the newest."""
    text = []
    for number, (column_type, values) in enumerate(typed_columns(kind, version)):
        name = f"t{number:03}"
        text.append(f"CREATE TABLE {name} (id INT PRIMARY KEY, v {column_type}, n INT)")
        text.append(f"INSERT INTO {name} VALUES (1,{values[0]},1),(2,{values[1]},2),(3,{values[2]},3),(4,NULL,4)")
        text.append(f"UPDATE {name} SET v={values[1]} WHERE id=1")
        text.append(f"UPDATE {name} SET v={values[0]} WHERE id IN (2,4)")
        text.append(f"UPDATE {name} SET v=NULL, n=n+1 WHERE id=3")
        text.append(f"INSERT INTO {name} (id,v) VALUES (5,{values[2]})")
        text.append(f"DELETE FROM {name} WHERE id=4")
    return ";\n".join(text)


def wide(most: int) -> str:
    """300 columns with a key; 2,000 (SQLite holds no more) and `most` (4,096; MariaDB's .frm holds fewer) without."""
    columns = ", ".join(f"c{n} VARCHAR(9)" for n in range(299))
    values = ", ".join("NULL" if n % 8 == 0 else f"'v{n}'" for n in range(299))
    text = [
        f"CREATE TABLE w300 (id INT PRIMARY KEY, {columns}) CHARACTER SET latin1",
        f"INSERT INTO w300 VALUES (1,{values}),(2,{values})",
        "UPDATE w300 SET c298='last', c0='first' WHERE id=2",
        "UPDATE w300 SET id=9 WHERE id=1",
    ]
    for name, count in (("w2000", 2000), ("wmost", most)):
        many = ", ".join(f"c{n} TINYINT" for n in range(count))
        text += [
            f"CREATE TABLE {name} ({many}) ENGINE=MyISAM",
            f"INSERT INTO {name} VALUES ({','.join(str(n % 100) for n in range(count))})",
            f"INSERT INTO {name} VALUES ({','.join('NULL' if n % 3 else '7' for n in range(count))})",
            f"UPDATE {name} SET c{count - 1}=-5, c0=5 WHERE c0=0",
            f"DELETE FROM {name} WHERE c1 IS NULL",
        ]
    return ";\n".join(text)


# ruff: noqa: E501
SCENARIO = """
CREATE TABLE nokey (a INT, b VARCHAR(10), c TEXT);
INSERT INTO nokey VALUES (1,'x',NULL),(1,'x',NULL),(1,'x',NULL),(2,NULL,'t'),(NULL,NULL,NULL),(NULL,NULL,NULL);
UPDATE nokey SET b='y' WHERE a=1 LIMIT 2;
DELETE FROM nokey WHERE a IS NULL LIMIT 1;
DELETE FROM nokey WHERE b='y' LIMIT 1;
UPDATE nokey SET a=a+1, c='long' ORDER BY a DESC;
CREATE TABLE nullkey (a INT, b INT, v INT, UNIQUE (a), UNIQUE (b));
INSERT INTO nullkey VALUES (1,NULL,1),(NULL,2,2),(NULL,NULL,3),(NULL,NULL,3);
UPDATE nullkey SET v=9 WHERE v=3 LIMIT 1;
DELETE FROM nullkey WHERE b=2;
CREATE TABLE ci (k VARCHAR(20) COLLATE utf8mb4_general_ci, l VARCHAR(10) CHARACTER SET latin1, v INT, PRIMARY KEY (k,l));
INSERT INTO ci VALUES ('résumé','a',1),('b','É',2),('straße','c',3);
UPDATE ci SET k='RESUME' WHERE k='resume';
UPDATE ci SET l='e' WHERE k='B';
REPLACE INTO ci VALUES ('STRAßE','C',33);
INSERT INTO ci VALUES ('ResumÉ','A',7) ON DUPLICATE KEY UPDATE v=VALUES(v);
!INSERT INTO ci VALUES ('B','é',0);
BEGIN;
DELETE FROM ci WHERE k='b';
INSERT INTO ci VALUES ('B','e',22);
UPDATE ci SET v=v+1 WHERE k='b';
COMMIT;
CREATE TABLE swap (id INT PRIMARY KEY, u INT, w VARCHAR(9), t TEXT, UNIQUE (u), UNIQUE (w,u));
INSERT INTO swap VALUES (1,10,'a','x'),(2,20,'b','y'),(3,30,'c',NULL),(4,NULL,'d',NULL);
BEGIN;
UPDATE swap SET u=99 WHERE id=1;
UPDATE swap SET u=10 WHERE id=2;
UPDATE swap SET u=20 WHERE id=1;
COMMIT;
BEGIN;
UPDATE swap SET id=100 WHERE id=1;
UPDATE swap SET id=1 WHERE id=2;
UPDATE swap SET id=2 WHERE id=3;
UPDATE swap SET id=3 WHERE id=100;
UPDATE swap SET t='moved' WHERE id=3;
COMMIT;
UPDATE swap SET id=id+1 ORDER BY id DESC;
UPDATE swap SET u=u+1 ORDER BY u DESC;
BEGIN;
DELETE FROM swap WHERE id=2;
INSERT INTO swap VALUES (2,77,'n','again');
DELETE FROM swap WHERE id=3;
INSERT INTO swap VALUES (6,55,'z',NULL);
UPDATE swap SET id=7 WHERE id=6;
DELETE FROM swap WHERE id=7;
COMMIT;
CREATE TABLE def (id INT PRIMARY KEY AUTO_INCREMENT, a INT DEFAULT 5, b VARCHAR(20) DEFAULT 'bee', c DECIMAL(6,2) DEFAULT 1.5,
  d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), e TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  f INT NOT NULL, g BINARY(4) DEFAULT 'ab', h TEXT DEFAULT ('expr'), i DOUBLE DEFAULT (RAND()), j ENUM('p','q') NOT NULL);
SET timestamp=1700000000.123456;
INSERT INTO def () VALUES ();
INSERT INTO def (b) VALUES (NULL);
ALTER TABLE def ALTER a SET DEFAULT 6, ALTER b DROP DEFAULT, ALTER c SET DEFAULT 2.25;
INSERT INTO def (f,j) VALUES (1,'q');
INSERT INTO def () VALUES ();
ALTER TABLE def ADD k INT NOT NULL DEFAULT 8, ADD l VARCHAR(5);
INSERT INTO def (id) VALUES (50);
UPDATE def SET a=a+1 WHERE id=1;
SET timestamp=DEFAULT;
CREATE TABLE gen (id INT PRIMARY KEY, a INT, b VARCHAR(10), v INT AS (a*2) VIRTUAL, s VARCHAR(30) AS (CONCAT(b,'-',a)) STORED,
  u INT AS (a+1) STORED, z INT DEFAULT 3, UNIQUE (u));
INSERT INTO gen (id,a,b) VALUES (1,1,'x'),(2,2,'y'),(3,NULL,NULL);
UPDATE gen SET z=4 WHERE id=1;
UPDATE gen SET b='changed' WHERE id=3;
DELETE FROM gen WHERE id=2;
CREATE TABLE gent (id INT PRIMARY KEY, b VARCHAR(10), v VARCHAR(30) AS (CONCAT(b,'!')) VIRTUAL, z INT);
INSERT INTO gent (id,b) VALUES (1,'x');
UPDATE gent SET z=1;
UPDATE gent SET b='y';
CREATE TABLE sp (id INT PRIMARY KEY, v INT);
BEGIN;
INSERT INTO sp VALUES (1,1);
SAVEPOINT one;
INSERT INTO sp VALUES (2,2);
SAVEPOINT `t wo`;
UPDATE sp SET v=9 WHERE id=1;
ROLLBACK TO one;
INSERT INTO sp VALUES (3,3);
RELEASE SAVEPOINT one;
COMMIT;
BEGIN;
INSERT INTO sp VALUES (4,4);
ROLLBACK;
BEGIN;
INSERT INTO sp VALUES (5,5);
!INSERT INTO sp VALUES (6,6),(1,1);
COMMIT;
CREATE TABLE my (id INT PRIMARY KEY, v INT) ENGINE=MyISAM;
INSERT INTO my VALUES (1,1),(2,2);
!INSERT INTO my VALUES (3,3),(1,0);
CREATE TABLE ctas (x INT) SELECT id x, v y, 'é' z FROM sp;
CREATE TABLE ctas2 AS SELECT 1.50 d, DATE'2024-01-01' e, CAST(7 AS UNSIGNED) f;
CREATE TABLE lk LIKE swap;
INSERT INTO lk SELECT * FROM swap;
TRUNCATE TABLE lk;
INSERT INTO lk SELECT * FROM swap;
CREATE TABLE parent (id INT PRIMARY KEY, n VARCHAR(10));
CREATE TABLE child (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE grandchild (id INT PRIMARY KEY, cid INT, FOREIGN KEY (cid) REFERENCES child (id) ON DELETE CASCADE);
CREATE TABLE other (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE);
INSERT INTO parent VALUES (1,'a'),(2,'b'),(3,'c'),(4,'d');
INSERT INTO child VALUES (1,1),(2,1),(3,2),(4,3);
INSERT INTO grandchild VALUES (1,1),(2,2),(3,3),(4,NULL);
INSERT INTO other VALUES (1,1),(2,2),(3,NULL);
INSERT INTO tree VALUES (1,NULL),(2,1),(3,2),(4,NULL);
DELETE FROM parent WHERE id=1;
UPDATE parent SET id=20 WHERE id=2;
DELETE FROM tree WHERE id=1;
SET foreign_key_checks=0;
INSERT INTO child VALUES (9,999);
DELETE FROM parent WHERE id=3;
SET foreign_key_checks=1;
BEGIN;
INSERT INTO parent VALUES (5,'e');
INSERT INTO child VALUES (50,5);
DELETE FROM parent WHERE id=5;
INSERT INTO parent VALUES (5,'e2');
COMMIT;

XA START 'one','branch',7;
INSERT INTO sp VALUES (101,1);
XA END 'one','branch',7;
XA PREPARE 'one','branch',7;

@2
XA START 'two';
INSERT INTO sp VALUES (102,2);
UPDATE sp SET v=v+1 WHERE id=3;
XA END 'two';
XA PREPARE 'two';
XA ROLLBACK 'two';
INSERT INTO sp VALUES (103,3);
XA START X'00ff';
INSERT INTO sp VALUES (104,4);
XA END X'00ff';
XA COMMIT X'00ff' ONE PHASE;

XA COMMIT 'one','branch',7;
CREATE TABLE alt (id INT PRIMARY KEY, a VARCHAR(10), b INT UNSIGNED);
INSERT INTO alt VALUES (1,'one',1),(2,NULL,4294967295);
ALTER TABLE alt ADD c DATETIME NOT NULL DEFAULT '2024-01-01 00:00:00' AFTER id, MODIFY b BIGINT UNSIGNED;
UPDATE alt SET b=18446744073709551615 WHERE id=2;
ALTER TABLE alt DROP a, CHANGE b bb BIGINT UNSIGNED FIRST;
INSERT INTO alt VALUES (7,3,'2030-01-01');
RENAME TABLE alt TO alt2, lk TO alt;
CREATE TABLE doc (id INT PRIMARY KEY, j JSON, k JSON, n INT, t TEXT);
INSERT INTO doc VALUES (1,'{"a": 1, "b": [1, 2, {"c": "x"}], "long": "0123456789012345678901234567890123456789"}','[1, 2, 3]',1,'t');
INSERT INTO doc VALUES (2,'{"name": "ü\\\\"q\\\\"", "d": 1.10, "e": 1e30, "n": null}',NULL,2,NULL);
UPDATE doc SET j=JSON_SET(j,'$.a',2) WHERE id=1;
UPDATE doc SET j=JSON_SET(j,'$.b[2].c','yy','$.new',JSON_ARRAY(1,'x')), n=5 WHERE id=1;
UPDATE doc SET j=JSON_REMOVE(j,'$.b[0]'), k=JSON_ARRAY_INSERT(k,'$[1]','in') WHERE id=1;
UPDATE doc SET j=JSON_REPLACE(j,'$.name','short') WHERE id=2;
BEGIN;
UPDATE doc SET j=JSON_SET(j,'$.a',3) WHERE id=1;
UPDATE doc SET j=JSON_SET(j,'$.a',4), t='tt' WHERE id=1;
UPDATE doc SET id=3 WHERE id=2;
UPDATE doc SET j=JSON_REMOVE(j,'$.e') WHERE id=3;
COMMIT
"""

MARIADB_ONLY = """
CREATE TABLE ver (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING;
INSERT INTO ver VALUES (1,1),(2,2);
UPDATE ver SET v=10 WHERE id=1;
DELETE FROM ver WHERE id=2;
CREATE TABLE ver_trx (id INT PRIMARY KEY, v INT, WITHOUT_V INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING;
INSERT INTO ver_trx VALUES (1,1,1);
UPDATE ver_trx SET without_v=2;
UPDATE ver_trx SET v=2;
BEGIN;
INSERT INTO sp VALUES (7,7);
INSERT INTO my VALUES (9,9);
ROLLBACK;
CREATE SEQUENCE seq START WITH 5 INCREMENT BY 3;
CREATE TABLE useq (id INT PRIMARY KEY DEFAULT NEXTVAL(seq), v INT);
INSERT INTO useq (v) VALUES (1),(2);
SELECT NEXTVAL(seq);
CREATE TABLE inv (id INT PRIMARY KEY, hidden INT INVISIBLE DEFAULT 4, v INT);
INSERT INTO inv VALUES (1,1);
INSERT INTO inv (id,hidden,v) VALUES (2,NULL,2);
CREATE OR REPLACE TABLE inv (id INT PRIMARY KEY, v INT, p INT AS (v+1) PERSISTENT);
INSERT INTO inv (id,v) VALUES (1,1);
INSERT INTO sp VALUES (1,50) ON DUPLICATE KEY UPDATE v=VALUES(v);
DELETE FROM sp WHERE id=3 RETURNING v
"""

MARIADB_118_ONLY = """
CREATE TABLE vec (id INT PRIMARY KEY, v VECTOR(3) NOT NULL, w VECTOR(5), n INT, VECTOR INDEX (v));
INSERT INTO vec VALUES (1,VEC_FromText('[1,2,3]'),NULL,1),(2,VEC_FromText('[-0.5,1e10,0]'),VEC_FromText('[1,2,3,4,5]'),2);
UPDATE vec SET w=VEC_FromText('[0,0,0,0,1e-30]') WHERE id=1;
UPDATE vec SET v=VEC_FromText('[9,8,7]'), n=NULL WHERE id=2;
UPDATE vec SET id=3 WHERE id=1;
CREATE TABLE ids (a UUID DEFAULT UUID_v4() PRIMARY KEY, b UUID DEFAULT UUID_v7(), c UUID DEFAULT UUID(), n INT);
INSERT INTO ids (n) VALUES (1),(2),(3);
INSERT INTO ids (a,n) VALUES ('00000000-0000-7000-8000-000000000000',4);
UPDATE ids SET b=UUID_v4() WHERE n=2;
DELETE FROM ids WHERE n=3;
ALTER TABLE ids ADD d INT DEFAULT 7 AFTER n, ADD INDEX (n);
UPDATE ids SET d=8 WHERE n=1;
ALTER TABLE ids MODIFY n BIGINT, ALGORITHM=COPY;
INSERT INTO ids (n) VALUES (5000000000);
!ALTER TABLE ids ADD UNIQUE (d);
CREATE TABLE coll (k VARCHAR(20) PRIMARY KEY, v TEXT) CHARACTER SET utf8mb4 COLLATE uca1400_as_ci;
INSERT INTO coll VALUES ('a','x'),('ä','y'),('🦄','z');
UPDATE coll SET v='A' WHERE k='A';
DELETE FROM coll WHERE k='Ä';
CREATE TABLE late (id INT PRIMARY KEY, t TIMESTAMP(6) NULL, j JSON DEFAULT '{}', x TEXT);
INSERT INTO late (id,t) VALUES (1,'2106-02-07 06:28:15.999999'),(2,'2038-01-19 03:14:08');
UPDATE late SET t='2100-01-01 00:00:00' WHERE id=2;
CREATE TABLE dflt (id INT PRIMARY KEY, a VARCHAR(100) DEFAULT (CONCAT('a','b')), d DATETIME DEFAULT (NOW() + INTERVAL 1 DAY));
INSERT INTO dflt (id) VALUES (1);
CREATE TABLE seqs (id BIGINT PRIMARY KEY DEFAULT (NEXT VALUE FOR seq), v INT);
INSERT INTO seqs (v) VALUES (1),(2)
"""

MYSQL_ONLY = """
CREATE TABLE inv (id INT PRIMARY KEY, hidden INT DEFAULT 4 INVISIBLE, v INT);
INSERT INTO inv VALUES (1,1);
INSERT INTO inv (id,hidden,v) VALUES (2,NULL,2);
SET sql_generate_invisible_primary_key=ON;
CREATE TABLE gipk (a INT, b VARCHAR(5));
INSERT INTO gipk VALUES (1,'x'),(1,'x');
UPDATE gipk SET b='y' LIMIT 1;
SET sql_generate_invisible_primary_key=OFF;
CREATE TABLE opaque (id INT PRIMARY KEY, j JSON);
INSERT INTO opaque VALUES (1,JSON_OBJECT('d',CAST('1.50' AS DECIMAL(10,5)),'t',CAST('-12:00:01.5' AS TIME(3)),'n',NOW(6)));
INSERT INTO opaque VALUES (2,JSON_ARRAY(CAST('2024-01-02' AS DATE),x'00ff',18446744073709551615,-1,1e-7,TRUE));
UPDATE opaque SET j=JSON_SET(j,'$.d',CAST(2 AS DECIMAL(5,2)),'$.x',CAST('2024-01-02' AS DATE)) WHERE id=1;
UPDATE opaque SET j=JSON_SET(j,'$[5]',FALSE) WHERE id=2;
CREATE TABLE fk (id INT PRIMARY KEY, j INT, KEY ((j+1)), CHECK (j > 0));
INSERT INTO fk VALUES (1,1)
"""


def open_session(server: MariadbServer) -> Session:
    """Open a session that accepts the values which a strict server refuses."""
    session = server.connect()
    with session.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode=''")  # zero and partial dates, cut values
    return session


def run(session: Session, text: str, *, may_fail: bool = False) -> None:
    """Run the statements one by one; one that starts with `!` must fail on the server.

    With `may_fail`, a server may refuse the others, too, if it lacks what they need; then no log contains them.
    """
    for statement in filter(None, (part.strip() for part in text.split(";\n"))):
        with session.cursor() as cursor:
            must_fail = statement.startswith("!")
            try:
                cursor.execute(statement.removeprefix("!"))
            except pymysql.MySQLError:
                if must_fail or may_fail:
                    continue
                raise
            if not must_fail:
                continue
            raise AssertionError(f"did not fail: {statement}")

"""What a statement touches, and how each object differs once it was carried out."""

from __future__ import annotations

import pytest

from rplctl.schema.affected import ACCOUNTS, DATABASE, TABLE, DefinitionOutcome, ServerObject, affected_by
from rplctl.schema.context import DdlContext

CONTEXT = DdlContext(server_version="10.11.19-MariaDB")
ABSENT, PRESENT, OTHER, CHANGED = (
    DefinitionOutcome.ABSENT,
    DefinitionOutcome.PRESENT,
    DefinitionOutcome.OTHER,
    DefinitionOutcome.CHANGED,
)


def table(name: str, database: str = "d") -> ServerObject:
    return ServerObject(TABLE, database, name)


OUTCOMES = {
    "CREATE TABLE t (a INT)": {table("t"): OTHER},
    "CREATE TABLE x.t LIKE y.u": {table("t", "x"): OTHER},
    "/*!50000 CREATE TABLE x AS SELECT 1 */": {table("x"): OTHER},
    "CREATE TABLE IF NOT EXISTS `a``b` AS SELECT 1": {table("a`b"): OTHER},
    "DROP TABLE IF EXISTS t, x.u": {table("t"): ABSENT, table("u", "x"): ABSENT},
    "RENAME TABLE t TO x, u TO t": {table("t"): PRESENT, table("x"): PRESENT, table("u"): ABSENT},
    "ALTER TABLE t ADD INDEX (a)": {table("t"): OTHER},
    "CREATE INDEX i ON t (a)": {table("t"): OTHER},
    "ALTER TABLE t ADD COLUMN a INT, RENAME TO x.t": {table("t"): ABSENT, table("t", "x"): PRESENT},
    "ALTER TABLE t RENAME TO t": {table("t"): OTHER},
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u": {table("t"): OTHER, table("u"): OTHER},
    "ALTER TABLE t CONVERT PARTITION p TO TABLE u": {table("t"): OTHER, table("u"): PRESENT},
    "ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (9)": {table("t"): OTHER, table("u"): ABSENT},
    "CREATE DATABASE x": {ServerObject(DATABASE, "", "x"): OTHER},
    "DROP DATABASE x": {ServerObject(DATABASE, "", "x"): ABSENT},
    "CREATE DEFINER=`a`@`%` VIEW v AS SELECT 1": {table("v"): OTHER},
    "DROP VIEW IF EXISTS v, x.w": {table("v"): ABSENT, table("w", "x"): ABSENT},
    "CREATE DEFINER=`a`@`%` TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @a = 1": {
        ServerObject("TRIGGER", "d", "tr"): OTHER
    },
    "DROP PACKAGE BODY x.pb": {ServerObject("PACKAGE BODY", "x", "pb"): ABSENT},
    "ALTER EVENT e RENAME TO f": {ServerObject("EVENT", "d", "e"): CHANGED},
    "CREATE USER u": {ServerObject(ACCOUNTS, "", ""): CHANGED},
    "REVOKE SELECT ON d.* FROM u": {ServerObject(ACCOUNTS, "", ""): CHANGED},
    "ALTER USER u IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD": {ServerObject(ACCOUNTS, "", ""): CHANGED},
    "ALTER USER u ADD 2 FACTOR IDENTIFIED WITH p": {ServerObject(ACCOUNTS, "", ""): CHANGED},
    "ALTER SOMETHING NEW": {},
}


@pytest.mark.parametrize("sql", OUTCOMES)
def test_what_is_touched_and_how_it_is_behind_the_statement(sql: str) -> None:
    found = affected_by(sql, "d", CONTEXT)
    assert found is not None and found.outcomes == OUTCOMES[sql]


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE TABLE t", "GRANT ALL ON *.* TO u", "SET PASSWORD FOR u = PASSWORD('x')", "ALTER SEQUENCE s RESTART 5",
        "ANALYZE TABLE t", "FLUSH TABLES", "CREATE TEMPORARY TABLE t (a INT)", "DROP TEMPORARY TABLE t",
        "ALTER DATABASE d CHARACTER SET utf8mb4", "ALTER USER u ACCOUNT LOCK",
    ],
)  # fmt: skip
def test_what_may_be_executed_twice_needs_no_note(sql: str) -> None:
    assert affected_by(sql, "d", CONTEXT) is None


@pytest.mark.parametrize(
    ("sql", "wants_identity"),
    [
        ("RENAME TABLE t TO u", False),
        ("RENAME TABLE t TO x, u TO t", True),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", True),
        ("ALTER TABLE t CHANGE a b INT, CHANGE b a INT", True),
        ("ALTER TABLE t CHANGE a a BIGINT", False),
        ("ALTER TABLE t RENAME COLUMN a TO b", True),
        ("ALTER TABLE t ADD COLUMN b INT", False),
    ],
)
def test_names_that_change_places_are_told_by_more_than_definitions(sql: str, wants_identity: bool) -> None:
    found = affected_by(sql, "d", CONTEXT)
    assert found is not None and found.wants_identity is wants_identity

"""What is asked of a source before a copy: a table that the account cannot read is told, whatever the server hides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rplctl import mysql_errors as er
from rplctl.clone import source_tables
from rplctl.clone.source_tables import Wanted, read_source_tables
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.info import MasterInfo
from rplctl.source.snapshot import SnapshotKind

SEEN = {"a": ("t", "refused"), "b": ("u",)}
DATABASES = [(name, "utf8mb4", "utf8mb4_general_ci") for name in SEEN]


Answers = dict[str, list[tuple[object, ...]]]


class Source:
    """Answers as a MariaDB server to an account with these grants."""

    def __init__(self, *grants: str) -> None:
        self.grants = [f"GRANT {grant} TO `few`@`%`" for grant in grants]

    def __call__(self, sql: str) -> list[tuple[object, ...]]:
        if "refused" in sql:
            raise SourceError("SELECT command denied", errno=er.TABLEACCESS_DENIED_ERROR)
        if sql.startswith("SHOW MASTER") and not any("REPLICATION CLIENT" in grant for grant in self.grants):
            raise SourceError("Access denied", errno=er.SPECIFIC_ACCESS_DENIED_ERROR)
        for begin, rows in self.answers().items():
            if sql.startswith(begin):
                return rows
        return []

    def answers(self) -> Answers:
        create, made = "CREATE TABLE `x` (`id` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB", Answers()
        for database, names in SEEN.items():
            made[f"SHOW FULL TABLES FROM `{database}`"] = [(name, "BASE TABLE") for name in names]
            for name in names:
                made[f"SHOW CREATE TABLE `{database}`.`{name}`"] = [(name, create.replace("`x`", f"`{name}`"))]
        return {
            "SELECT CURRENT_USER": [("few@%",)],
            "SELECT CURRENT_ROLE": [(None,)],
            "SHOW GRANTS": [(line,) for line in self.grants],
            "SELECT @@version": [("10.11.6-MariaDB",)],
            "SHOW DATABASES": [(name,) for name in SEEN],
            "SELECT schema_name": [*DATABASES],
            **made,
            "SHOW MASTER": [("log.000001", 42)],
            "SELECT BINLOG_GTID_POS": [("0-1-9",)],
            "SHOW STATUS LIKE 'binlog_snapshot_file'": [("binlog_snapshot_file", "x")],
            "SELECT table_schema": [("a", "t", "InnoDB", 7, 16384)],
        }


@pytest.mark.parametrize(
    ("wanted", "grants", "missing"),
    [
        (Wanted(lambda *name: True), ("SELECT ON `a`.*", "SELECT ON `b`.*"), ["SELECT ON *.*"]),
        (Wanted(lambda *name: True, ("a", "b")), ("SELECT ON `a`.`t`", "SELECT ON `b`.*"), ["SELECT ON `a`.*"]),
        (Wanted(lambda *name: True, ("a",)), ("SELECT ON `a`.*",), ["SELECT ON `a`.`refused`"]),
        (Wanted(lambda *name: True, ("b",)), ("SELECT ON `b`.*",), []),
        (Wanted(lambda *name: True, ("a", "b"), (("a", "t"), ("b", "hidden"))), (), ["SELECT ON `b`.`hidden`"]),
    ],
)
def test_each_right_that_is_missing_is_one_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Wanted, grants: tuple[str, ...], missing: list[str]
) -> None:
    for rights, lacks in (
        ("REPLICATION SLAVE, REPLICATION CLIENT ON *.*", []),
        ("USAGE ON *.*", ["REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*"]),
    ):
        source = Source(rights, *grants)

        @contextmanager
        def survey(*_: object, source: Source = source) -> Iterator[Source]:
            yield source

        monkeypatch.setattr(source_tables, "survey", survey)
        found = read_source_tables(Config(tmp_path), MasterInfo(host="h"), wanted, is_new=True)
        assert [each.grant for each in found.missing] == [f"GRANT {right} TO 'few'@'%';" for right in missing + lacks]
        assert set(found.catalog.tables) == {("a", "t"), ("b", "u")}
        assert (found.step, found.end is None, found.facts["a", "t"].rows) == (SnapshotKind.EXACT, bool(lacks), 7)

"""Definitions that differ become the ALTER TABLE that mends them; what vendors only print differently is none."""

from __future__ import annotations

from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel, load_table
from rplctl.verify.drift import drift_of

SOURCE = """CREATE TABLE `t` (
  `id` int(11) NOT NULL,
  `v` varchar(40) DEFAULT NULL,
  `e` enum('a','b') NOT NULL,
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  `more` bigint(20) unsigned DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `v` (`v`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"""


def model(text: str) -> TableModel:
    return load_table(
        text, DatabaseModel(name="d", charset="utf8mb4"), DdlContext(sql_mode=0, server_version="10.11.6-MariaDB")
    )


def test_what_only_looks_different_is_no_drift() -> None:
    there = SOURCE.replace("int(11)", "int").replace("bigint(20)", "bigint")
    assert list(drift_of(model(SOURCE), SOURCE, model(SOURCE))) == []
    assert list(drift_of(model(SOURCE), SOURCE, model(there))) == []


def test_columns_and_keys_that_differ_are_mended() -> None:
    there = SOURCE.replace("varchar(40)", "varchar(20)").replace("'a','b'", "'a'").replace("`more`", "`own`")
    there = there.replace("  KEY `v` (`v`)", "  UNIQUE KEY `v` (`v`)")
    assert list(drift_of(model(SOURCE), SOURCE, model(there))) == [
        "ALTER TABLE `d`.`t` MODIFY COLUMN `v` varchar(40) DEFAULT NULL",
        "ALTER TABLE `d`.`t` MODIFY COLUMN `e` enum('a','b') NOT NULL",
        "ALTER TABLE `d`.`t` ADD COLUMN `more` bigint(20) unsigned DEFAULT NULL AFTER `j`",
        "ALTER TABLE `d`.`t` ADD KEY `v` (`v`)",
        "ALTER TABLE `d`.`t` DROP INDEX `v`",
    ]


def test_defaults_and_the_table_s_character_set_count() -> None:
    one = SOURCE.replace("`v` varchar(40) DEFAULT NULL", "`v` varchar(40) DEFAULT 'x'")
    assert list(drift_of(model(one), one, model(SOURCE))) == [
        "ALTER TABLE `d`.`t` MODIFY COLUMN `v` varchar(40) DEFAULT 'x'"
    ]
    for ours, theirs in (("0", "'0'"), ("current_timestamp()", "CURRENT_TIMESTAMP"), ("(uuid())", "uuid()")):
        one, other = (SOURCE.replace("unsigned DEFAULT NULL", f"unsigned DEFAULT {text}") for text in (ours, theirs))
        assert list(drift_of(model(one), one, model(other))) == []
    latin = SOURCE.replace("CHARSET=utf8mb4", "CHARSET=latin1").replace("varchar(40)", "varchar(40) CHARSET utf8mb4")
    latin = latin.replace("('a','b')", "('a','b') CHARSET utf8mb4")
    assert list(drift_of(model(SOURCE), SOURCE, model(latin))) == ["ALTER TABLE `d`.`t` DEFAULT CHARACTER SET utf8mb4"]

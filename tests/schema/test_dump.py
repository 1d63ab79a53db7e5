"""Dumps of real servers give the models that replaying their binary logs gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.errors import UsageError
from rplctl.schema.dump import load_catalog, split_statements
from rplctl.schema.model import Column, TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from tests.schema.models import bare
from tests.schema.recorded_ddl import recorded

DATA = Path(__file__).parents[1] / "data"


def essence(model: TableModel) -> tuple[object, ...]:
    keys = sorted((key.name, key.kind, key.columns) for key in model.keys)
    foreign_keys = sorted((key.name, key.columns, key.ref_table, key.ref_columns) for key in model.foreign_keys)
    return (tuple(bare(column) for column in model.columns), keys, foreign_keys, model.charset, len(model.checks))


def as_printed(model: TableModel) -> TableModel:
    """What a dump cannot tell: members beyond utf8mb3, which it prints as `?`."""

    def lost(column: Column) -> bool:
        text = "".join(column.labels)
        return column.charset == "utf8mb4" and ("?" in text or any(ord(c) > 0xFFFF for c in text))

    return replace(model, columns=tuple(replace(c, labels=()) if lost(c) else c for c in model.columns))


@pytest.mark.parametrize(
    ("dump", "ddl"), [("dump_mariadb.sql", "ddl_mariadb.sql"), ("dump_mysql.sql", "ddl_mysql.sql")]
)
def test_a_servers_dump_gives_the_models_its_binary_log_gives(dump: str, ddl: str) -> None:
    replayed = Catalog()
    for sql, database, context in recorded(ddl):
        replayed = replayed.after(plan_ddl(sql, database, context, replayed))
    loaded = load_catalog((DATA / dump).read_text())
    wanted = {name: model for name, model in replayed.tables.items() if name[0] != "sbtest"}
    assert loaded.tables.keys() == wanted.keys()
    for name, model in wanted.items():
        assert essence(loaded.tables[name]) == essence(as_printed(model)), name


def test_views_routines_and_rows_of_a_dump_are_passed_over() -> None:
    text = """
-- Server version\t8.0.40
/*!40101 SET NAMES utf8 */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `d` /*!40100 DEFAULT CHARACTER SET latin1 */;
USE `d`;
DROP TABLE IF EXISTS `t`; -- it's gone
CREATE TABLE `t` (`a` varchar(9) DEFAULT ';', `b` int DEFAULT '1' COMMENT 'semi; colon');
INSERT INTO `t` VALUES ('x;\\'y',1),('CREATE TABLE z (a INT);',2);
/*!50001 CREATE VIEW `v` AS SELECT 1 AS `a`*/;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`r`@`l`*/ /*!50003 TRIGGER `x` BEFORE INSERT ON `t` FOR EACH ROW
BEGIN SET @a=1; END */;;
DELIMITER ;
CREATE TABLE `u` (`a` int);
"""
    models = list(load_catalog(text).tables.values())
    assert [(model.database, model.name) for model in models] == [("d", "t"), ("d", "u")]
    assert models[0].columns[0].charset == "latin1"
    assert models[0].columns[1].comment == "semi; colon"


def test_a_dump_of_some_tables_names_its_database_in_a_comment() -> None:
    """`mysqldump --no-data shop t` writes no USE."""
    header = "-- Host: localhost    Database: my shop\n-- ------\n-- Server version\t8.0.40\n"
    assert list(load_catalog(f"{header}CREATE TABLE `t` (a INT);").tables) == [("my shop", "t")]
    assert list(load_catalog(f"{header}USE `x`; CREATE TABLE `t` (a INT);").tables) == [("x", "t")]


def test_a_dump_without_a_database_needs_one_by_name() -> None:
    with pytest.raises(UsageError) as caught:
        load_catalog("-- Host: localhost    Database: \nCREATE TABLE t (a INT);")
    assert caught.value.hint.startswith("make USE DATABASE the first line") and "--database" not in caught.value.hint
    assert list(load_catalog("CREATE TABLE t (a INT);", "d").tables) == [("d", "t")]
    assert list(load_catalog("CREATE TABLE `x`.`t` (a INT)").tables) == [("x", "t")]


def test_statements_end_at_their_delimiter_not_in_strings_or_comments() -> None:
    text = 'SELECT \';\' /* ; */ -- ;\n, `;`; # ;\nSELECT "a\\";"; SELECT 3 - 1'
    assert len(list(split_statements(text))) == 3


def test_a_member_that_the_printed_definition_could_not_show_is_not_taken_for_a_question_mark() -> None:
    text = """
USE d;
CREATE TABLE t (a ENUM('x','?') CHARACTER SET utf8mb4, b ENUM('y','?') CHARACTER SET latin1, c SET('z'));
"""
    labels = [column.labels for column in load_catalog(text).tables["d", "t"].columns]
    assert labels == [(), ("y", "?"), ("z",)]

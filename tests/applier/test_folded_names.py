"""A source with lower_case_table_names=1: statements name tables in any case, its row events in lower case."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.mariadb, pytest.mark.slow]

STATEMENTS = """
CREATE DATABASE Shop;
CREATE TABLE SHOP.MiXed (Id INT PRIMARY KEY, V INT);
CREATE TABLE shop.Left_Out (id INT PRIMARY KEY);
INSERT INTO shop.mixed VALUES (1, 1), (2, 2);
INSERT INTO shop.left_out VALUES (1);
ALTER TABLE Shop.MIXED ADD c INT;
CREATE TABLE shop.Child (id INT PRIMARY KEY, m INT, FOREIGN KEY (m) REFERENCES shop.MIXED (ID) ON DELETE CASCADE);
INSERT INTO shop.CHILD VALUES (1, 1), (2, 2);
DELETE FROM shop.Mixed WHERE id=1;
RENAME TABLE shop.mIXED TO Shop.`ÄÖ`;
UPDATE shop.`äö` SET v=9
"""


def test_names_are_folded_as_the_source_does_or_its_first_row_stops(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source = mariadb_factory("--lower-case-table-names=1")
    source.sql(STATEMENTS)
    log = groups_of(source.binlog_files[-1])
    folding = Instance(tmp_path / "folds", log, lower_case_table_names=1, replicate_ignore_table="shop.left_out")
    folding.apply(log)
    tables = [
        row[0] for row in folding.query("SELECT name FROM sqlite_master WHERE type='table' AND name LIKE 'shop%'")
    ]
    assert sorted(tables) == ["shop__child", "shop__äö"]
    assert folding.query('SELECT * FROM "shop__äö"') == source.sql("SELECT * FROM shop.äö") == [(2, 9, None)]
    assert folding.query("SELECT * FROM shop__child") == source.sql("SELECT * FROM shop.child") == [(2, 2)]
    folding.target.close()

    plain = Instance(tmp_path / "plain", log)
    with pytest.raises(RplError, match=r"'shop.mixed' doesn't exist"):
        plain.apply(log)
    plain.target.close()

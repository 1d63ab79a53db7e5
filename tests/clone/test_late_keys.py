"""Keys that are made behind the rows, and those that cannot wait."""

from __future__ import annotations

from dataclasses import replace

from rplctl.clone.late_keys import late_keys, without
from rplctl.schema.context import DdlContext
from rplctl.schema.definition import table_definition
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel, load_table

CREATE = """CREATE TABLE `t` (
  `id` int(11) NOT NULL,
  `n` int(11) NOT NULL AUTO_INCREMENT,
  `p` int(11) DEFAULT NULL COMMENT 'KEY `k` (',
  `r` int(11) DEFAULT NULL,
  `u` int(11) DEFAULT NULL,
  `v` varchar(20) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`u`),
  KEY `n` (`n`),
  KEY `p` (`p`),
  KEY `k` (`v`(3),`u`) COMMENT 'a,',
  KEY `r` (`r`)%s
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"""
FOREIGN = ",\n  CONSTRAINT `f` FOREIGN KEY (`p`) REFERENCES `t` (`r`)"


def model_of(create: str) -> TableModel:
    return load_table(
        create, DatabaseModel(name="d", charset="utf8mb4"), DdlContext(sql_mode=0, server_version="10.11.2-MariaDB")
    )


def names(model: TableModel) -> list[str]:
    return [key.name for key in late_keys(model, [model])]


def test_keys_wait_but_for_those_that_number_rows_or_stand_under_a_foreign_key() -> None:
    model = model_of(CREATE % FOREIGN)
    assert names(model) == ["u", "k"]
    made, late = table_definition(CREATE % FOREIGN, "t"), late_keys(model, [model])
    text, found = made.create(late), made.keys(late)
    assert found == {"u": "UNIQUE KEY `u` (`u`)", "k": "KEY `k` (`v`(3),`u`) COMMENT 'a,'"}
    assert model_of(text) == without(model, late_keys(model, [model]))


def test_where_rows_do_not_lie_in_its_order_a_primary_key_waits_too_unless_it_is_referred_to() -> None:
    model = model_of(CREATE % FOREIGN)
    assert [key.name for key in late_keys(model, [model], primary=True)] == ["PRIMARY", "u", "n", "k"]
    other = model_of(CREATE % FOREIGN.replace("(`r`)", "(`id`)"))
    assert "PRIMARY" not in [key.name for key in late_keys(other, [other], primary=True)]


def test_the_last_definition_may_be_one_that_waits() -> None:
    model = model_of(CREATE % "")
    made, late = table_definition(CREATE % "", "t"), late_keys(model, [])
    text, found = made.create(late), made.keys(late)
    assert list(found) == ["u", "p", "k", "r"] and model_of(text) == without(model, late_keys(model, []))


def test_unique_keys_of_a_table_without_a_primary_one_do_not_wait() -> None:
    model = model_of(CREATE % "")
    assert names(replace(model, keys=model.keys[1:])) == ["p", "k", "r"]

"""A stage has the columns that the target prints, whatever a temporary table may not have."""

from __future__ import annotations

from rplctl.schema.model import Column, TableModel
from rplctl.verify.target_side import stage_of

CREATE = """CREATE TABLE `t` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `v` varchar(40) DEFAULT NULL WITHOUT SYSTEM VERSIONING,
  `since` timestamp(6) GENERATED ALWAYS AS ROW START,
  `g` int(11) GENERATED ALWAYS AS (`id` + 1) STORED,
  PRIMARY KEY (`id`),
  FULLTEXT KEY `v` (`v`),
  CONSTRAINT `x` FOREIGN KEY (`v`) REFERENCES `u` (`x`)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=latin1 COLLATE=latin1_bin COMMENT='DEFAULT' WITH SYSTEM VERSIONING
 PARTITION BY HASH (`id`)"""


def test_a_stage_is_a_plain_table() -> None:
    model = TableModel(
        database="d",
        name="t",
        columns=(Column(name="id", type="int"), Column(name="row_end", type="timestamp", length=6)),
    )
    assert (
        stage_of(CREATE, model).split()
        == (
            "(`id` int(11) NOT NULL, `v` varchar(40) DEFAULT NULL, `since` timestamp(6),"
            " `g` int(11) GENERATED ALWAYS AS (`id` + 1) STORED, PRIMARY KEY (`id`), `row_end` timestamp(6) NULL)"
            " DEFAULT CHARSET=latin1 COLLATE=latin1_bin"
        ).split()
    )

"""Which tables a statement draws into a copy."""

from __future__ import annotations

import pytest

from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.row_stream import run_of
from rplctl.decode.tables_to_requeue import tables_to_requeue
from rplctl.event.format_description import parse_format_description
from tests.relay_log.stream import FakeSource


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("RENAME TABLE t TO _t_del, _t_gho TO t", ["_t_del", "_t_gho"]),
        ("CREATE TABLE a LIKE t", ["a"]),
        ("CREATE TABLE left_out LIKE t", []),
        ("CREATE TABLE t LIKE a", []),
        ("ALTER TABLE t RENAME TO a", ["a"]),
        ("SET STATEMENT lock_wait_timeout=1 FOR RENAME TABLE t TO _t_del, _t_gho TO t", ["_t_del", "_t_gho"]),
        ("ALTER TABLE t CONVERT PARTITION p1 TO TABLE a", ["a"]),
        ("ALTER TABLE a CONVERT TABLE t TO PARTITION p9 VALUES LESS THAN (9)", ["a"]),
        ("ALTER TABLE a CONVERT TO CHARACTER SET latin1", []),
        ("DROP TABLE t, u", []),
        ("DROP TABLE a, b", []),
        ("ALTER TABLE a ADD x INT", []),
        ("ALTER TABLE a ADD x 'no end", []),
    ],
)
def test_what_changes_beside_tables_that_wait_is_copied_too(sql: str, names: list[str]) -> None:
    source = FakeSource(checksum=0)
    description = parse_format_description(source.description(0))
    rules = ReplicationFilter(ignore_table=("d.left_out",), waiting=frozenset({("d", "t"), ("d", "u")}))
    run = run_of([source.query(sql)], description)
    assert tables_to_requeue(run, rules) == [("d", name) for name in names]

"""Statements of row changes: parameters in the order of the row, keys and NULLs told apart, percent signs doubled."""

from __future__ import annotations

from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target.base import COPIES
from rplctl.target.postgresql.rows import (
    by_key,
    by_row,
    copy_into,
    count_staged,
    delete_copies,
    delete_staged,
    insert_rows,
    insert_staged,
    leaves_out_computed,
    select_list,
    stage,
    update_row,
    update_staged,
    where_keys,
)

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="p%", type="int", nullable=False),
    Column(name="j", type="json"),
    Column(name="g", type="int", generated="`id` + 1"),
)
ONE = TableModel(
    database="d", name="t", columns=COLUMNS, keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),)
)
TWO = TableModel(
    database="d",
    name="t",
    columns=COLUMNS,
    keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("p%"), KeyPart("id"))),),
)


def test_rows_by_parameter_are_numbered_through() -> None:
    assert insert_rows(ONE, (1, 2), 2) == ('INSERT INTO "d"."t" ("p%%", "j") VALUES (%(c0)s, %(c1)s), (%(c2)s, %(c3)s)')
    assert insert_rows(ONE, (), 1) == 'INSERT INTO "d"."t" DEFAULT VALUES'


def test_a_generated_column_that_is_left_out_is_computed() -> None:
    low, high = -2147483648, 2147483647

    def clipped(value: str) -> str:
        return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"

    given = clipped("(%(c0)s::integer::numeric + 1)")
    assert insert_rows(ONE, (0,), 1) == f'INSERT INTO "d"."t" ("id", "g") VALUES (%(c0)s, {given})'
    assert update_row(ONE, (0,), as_sql("w")) == f'UPDATE "d"."t" SET "id" = %(c0)s, "g" = {given} WHERE w'
    assert (
        leaves_out_computed(ONE, (0, 1)) and not leaves_out_computed(ONE, (0, 3)) and not leaves_out_computed(ONE, (1,))
    )
    assert (
        insert_staged(ONE, (0, 1), as_sql("s"))
        == f'INSERT INTO "d"."t" ("id", "p%", "g") SELECT s.c0, s.c1, {clipped("(s.c0::numeric + 1)")} FROM s AS s'
    )
    assert update_staged(ONE, (2,), as_sql("s")) == 'UPDATE "d"."t" AS t SET "j" = s.c0 FROM s AS s WHERE t."id" = s.c1'


def test_keys_stand_in_the_order_of_the_key() -> None:
    assert by_key(TWO, 3) == '"p%%" = %(c3)s AND "id" = %(c4)s'
    assert where_keys(ONE, 2) == '"id" IN (%(c0)s, %(c1)s)'
    assert where_keys(TWO, 2) == ('("p%%" = %(c0)s AND "id" = %(c1)s) OR ("p%%" = %(c2)s AND "id" = %(c3)s)')
    assert delete_staged(TWO, as_sql("s"), 1) == (
        'DELETE FROM "d"."t" AS t USING s AS s WHERE t."p%" = s.c1 AND t."id" = s.c2'
    )
    assert count_staged(ONE, as_sql("s")) == 'SELECT count(*) FROM "d"."t" AS t JOIN s AS s ON t."id" = s.c0'
    assert update_staged(TWO, (2, 3), as_sql("s")) == (
        'UPDATE "d"."t" AS t SET "j" = s.c0, "g" = s.c1 FROM s AS s WHERE t."p%" = s.c2 AND t."id" = s.c3'
    )


def test_a_row_without_a_key_is_found_once_and_its_nulls_are_nulls() -> None:
    assert by_row(ONE, (0, 1, 2), (False, True, False), 5) == (
        'ctid = (SELECT ctid FROM "d"."t" WHERE "id" = %(c5)s AND "p%%" IS NULL AND "j"::text = %(c7)s LIMIT 1)'
    )
    assert by_row(ONE, (), (), 0) == 'ctid = (SELECT ctid FROM "d"."t" WHERE TRUE LIMIT 1)'


def test_copies_are_counted_by_the_number_behind_them() -> None:
    assert delete_copies(ONE, (False, True, False, False), as_sql("s")) == (
        'DELETE FROM "d"."t" WHERE ctid = ANY (ARRAY(SELECT r FROM (SELECT t.ctid AS r, s.c4 AS n, row_number() OVER'
        ' (PARTITION BY s.ctid) AS k FROM "d"."t" AS t JOIN s AS s ON t."id" = s.c0 AND t."p%" IS NULL AND s.c1 IS NULL'
        ' AND t."j"::text = s.c2::text AND t."g" = s.c3) AS f WHERE k <= n))'
    )


def test_a_staged_table_has_the_columns_types_and_goes_with_the_transaction() -> None:
    assert stage(ONE, (2, 0, COPIES), as_sql("s"), is_temporary=True) == (
        'CREATE TEMP TABLE s ON COMMIT DROP AS SELECT "j" AS c0, "id" AS c1, 0 AS c2 FROM "d"."t" WITH NO DATA'
    )
    assert stage(ONE, (2,), as_sql("s"), is_temporary=False) == (
        'CREATE UNLOGGED TABLE s AS SELECT "j" AS c0 FROM "d"."t" WITH NO DATA'
    )
    assert copy_into(as_sql("s"), select_list(ONE, (1, 0))) == 'COPY s ("p%", "id") FROM STDIN'

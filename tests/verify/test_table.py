"""A table's totals are those of its settlements; a row in motion is neither equal nor different."""

from __future__ import annotations

from typing import Any

from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.verify.key_values import from_json, to_json, where_keys
from rplctl.verify.pair import Pair
from rplctl.verify.report_file import Difference, Totals
from rplctl.verify.resolve import Resolution
from rplctl.verify.table import resolved_totals

COLUMNS = (
    Column(name="id", type="bigint", unsigned=True),
    Column(name="w", type="varchar", length=9, charset="latin1"),
    Column(name="b", type="binary", length=2),
)

ENUM = Column(name="e", type="enum", labels=("1", "a"), charset="latin1")


class Settles:
    source = type("About", (), {"about": staticmethod(lambda _: [(100, 900)])})()

    def resolve(self, pair: Pair, keys: list[Any]) -> Resolution:
        return Resolution(
            [Difference(database="d", table="t", kind="missing", key={"id": str(key[0])}) for key in keys[::2]],
            keys[1::2],
        )


def test_totals_are_summed() -> None:
    model = TableModel(
        database="d", name="t", columns=COLUMNS, keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),)
    )
    found: list[Difference] = []
    totals = resolved_totals(
        Settles(),  # type: ignore[arg-type]
        Pair.of(model, model, "mysql"),
        [(n,) for n in range(5000)],
        Totals(database="d", table="t", rows=9000),
        found.extend,
    )
    assert (totals.missing, totals.in_motion, len(found)) == (2500, 2500, 2500)


def test_keys_go_into_a_report_and_back_and_are_looked_up_by_literals() -> None:
    key = (18446744073709551615, "é'\\", b"\x01\x00")
    texts = [to_json(value) for value in key]
    assert texts == ["18446744073709551615", "é'\\", {"hex": "0100"}]
    for kind, number in (("mysql", key[0]), ("postgresql", key[0]), ("sqlite", str(key[0]))):
        back = tuple(from_json(text, column, kind) for text, column in zip(texts, COLUMNS, strict=True))
        assert back == (number, *key[1:])  # SQLite's integers end before
    assert from_json("5", COLUMNS[0], "sqlite") == 5
    assert from_json("1", ENUM, "mysql") == "1"  # a label
    assert where_keys(COLUMNS, [key]) == (
        " WHERE (`id` IN (18446744073709551615) AND `w` IN (_latin1 x'e9275c') AND `b` IN (x'0100'))"
    )


def test_a_key_that_the_columns_cannot_have_finds_no_row() -> None:
    """It is the key of a row that another program has inserted on the target."""
    assert where_keys(COLUMNS[:1], [("abc",), (7,), (1.5,)]) == " WHERE (`id` IN (7))"
    assert where_keys(COLUMNS[:2], [(1, "☺"), (2, "\udcff")]) == " WHERE FALSE"


def test_a_text_with_two_forms_in_its_charset_is_looked_up_by_both() -> None:
    column = Column(name="k", type="varchar", length=9, charset="cp932")
    assert where_keys([column], [("a≒",)]) == " WHERE (`k` IN (_cp932 x'6181e0', _cp932 x'618790'))"

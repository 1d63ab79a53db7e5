"""Which rows a staged row is like: by bytes, NULL like NULL, and by an index only where that saves reading."""

from __future__ import annotations

from typing import Any

import pytest

from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target.base import CountMismatch
from rplctl.target.mysql.multiset import MultisetRemover, compares

COLUMNS = (
    Column(name="n", type="int"),
    Column(name="s", type="varchar", length=9, charset="latin1"),
    Column(name="e", type="enum", labels=("a",)),
    Column(name="g", type="int", generated="1"),
)
PLAIN = TableModel(database="d", name="t", columns=COLUMNS)


class Server:
    """Remembers what it is sent; `answers` for what it is asked, the rows changed by each statement."""

    def __init__(self, *answers: list[tuple[Any, ...]], changed: int = 0) -> None:
        self.answers, self.changed, self.sent = list(answers), changed, list[bytes]()

    def send(self, sql: bytes) -> list[int]:
        self.sent.append(sql)
        return [self.changed]

    def ask(self, sql: bytes) -> list[tuple[Any, ...]]:
        self.sent.append(sql)
        return self.answers.pop(0)


def test_types_without_a_comparison_are_refused() -> None:
    assert compares(PLAIN)
    for kind in ("json", "point", "vector"):
        assert not compares(TableModel(database="d", name="t", columns=(Column(name="c", type=kind),)))


def test_a_stage_has_the_columns_that_are_stored_and_goes_whatever_happens() -> None:
    server = Server()
    with pytest.raises(KeyError), MultisetRemover(server.send, server.ask).stage(PLAIN) as name:
        raise KeyError
    assert name == b"`rplctl`.`rplctl_bag`"
    assert server.sent[0].endswith(b"SELECT `n`, `s`, `e` FROM `d`.`t` WHERE FALSE")
    assert server.sent[1] == b"DROP TEMPORARY TABLE `rplctl`.`rplctl_bag`"


def test_rows_are_alike_by_their_bytes() -> None:
    server = Server([(2, 0)], [], [(5, 0)], changed=5)
    MultisetRemover(server.send, server.ask).remove(PLAIN, 2)
    delete = next(sql for sql in server.sent if sql.startswith(b"DELETE FROM"))
    for condition in (
        b"`d`.`t`.`n` <=> s.`n`",
        b"`d`.`t`.`s` <=> s.`s` AND (`d`.`t`.`s` IS NULL OR CAST(`d`.`t`.`s` AS BINARY)=CAST(s.`s` AS BINARY))",
        b"CAST(`d`.`t`.`e` AS UNSIGNED) <=> CAST(s.`e` AS UNSIGNED)",
    ):
        assert condition in delete
    assert b"`g`" not in delete
    assert server.sent[-1] == b"DROP TEMPORARY TABLE `rplctl`.`rplctl_bag_found`"


@pytest.mark.parametrize(
    "answers",
    [([(1, 0)],), ([(2, -1)],), ([(2, 0)], [], [(4, 0)])],
    ids=["a row is missing", "too few copies", "others went"],
)
def test_another_number_is_told(answers: tuple[list[tuple[Any, ...]], ...]) -> None:
    server = Server(*answers, changed=5)
    with pytest.raises(CountMismatch):
        MultisetRemover(server.send, server.ask).remove(PLAIN, 2)
    assert server.sent[-1] == b"DROP TEMPORARY TABLE `rplctl`.`rplctl_bag_found`"


def test_copies_beyond_those_asked_for_come_back() -> None:
    server = Server([(1, 2)], [], [(5, 2)], changed=5)
    MultisetRemover(server.send, server.ask).remove(PLAIN, 1)
    back = [sql for sql in server.sent if sql.startswith(b"INSERT INTO `d`.`t`")]
    assert [sql.rsplit(b" ", 1)[1] for sql in back] == [b"1", b"2"]


@pytest.mark.parametrize(("known", "is_used"), [(9, True), (8, False), (None, False)])
def test_an_index_is_used_where_it_tells_rows_apart(known: int | None, is_used: bool) -> None:
    model = TableModel(
        database="d",
        name="t",
        columns=COLUMNS,
        keys=(Key(name="K", kind="index", parts=(KeyPart("n"),)), Key(name="e", kind="index", parts=(KeyPart("e"),))),
    )
    server = Server([("k", known)], [(2, 0)], [], [(5, 0)], changed=5)
    MultisetRemover(server.send, server.ask).remove(model, 2)
    assert any(b"FORCE INDEX (`K`)" in sql for sql in server.sent) is is_used
    assert not any(b"FORCE INDEX (`e`)" in sql for sql in server.sent)


def test_an_index_over_a_part_of_a_column_is_not_asked_for() -> None:
    model = TableModel(
        database="d", name="t", columns=COLUMNS, keys=(Key(name="K", kind="index", parts=(KeyPart("s", 3),)),)
    )
    server = Server([(2, 0)], [], [(5, 0)], changed=5)
    MultisetRemover(server.send, server.ask).remove(model, 2)

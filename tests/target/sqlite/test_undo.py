"""A value of any type, written as SQL text and run, is the same value of the same type."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import TargetError
from rplctl.schema.model import Column, TableModel
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target import open_target
from rplctl.target.sqlite.undo import UNDO

VALUES = (
    1, -(2**63), 0.1, -1.7e308, 5e-324, float("inf"), -float("inf"), "it's", "1", "", "é", "tab\t", "a\0b", "\udcff",
    b"", b"\0\xff", None,
)  # fmt: skip
MODEL = TableModel(database="d", name="t", columns=(Column(name="v", type="longtext"),))


def lossless(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_literals_are_lossless(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "t.db"
    with closing(lossless(sqlite3.connect(path))) as connection:
        connection.execute("CREATE TABLE d__t (v, w AS (v || 'x'))")
        raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        connection.execute(f"INSERT INTO d__t VALUES ({'CAST(? AS TEXT)' if isinstance(value, str) else '?'})", (raw,))
        connection.commit()
        with closing(open_target(f"sqlite:///{path}")) as target:
            literals = UNDO.literals(target, MODEL)
            assert [*literals] == ['"v"']
            ((text,),) = UNDO.rows(target, as_sql(f"SELECT {', '.join(literals.values())} FROM {UNDO.table(MODEL)}"))
        texts = [text] if value is None or isinstance(value, float) else [text, UNDO.literal(value, MODEL.columns[0])]
        for literal in texts:
            found, kind, old = connection.execute(
                f"SELECT {literal}, typeof({literal}), typeof(v) FROM d__t"
            ).fetchone()
            assert (found, kind) == (value, old)


def test_what_the_driver_refuses_is_an_error_of_the_target(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(open_target(f"sqlite:///{path}")) as target:
        with pytest.raises(TargetError, match="no such table") as caught:
            UNDO.rows(target, as_sql("SELECT 1 FROM d__t"))
        assert caught.value.errno == 1146
        path.write_bytes(b"junk" * 1024)  # the file is not a database any more
        target.reconnect()
        with pytest.raises(TargetError) as caught:
            UNDO.literals(target, MODEL)
        assert caught.value.errno == 1194

"""A large parameter is a large object that the statement reads: whole, in pieces, and gone with the statement."""

from __future__ import annotations

from typing import Any

import pytest

from rplctl.event.large_text import LargeText, checked_text
from rplctl.sql_text import Sql
from rplctl.target.postgresql import large as postgresql_large, values as postgresql_values
from rplctl.target.postgresql.large import Parameters, has_large, in_pieces
from rplctl.target.postgresql.values import LargeBytes


class Driver:
    """Large objects as PostgreSQL has them."""

    def __init__(self) -> None:
        self.objects: dict[str, bytearray] = {}
        self.gone: list[str] = []

    def execute(self, sql: Sql, values: tuple[Any, ...] = ()) -> Driver:
        if "lo_from_bytea" in sql:
            self.objects[str(len(self.objects) + 7)] = bytearray()
        elif "lo_put" in sql:
            oid, at, piece = values
            assert len(self.objects[oid]) == int(at)
            self.objects[oid] += piece.raw
        else:
            assert "lo_unlink" in sql
            self.gone.append(values[0])
        return self

    def fetchone(self) -> tuple[int]:
        return (int(list(self.objects)[-1]),)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_values, "LARGEST_PARAMETER", 4)
    monkeypatch.setattr(postgresql_large, "PIECE", 3)


def test_what_is_large() -> None:
    assert not has_large(["a long text", None, LargeBytes(b"1234")])
    assert has_large([None, LargeBytes(b"12345")])
    assert has_large([LargeBytes(_text("a"))])


def test_large_parameters_are_read_by_the_statement() -> None:
    driver = Driver()
    values: Parameters = {
        "c0": LargeBytes(b"1234567"),
        "c1": "x",
        "c2": LargeBytes(b"abcd"),
        "c3": LargeBytes(_text("é€")),
    }
    sql = "UPDATE t SET a = %(c0)s, b = %(c1)s, c = %(c2)s, d = %(c3)s"
    with in_pieces(driver, sql, values) as (found, sent):  # type: ignore[arg-type]
        assert found == (
            "UPDATE t SET a = lo_get(%(c0)s::oid), b = %(c1)s, c = %(c2)s,"
            " d = convert_from(lo_get(%(c3)s::oid), 'UTF8')"
        )
        assert sent == values | {"c0": "7", "c3": "8"}
        assert driver.objects == {"7": b"1234567", "8": "é€".encode()}
        assert driver.gone == []
    assert driver.gone == ["7", "8"]


def _text(text: str) -> LargeText:
    found = checked_text(text)
    assert isinstance(found, LargeText)
    return found

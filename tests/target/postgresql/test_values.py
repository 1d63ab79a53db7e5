"""Every value as the text that PostgreSQL reads, and what it has no text for."""

from __future__ import annotations

import pytest

from rplctl.errors import TargetError
from rplctl.event.large_text import LargeText, checked_text
from rplctl.schema.model import Column
from rplctl.target.base import Value
from rplctl.target.postgresql import values as postgresql_values
from rplctl.target.postgresql.values import LargeBytes, NulInText, copy_lines, parameter, parameters, without_nul


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (Column(name="c", type="bigint", unsigned=True), 2**64 - 1, "18446744073709551615"),
        (Column(name="c", type="bit", length=9), 5, "000000101"),
        (Column(name="c", type="float"), 0.10000000149011612, "0.10000000149011612"),
        (Column(name="c", type="date"), "0000-00-00", "-infinity"),
        (Column(name="c", type="datetime", length=3), "0000-00-00 00:00:00.000", "-infinity"),
        (Column(name="c", type="datetime"), "0000-00-00 00:00:01", "0000-00-00 00:00:01"),
        (Column(name="c", type="time"), "-838:59:59", "-838:59:59"),
        (Column(name="c", type="varbinary", length=9), b"\0\xff", "\\x00ff"),
        (Column(name="c", type="varchar", length=9), "0000-00-00", "0000-00-00"),
        (Column(name="c", type="text"), None, None),
    ],
)
def test_a_parameter_is_the_text_that_postgresql_reads(column: Column, value: Value, text: str | None) -> None:
    assert parameter(value, column) == text


def test_copy_escapes_what_ends_columns_and_rows() -> None:
    columns = [Column(name="a", type="int"), Column(name="b", type="text"), Column(name="c", type="blob")]
    rows: list[tuple[Value, ...]] = [(1, "x\ty\nz\\\r", b"\\"), (None, None, None), (2, "\\N", b"")]
    assert b"".join(copy_lines(columns, rows)) == (b"1\tx\\ty\\nz\\\\\\r\t\\\\x5c\n\\N\t\\N\t\\N\n2\t\\\\N\t\\\\x\n")


def test_copy_comes_in_pieces_and_no_rows_are_no_text() -> None:
    pieces = list(copy_lines([Column(name="a", type="int")], [(n,) for n in range(5000)]))
    assert [piece.count(b"\n") for piece in pieces] == [2000, 2000, 1000]
    assert list(copy_lines([Column(name="a", type="int")], [])) == []


@pytest.mark.parametrize("text", ["a\0b", "half \ud83d"])
def test_text_that_postgresql_cannot_hold_names_its_column(text: str) -> None:
    column = Column(name="note", type="text")
    for run in (lambda: parameter(text, column), lambda: list(copy_lines([column], [("fine",), (text,)]))):
        with pytest.raises(TargetError) as caught:
            run()
        assert caught.value.errno == 1366
        assert "'note'" in caught.value.message


@pytest.mark.parametrize(("text", "escaped"), [("\\", b"\\\\"), ("\t", b"\\t"), ("\n", b"\\n"), ("\r", b"\\r")])
def test_each_character_that_copy_would_take_for_its_own_is_escaped_alone(text: str, escaped: bytes) -> None:
    assert b"".join(copy_lines([Column(name="c", type="text")], [("a",), (f"x{text}y",)])) == b"a\nx" + escaped + b"y\n"


def test_large_values_go_as_bytes_and_those_at_the_limit_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_values, "LARGEST_HEX", 3)
    monkeypatch.setattr(postgresql_values, "LARGEST_PARAMETER", 8)
    blob, text = Column(name="b", type="blob"), Column(name="t", type="text")
    assert list(parameters([b"abc", "12345678", None], [blob, text, text])) == ["\\x616263", "12345678", None]
    view = memoryview(b"abcd")
    raw, long = parameters([view, "12345678é"], [blob, text])
    assert raw == LargeBytes(view)
    assert isinstance(long, LargeBytes) and isinstance(long.raw, LargeText) and str(long.raw) == "12345678é"
    large = checked_text("1234567é9")
    assert isinstance(large, LargeText)
    assert list(parameters([large], [text])) == [LargeBytes(large)]
    with pytest.raises(TargetError) as caught:
        list(parameters([checked_text("123456789\0")], [text]))
    assert caught.value.errno == 1366


def test_a_row_that_no_message_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_values, "MOST_MESSAGE_BYTES", 5)
    columns = [Column(name="b", type="blob"), Column(name="t", type="text"), Column(name="n", type="int")]
    assert list(parameters([b"ab", "abc", 123456], columns)) == ["\\x6162", "abc", "123456"]
    with pytest.raises(TargetError) as caught:
        list(parameters([b"abc", "abc", 1], columns))
    assert caught.value.errno == 1153


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (b"a\\0\\0b\n", b"a\xef\xbf\xbd\xef\xbf\xbdb\n"),
        (b"\\\\0\n", b"\\\\0\n"),  # a backslash and the digit
        (b"\\\\\\0\\t0\n", b"\\\\\xef\xbf\xbd\\t0\n"),
    ],
)
def test_nul_in_the_text_of_a_task_is_told_from_a_backslash_before_a_digit(text: bytes, stored: bytes) -> None:
    assert [bytes(piece) for piece in without_nul([memoryview(text)], NulInText.REPLACE)] == [stored]
    if text == stored:
        assert list(without_nul([text], NulInText.STOP)) == [text]
    else:
        with pytest.raises(TargetError, match="NUL"):
            list(without_nul([text], NulInText.STOP))

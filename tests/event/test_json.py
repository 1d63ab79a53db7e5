"""Binary JSON that is damaged stops, and partial updates change exactly what their path names.

What valid documents print as is compared with a server in test_values.
"""

from __future__ import annotations

import random
import struct

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.json import (
    INSERT,
    REMOVE,
    REPLACE,
    apply_diffs,
    double_text,
    is_exact_as_text,
    json_text,
    parse_json,
    print_json,
    quoted,
    text_of_57,
)

# {"a": 1, "bc": [true, "x"]}
DOCUMENT = bytes.fromhex(
    "00 0200 2100 1200 0100 1300 0200 05 0100 02 1500 61 6263 0200 0c00 04 0100 0c 0a00 01 78".replace(" ", "")
)


def diff(operation: int, path: str, value: bytes = b"") -> bytes:
    raw = path.encode()
    return bytes([operation, len(raw)]) + raw + (bytes([len(value)]) + value if operation != REMOVE else b"")


def changed(*diffs: bytes) -> str:
    return print_json(apply_diffs(parse_json(DOCUMENT), b"".join(diffs)))


ONE = b"\x05\x01\x00"


def test_the_document_prints() -> None:
    assert json_text(DOCUMENT) == '{"a": 1, "bc": [true, "x"]}'
    assert json_text(b"") == "null"


@pytest.mark.parametrize(
    ("diffs", "text"),
    [
        ([diff(REPLACE, "$.a", b"\x0c\x01n")], '{"a": "n", "bc": [true, "x"]}'),
        ([diff(REPLACE, "$.bc[1]", ONE), diff(REMOVE, "$.a")], '{"bc": [true, 1]}'),
        ([diff(INSERT, '$."b"', ONE)], '{"a": 1, "b": 1, "bc": [true, "x"]}'),
        ([diff(INSERT, '$."q\\"\\u0041"', ONE), diff(REMOVE, "$.bc")], '{"a": 1, "q\\"A": 1}'),
        ([diff(INSERT, "$.bc[0]", ONE), diff(INSERT, "$.bc[9]", ONE)], '{"a": 1, "bc": [1, true, "x", 1]}'),
        ([diff(REPLACE, "$", ONE)], "1"),
        ([diff(REPLACE, "$.bc[last]", ONE), diff(REMOVE, "$.bc[last-1]")], '{"a": 1, "bc": [1]}'),
        ([diff(INSERT, "$.bc[last-9]", ONE), diff(INSERT, "$.bc[last]", ONE)], '{"a": 1, "bc": [1, true, 1, "x"]}'),
    ],
)
def test_diffs_change_what_their_path_names(diffs: list[bytes], text: str) -> None:
    assert changed(*diffs) == text


@pytest.mark.parametrize(
    "raw",
    [
        diff(REPLACE, "$.x", ONE),
        diff(INSERT, "$.a", ONE),
        diff(REMOVE, "$.bc[2]"),
        diff(REMOVE, "$.bc[last-2]"),
        diff(REMOVE, "$.bc[last-]"),
        diff(REPLACE, "$.bc[last-2].x", ONE),
        diff(REMOVE, "$"),
        diff(REPLACE, "$.a[0]", ONE),
        diff(REPLACE, "$.a.b", ONE),
        diff(REPLACE, "a", ONE),
        diff(REPLACE, "$**.a", ONE),
        diff(3, "$.a", ONE),
        diff(REPLACE, "$.a", ONE)[:-1],
        b"\x00\xff",
    ],
)
def test_a_diff_that_does_not_fit_stops(raw: bytes) -> None:
    with pytest.raises(BinlogFormatError, match="invalid JSON value"):
        changed(raw)


def test_damaged_documents_stop_or_stay_documents() -> None:
    rng = random.Random(4)
    for _ in range(4000):
        broken = bytearray(DOCUMENT[: rng.randrange(1, len(DOCUMENT) + 1)])
        broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            json_text(bytes(broken))
        except BinlogFormatError as error:
            assert "invalid JSON value" in error.message


def test_containers_that_share_children_cannot_explode() -> None:
    entry = b"\x02\x00\x00"  # an array of itself
    itself = b"\x02" + (20).to_bytes(2, "little") + (64).to_bytes(2, "little") + entry * 20
    with pytest.raises(BinlogFormatError, match="too deep, or more values than bytes"):
        parse_json(itself)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), (-0.0, "-0.0"), (1e14, "100000000000000.0"), (1e15, "1e15"), (1.5e-7, "0.00000015")]
    + [(1e-15, "0.000000000000001"), (1e-16, "1e-16"), (1234567890123456.8, "1234567890123456.8"), (1e100, "1e100")],
)
def test_doubles_print_as_the_server_does(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize("type_code", [7, 12])  # TIMESTAMP, DATETIME
def test_an_opaque_time_prints_as_the_server_does(type_code: int) -> None:
    """A document of JSON_SET(…, ts) holds the column's type: 2024-05-06 07:08:09.000010 packed in 8 bytes."""
    packed = ((((2024 * 13 + 5) << 5 | 6) << 17) | 7 << 12 | 8 << 6 | 9) << 24 | 10
    document = b"\x0f" + bytes([type_code, 8]) + packed.to_bytes(8, "little")
    assert json_text(document) == '"2024-05-06 07:08:09.000010"'


def test_strings_are_escaped_as_the_server_does() -> None:
    assert quoted('a"\\/\b\f\n\r\t\x01\x7fé') == '"a\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7fé"'


def test_mysql_57_prints_whole_doubles_without_their_fraction() -> None:
    """As a 5.7 server shows these documents (SELECT CAST(j AS CHAR)); strings are left alone."""
    text = '{"a": 3.0, "b": [-2.0, 1.5, 1e30, 10.0], "c": "3.0, 4.0", "d\\"1.0": 0.0}'
    assert text_of_57(text) == '{"a": 3, "b": [-2, 1.5, 1e30, 10], "c": "3.0, 4.0", "d\\"1.0": 0}'
    assert text_of_57("3.0") == "3" and text_of_57("3.05") == "3.05" and text_of_57('"3.0"') == '"3.0"'


@pytest.mark.parametrize(
    ("value", "is_exact"),
    [
        (2.5, True),
        (9088544342.689999, False),
        (0.1 + 0.2, False),
        (1e22, True),
        (1e23, False),
        (1.5e-22, False),
        (-0.0, True),
    ],
)
def test_a_double_is_exact_as_text_if_mysqls_parser_computes_it_exactly(value: float, is_exact: bool) -> None:
    """MySQL 8.0 and 8.4 read 9088544342.689999 as 9088544342.69 (tests/stories/test_json_of_servers.py)."""
    assert is_exact_as_text(b"\x0b" + struct.pack("<d", value)) is is_exact
    assert not is_exact_as_text(b"\xff\x0b")

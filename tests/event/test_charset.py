"""Every charset decodes to the text that real servers answered (MySQL 9.7 and MariaDB 10.11, all codes)."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.charset import charset_of, codes_by_character, decode_text, is_utf8

RECORDED: dict[str, dict[str, str]] = json.loads(
    lzma.decompress((Path(__file__).parents[1] / "data" / "charsets.xz").read_bytes())
)


@pytest.mark.parametrize("charset", sorted(RECORDED))
def test_every_code_decodes_to_the_servers_text(charset: str) -> None:
    codes = RECORDED[charset]
    wrong = [(code, text) for code, text in codes.items() if decode_text(bytes.fromhex(code), charset) != text]
    assert wrong == []
    joined = bytes.fromhex("".join(codes))
    assert decode_text(joined, charset) == "".join(codes.values())


@pytest.mark.parametrize("charset", sorted(RECORDED))
def test_each_code_of_a_character_is_known(charset: str) -> None:
    known = codes_by_character(charset)
    wrong = [(code, text) for code, text in RECORDED[charset].items() if bytes.fromhex(code) not in known.get(text, ())]
    assert not wrong or not known


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("ucs2", "00410416d83d", "AЖ\ud83d"),
        ("utf16", "0041d83dde00", "A😀"),
        ("utf16le", "41003dd800de", "A😀"),
        ("utf32", "000000410001f600", "A😀"),
        ("utf8mb3", "41d096", "AЖ"),
        ("utf8mb4", "f09f9880", "😀"),
        ("latin1", "8180e9", "\x81€é"),
        ("gb18030", "9439fc36", "😀"),
    ],
)
def test_unicode_and_far_codes(charset: str, raw: str, text: str) -> None:
    assert decode_text(bytes.fromhex(raw), charset) == text


@pytest.mark.parametrize(
    ("collation", "charset"),
    [(8, "latin1"), (63, "binary"), (255, "utf8mb4"), (33, "utf8mb3"), (1032, "latin1"), (1270, "utf8mb4")]
    + [(2304, "utf8mb4"), (2048, "utf8mb3"), (3072, "utf32"), (97, "eucjpms"), (250, "gb18030"), (309, "utf8mb4")],
)
def test_collation_ids_of_both_vendors(collation: int, charset: str) -> None:
    assert charset_of(collation) == charset


def test_what_is_no_text_stops_and_shows_the_bytes() -> None:
    with pytest.raises(BinlogFormatError, match="not utf8mb4 text: 61 ff 62"):
        decode_text(b"a\xffb", "utf8mb4")
    with pytest.raises(BinlogFormatError, match="not cp1257 text"):
        decode_text(b"\xa1", "cp1257")
    with pytest.raises(BinlogFormatError, match="Unknown character set"):
        decode_text(b"a", "klingon")
    with pytest.raises(BinlogFormatError, match="unknown collation id 0"):
        charset_of(0)


def test_utf8_is_known_to_need_no_conversion() -> None:
    assert is_utf8("utf8mb4") and is_utf8("ascii") and not is_utf8("latin1")

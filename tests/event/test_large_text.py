"""Text in pieces is the text in one, wherever its bytes are cut, in every charset."""

from __future__ import annotations

import re

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event import large_text as module
from rplctl.event.charset import decode_text
from rplctl.event.large_text import LargeText, large_text
from tests.event.test_charset import RECORDED

pytestmark = pytest.mark.slow


@pytest.mark.long("One width of the cut stays.", keeps=r"-8$")
@pytest.mark.parametrize("size", [8, 11, 4093])
@pytest.mark.parametrize("charset", sorted(RECORDED))
def test_every_character_of_every_charset_goes_over_the_cuts(
    charset: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", size)
    halves = re.compile("[\ud800-\udfff]")
    raw = bytes.fromhex("".join(code for code, text in RECORDED[charset].items() if not halves.search(text)))
    raw = raw if size > 100 else raw[:20_000]
    try:
        whole = decode_text(raw, charset)
    except BinlogFormatError:  # cut within a character
        whole = decode_text(raw := raw[:-1], charset)
    text = large_text(memoryview(raw), charset)
    assert isinstance(text, LargeText)
    pieces = [bytes(piece) for piece in text]
    assert b"".join(pieces) == whole.encode() and len(text) == len(whole.encode())
    assert "".join(piece.decode() for piece in pieces) == whole == str(text)
    assert len(pieces) > 1 or len(raw) <= size


@pytest.mark.parametrize(
    ("charset", "raw"),
    [
        ("utf8mb4", b"abcdefghijk" + "ö".encode()[:1]),
        ("utf8mb4", b"abcdefg" + b"\x80" * 9),
        ("utf8mb4", b"abcdefg\xffabcdefg"),
        ("utf16", "abcdefg".encode("utf-16-be") + b"\0"),
        ("utf32", b"\0\0\0a" * 5 + b"\0"),
        ("cp932", b"abcdefgh\x81"),
        ("gb18030", b"abcdefghi\x81\x30\x81"),
    ],
)
def test_what_is_no_text_is_refused_as_a_whole(charset: str, raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 8)
    with pytest.raises(BinlogFormatError, match=f"not {charset} text"):
        large_text(memoryview(raw), charset)


def test_halves_of_surrogate_pairs_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 8)
    raw = "abc".encode("utf-16-be") + b"\xd8\x3d\xde\x00" + "abc".encode("utf-16-be")
    assert str(large_text(memoryview(raw), "ucs2")) == decode_text(raw, "ucs2")
    assert large_text(memoryview(raw[:8] + raw[10:]), "ucs2") == "abc\ud83dabc"

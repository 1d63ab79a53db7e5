"""Find the charset of a MySQL collation id, and decode the bytes of each charset to text.

Invariant: a decoded text is the text that the server sends after CONVERT(… USING utf8mb4). Bytes that the server cannot
convert raise an error (design D12) and never become "?". This module lists the characters for which Python's codec and
the server differ. tests/event/test_charset.py compares every code of every charset with the answers of real servers.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import CORRECT_VALUE, OR_REFETCH, UNKNOWN_FORM, BinlogFormatError

# The ids of each charset's collations, reserved ids included. Ids from 2048 are MariaDB's uca1400 collations.
_COLLATIONS: Final = {
    "utf8mb4": "45-46 224-247 255-323 608-639 2304-2559",
    "utf8mb3": "33 76 83 192-215 223 576-607 2048-2303",
    "latin1": "5 8 15 31 47-49 94",
    "binary": "63",
    "ascii": "11 65",
    "armscii8": "32 64",
    "big5": "1 84",
    "cp1250": "26 34 44 66 99",
    "cp1251": "14 23 50-52",
    "cp1256": "57 67",
    "cp1257": "29 58-59",
    "cp850": "4 80",
    "cp852": "40 81",
    "cp866": "36 68",
    "cp932": "95-96",
    "dec8": "3 69",
    "eucjpms": "97-98",
    "euckr": "19 85",
    "gb18030": "248-250",
    "gb2312": "24 86",
    "gbk": "28 87",
    "geostd8": "92-93",
    "greek": "25 70",
    "hebrew": "16 71",
    "hp8": "6 72",
    "keybcs2": "37 73",
    "koi8r": "7 74",
    "koi8u": "22 75",
    "latin2": "2 9 21 27 77",
    "latin5": "30 78",
    "latin7": "20 41-42 79",
    "macce": "38 43",
    "macroman": "39 53",
    "sjis": "13 88",
    "swe7": "10 82",
    "tis620": "18 89",
    "ucs2": "35 90 128-151 159 640-671 2560-2815",
    "ujis": "12 91",
    "utf16": "54-55 101-124 672-703 2816-3071",
    "utf16le": "56 62",
    "utf32": "60-61 160-183 736-767 3072-3327",
}
CHARSETS: Final = tuple(name for name in _COLLATIONS if name != "binary")
# The id of a NOPAD collation of MariaDB is the id of the PAD SPACE collation plus the start of this range.
_NOPAD: Final = range(1024, 2048)

_UTF8: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
_CODECS: Final = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "cp932": "cp932",
    "euckr": "cp949",
    "gb2312": "gb2312",
    "gbk": "gbk",
}
_UNICODE: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "utf16", "utf16le", "utf32", "ucs2", "gb18030"})
_SINGLE_BYTE: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": ("cp1256", {}),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "ⁿ", 0xFD: "²"}),
    "greek": ("iso8859_7", {0xA1: "ʽ", 0xA2: "ʼ"}),
    "hebrew": ("iso8859_8", {0xAF: "‾"}),
    "hp8": ("hp_roman8", {}),
    "koi8r": ("koi8_r", {}),
    "koi8u": ("koi8_u", {0x95: "•"}),
    "latin1": ("cp1252", {code: chr(code) for code in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "swe7": ("ascii", dict(zip(b"@[\\]^`{|}~", "ÉÄÖÅÜéäöåü", strict=True)) | {0x7F: "\ufffe"}),
    "tis620": ("tis_620", dict.fromkeys((0xA0, *range(0xDB, 0xDF), *range(0xFC, 0x100)), "\ufffd")),
}
# Charsets that Python does not have: a first code, and the characters of the codes from it to 255 (space: none).
_UPPER_HALVES: Final = {
    "armscii8": (
        0xA0,
        "\xa0❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'",
    ),
    "dec8": (
        0xA0,
        "\xa0¡¢£ ¥ §¤©ª«    °±²³ µ¶· ¹º»¼½ ¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ ÑÒÓÔÕÖŒØÙÚÛÜŸ ßàáâãäåæçèéêëìíîï ñòóôõöœøùúûüÿ  ",
    ),
    "geostd8": (
        0x80,
        "€ ‚ „…†‡ ‰ ‹     ‘’“”•–—   ›    "
        "\xa0¡¢£¤¥¦§¨©ª«¬\xad®¯°±²³´µ¶·¸¹º»¼½¾¿აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ                       №  ",
    ),
    "keybcs2": (
        0x80,
        "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»"
        "░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0",
    ),
}
_IBM_EXTENSIONS: Final = (  # eucjpms 8F F3F3-F3FE, 8F F4A1-F4FE
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏塚增寬峵嵓﨑德悅愠敎昻晥晴朗栁﨓﨔橫櫢淸淲瀨凞猪甁皂皞益礰礼神祥福竧靖精綠緖羽荢﨟薰蘒﨡蠇諸譿賴赶﨣﨤逸郞都鄕﨧﨨閒隆﨩霻靍靑飯飼館馞髙魲鶴黑"
)
# Patterns that split the bytes of the multi-byte charsets below into characters
_SJIS: Final = re.compile(rb"[\x81-\x9f\xe0-\xfc].|.", re.DOTALL)
_EUC: Final = re.compile(rb"\x8f..|[\x8e\xa1-\xfe].|.", re.DOTALL)
_BIG5: Final = re.compile(rb"[\x81-\xfe].|.", re.DOTALL)
_GB18030: Final = re.compile(rb"[\x81-\xfe][0-9]..|[\x81-\xfe].|.", re.DOTALL)
_CUTS: Final = {
    "sjis": _SJIS,
    "cp932": _SJIS,
    "ujis": _EUC,
    "eucjpms": _EUC,
    "big5": _BIG5,
    "euckr": _BIG5,
    "gb2312": _BIG5,
    "gbk": _BIG5,
    "gb18030": _GB18030,
}
_LONGEST: Final = 4  # bytes per character

Decoder = Callable[[bytes], str]


@cache
def _charsets_by_id() -> dict[int, str]:
    found: dict[int, str] = {}
    for charset, ranges in _COLLATIONS.items():
        for part in ranges.split():
            first, _, last = part.partition("-")
            found.update(dict.fromkeys(range(int(first), int(last or first) + 1), charset))
    return found


def charset_of(collation_id: int) -> str:
    """Return MySQL's charset name of a collation id. Raises BinlogFormatError if no server defines the id."""
    base = collation_id - _NOPAD.start if collation_id in _NOPAD else collation_id
    charset = _charsets_by_id().get(base)
    if charset is None:
        raise BinlogFormatError(f"unknown collation id {collation_id}", errno=er.UNKNOWN_COLLATION, hint=UNKNOWN_FORM)
    return charset


def is_utf8(charset: str) -> bool:
    """True if the bytes of each text in this charset are UTF-8."""
    return charset in _UTF8


def is_single_byte(charset: str) -> bool:
    """True if every byte of the charset is one character, independent of the bytes next to it."""
    return charset in _SINGLE_BYTE or charset in _UPPER_HALVES


def whole_characters(raw: bytes, charset: str) -> int:
    """Return a length to which `raw` can be cut so that no character is divided.

    `raw` is a part of a longer text, so its last character may be incomplete. The result is at most four bytes shorter
    than `raw`. It may also exclude a last character that is complete. `raw` must have at least 8 bytes.
    """
    length = len(raw)
    if is_utf8(charset):
        lead = next((back for back in range(1, _LONGEST + 1) if raw[-back] & 0xC0 != 0x80), 0)
        return length - lead if lead and raw[-lead] & 0x80 else length
    if charset in _CUTS:
        start = 1 + max(raw.rfind(character) for character in (b" ", b"\n", b"\0"))  # never inside a longer one
        starts = (found.start() for found in _CUTS[charset].finditer(raw, start))
        return next((at for at in starts if at > length - _LONGEST), length)
    if charset in ("utf16", "utf16le", "ucs2"):
        length -= length % 2
        high = raw[length - (1 if charset == "utf16le" else 2)]
        return length - 2 if 0xD8 <= high < 0xDC else length
    return length - length % _LONGEST if charset == "utf32" else length


ASCII_COMPATIBLE: Final = frozenset(
    {"ascii", "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257"}
)


def decode_text(raw: bytes, charset: str) -> str:
    """Return the text of `raw`. Raises BinlogFormatError if the charset is unknown or cannot decode the bytes."""
    try:
        return decoder(charset)(raw)
    except UnicodeDecodeError as error:
        head = raw[max(0, error.start - 8) : error.start + 56].hex(" ")
        raise BinlogFormatError(
            f"the log contains bytes that are not {charset} text: {head}",
            errno=er.TRUNCATED_WRONG_VALUE_FOR_FIELD,
            hint=f"{CORRECT_VALUE}{OR_REFETCH}",
        ) from error


@cache
def decoder(charset: str) -> Decoder:
    """Return the function that decodes bytes of a charset to text.

    The returned function raises UnicodeDecodeError if the bytes are not text in this charset. `decoder` itself raises
    BinlogFormatError if the charset is unknown.
    """
    if charset in _CODECS:
        return partial(str, encoding=_CODECS[charset])
    if charset == "ucs2":  # UCS-2 has no surrogate pairs: each half is a character
        return partial(str, encoding="utf-16-be", errors="surrogatepass")
    if is_single_byte(charset):
        return partial(_decode_by_table, _single_byte_table(charset))
    if charset == "sjis":
        return partial(_decode_with_exceptions, "shift_jis", _SJIS, {b"\x81\x5f": "\\"})
    if charset == "big5":
        return partial(_decode_with_exceptions, "big5", _BIG5, _big5_exceptions())
    if charset == "gb18030":
        return partial(_decode_with_exceptions, "gb18030", _GB18030, {b"\xa8\xbc": "ḿ", b"\x81\x35\xf4\x37": "\ue7c7"})
    if charset == "ujis":
        return partial(_decode_with_exceptions, "euc_jp", _EUC, {b"\xa1\xc0": "\\"} | _euc_private_use())
    if charset == "eucjpms":
        return partial(_decode_with_exceptions, "euc_jp", _EUC, _eucjpms_exceptions())
    raise BinlogFormatError(f"Unknown character set: '{charset}'", errno=er.UNKNOWN_CHARACTER_SET, hint=UNKNOWN_FORM)


@cache
def codes_by_character(charset: str) -> Mapping[str, Sequence[bytes]]:
    """Return the codes of each character of a charset. Some charsets have several codes for a character.

    The result is empty for a charset that has all characters of Unicode, or those up to U+FFFF. Raises
    BinlogFormatError if the charset is unknown.
    """
    decode = decoder(charset)
    found: dict[str, list[bytes]] = {}
    for code in [] if charset in _UNICODE else _possible_codes(charset):
        with suppress(UnicodeDecodeError):
            found.setdefault(decode(code), []).append(code)
    return found


def _possible_codes(charset: str) -> Iterator[bytes]:
    yield from (bytes([code]) for code in range(256))
    if not is_single_byte(charset) and charset != "ascii":
        yield from (bytes([one, two]) for one in range(0x80, 0xFF) for two in range(0x40, 0xFF))
    if charset in ("ujis", "eucjpms"):
        yield from (bytes([0x8F, one, two]) for one in range(0xA1, 0xFF) for two in range(0xA1, 0xFF))


def _decode_by_table(table: str, raw: bytes) -> str:
    if raw.isascii() and table.startswith(_ASCII):
        return raw.decode("ascii")
    return codecs.charmap_decode(raw, "strict", table)[0]


def _decode_with_exceptions(codec: str, characters: re.Pattern[bytes], exceptions: dict[bytes, str], raw: bytes) -> str:
    if raw.isascii():
        return raw.decode("ascii")
    return "".join(exceptions.get(character) or character.decode(codec) for character in characters.findall(raw))


_ASCII: Final = "".join(map(chr, range(128)))


def _single_byte_table(charset: str) -> str:
    """Return the 256 characters of a single-byte charset, in the order of their codes.

    U+FFFE marks a code without a character.
    """
    if charset in _UPPER_HALVES:
        first, upper = _UPPER_HALVES[charset]
        return "".join(map(chr, range(first))) + upper.replace(" ", "\ufffe")
    codec, exceptions = _SINGLE_BYTE[charset]
    table = []
    for code in range(256):
        try:
            table.append(exceptions.get(code) or bytes([code]).decode(codec))
        except UnicodeDecodeError:
            table.append("\ufffe")
    return "".join(table)


def _big5_exceptions() -> dict[bytes, str]:
    """Return the text of each Big5 code for which Python's codec and the server differ.

    These codes are the ETEN extension, and the codes that the server reserves. The text of a reserved code is U+FFFD.
    """
    eten = {bytes([0xF9, 0xD6 + i]): character for i, character in enumerate("碁銹裏墻恒粧嫺")}
    nothing = ("a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce")
    return eten | {bytes.fromhex(code): "\ufffd" for code in nothing}


def _euc_rows(first: int) -> Iterable[tuple[int, int]]:
    return ((row, column) for row in range(first, 0xFF) for column in range(0xA1, 0xFF))


def _euc_private_use() -> dict[bytes, str]:
    """Return the text of each code for private use in the EUC charsets.

    These codes are in the rows F5 to FE, first those of 2 bytes, and then those of 3 bytes, which begin with 8F. Their
    characters are numbered consecutively from U+E000.
    """
    cells = list(_euc_rows(0xF5))
    two = {bytes([row, column]): chr(0xE000 + i) for i, (row, column) in enumerate(cells)}
    three = {bytes([0x8F, row, column]): chr(0xE000 + len(cells) + i) for i, (row, column) in enumerate(cells)}
    return two | three


def _eucjpms_exceptions() -> dict[bytes, str]:
    """Return the text of each eucjpms code that rplctl does not decode with Python's codec euc_jp.

    * The codes of JIS X 0208, with NEC's row 13, have the characters of Python's codec cp932.
    * Some codes of 3 bytes, which begin with 8F, have characters of IBM's extensions.
    * The codes for private use are those of all EUC charsets.
    """
    found = _euc_private_use()
    for row, column in _euc_rows(0xA1):
        r, c = row - 0xA1, column - 0xA1
        lead = (0x81 if r < 62 else 0xC1) + r // 2
        trail = c + 0x9F if r % 2 else c + (0x40 if c < 63 else 0x41)
        text = bytes([lead, trail]).decode("cp932", "ignore")
        if text and row < 0xF5:
            found[bytes([row, column])] = text
    codes = [(0xF3, column) for column in range(0xF3, 0xFF)] + [(0xF4, column) for column in range(0xA1, 0xFF)]
    found |= {bytes([0x8F, *code]): text for code, text in zip(codes, _IBM_EXTENSIONS, strict=True)}
    return found | {b"\x8f\xa2\xb7": "～", b"\x8f\xa2\xc3": "￤"}

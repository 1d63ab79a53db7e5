"""The character sets of a connection: one for its statements, and one for the answers and errors that it gets.

Invariant: texts are converted as MySQL and MariaDB convert them. A character that a character set lacks becomes `?` in
a name or a value. In an error, it becomes \\ with four hexadecimal digits.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.charset import CHARSETS, charset_of, decoder, is_single_byte

BINARY, UTF8MB4_COLLATION = 63, 45
_UNICODE: Final = {
    "utf8mb3": ("utf-8", 33),
    "utf16": ("utf-16-be", 54),
    "utf16le": ("utf-16-le", 56),
    "utf32": ("utf-32-be", 60),
    "ucs2": ("utf-16-be", 35),
}
_EAST_ASIAN: Final = {  # Python's codec, and the id of the default collation
    "big5": ("big5", 1), "cp932": ("cp932", 95), "eucjpms": ("euc_jp", 97), "euckr": ("cp949", 19),
    "gb18030": ("gb18030", 248), "gb2312": ("gb2312", 24), "gbk": ("gbk", 28), "sjis": ("shift_jis", 13),
    "ujis": ("euc_jp", 12),
}  # fmt: skip
_COLLATIONS: Final = {  # the default collation of each set of single bytes
    "latin1": 8, "latin2": 9, "ascii": 11, "cp1250": 26, "cp1251": 51, "cp1256": 57, "cp1257": 59, "cp850": 4,
    "cp852": 40, "cp866": 36, "dec8": 3, "greek": 25, "hebrew": 16, "hp8": 6, "keybcs2": 37, "koi8r": 7, "koi8u": 22,
    "latin5": 30, "latin7": 41, "macce": 38, "macroman": 39, "armscii8": 32, "geostd8": 92, "swe7": 10, "tis620": 18,
}  # fmt: skip
_ONE_WAY: Final = {"greek": "€₯ͺ"}  # servers read these characters in this character set, but do not write them
_NAMES: Final = {
    "latin1": "latin1_swedish_ci", "dec8": "dec8_swedish_ci", "swe7": "swe7_swedish_ci", "hp8": "hp8_english_ci",
    "tis620": "tis620_thai_ci", "big5": "big5_chinese_ci", "gbk": "gbk_chinese_ci", "gb2312": "gb2312_chinese_ci",
    "gb18030": "gb18030_chinese_ci", "sjis": "sjis_japanese_ci", "ujis": "ujis_japanese_ci",
    "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci", "euckr": "euckr_korean_ci", "binary": "binary",
}  # fmt: skip
_NOT_OF_CLIENTS: Final = frozenset({"ucs2", "utf16", "utf16le", "utf32"})  # clients cannot send statements in these
_NARROW: Final = frozenset({"utf8mb3", "ucs2"})  # these lack the characters from U+10000 on
_WIDE = re.compile("[\U00010000-\U0010ffff]")
CLIENT, CONNECTION, RESULTS = "character_set_client", "character_set_connection", "character_set_results"
COLLATION: Final = "collation_connection"


@dataclass(frozen=True, slots=True)
class ResultCharset:
    """The character set of answers, and the function that converts a text to it.

    `collation`: the id that a client gets in the description of a text column.
    """

    name: str | None  # None = answers are not converted
    collation: int
    encode: Callable[[str], bytes]

    def error(self, text: str) -> bytes:
        """Return the text of an error as bytes. Characters from U+10000 on become `?`, as on a server."""
        text = _WIDE.sub("?", text)
        if self.name in _COLLATIONS or self.name in _EAST_ASIAN:
            missing = self.encode("?")
            text = "".join(f"\\{ord(c):04X}" if c != "?" and self.encode(c) == missing else c for c in text)
        return self.encode(text)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


UTF8MB4: Final = ResultCharset("utf8mb4", UTF8MB4_COLLATION, _utf8)
_UNCONVERTED: Final = ResultCharset(None, UTF8MB4_COLLATION, _utf8)


@cache
def result_charset(name: str | None) -> ResultCharset:
    """Return the character set of answers for a name that `checked` has returned.

    None is the value NULL of character_set_results: answers are not converted.
    """
    if name is None:
        return _UNCONVERTED
    if name == "binary":
        return ResultCharset(name, BINARY, _utf8)
    if name in _UNICODE:
        codec, collation = _UNICODE[name]
        if name in _NARROW:
            return ResultCharset(name, collation, lambda text: _WIDE.sub("?", text).encode(codec, "replace"))
        return ResultCharset(name, collation, lambda text: text.encode(codec, "replace"))
    if name in _COLLATIONS:
        mapping = _mapping(name)
        return ResultCharset(name, _COLLATIONS[name], lambda text: codecs.charmap_encode(text, "replace", mapping)[0])
    if name in _EAST_ASIAN:
        return ResultCharset(name, _EAST_ASIAN[name][1], lambda text: b"".join(_character(c, name) for c in text))
    return UTF8MB4


@lru_cache(1 << 16)
def _character(character: str, charset: str) -> bytes:
    """Return the bytes of one character in an East Asian character set. Return `?` if the set lacks the character.

    Python's codec has more characters than the set of a server, so only characters that `decoder` reads back are used.
    """
    try:
        data = character.encode(_EAST_ASIAN[charset][0])
        return data if decoder(charset)(data) == character else b"?"
    except UnicodeError:
        return b"?"


@cache
def _mapping(name: str) -> dict[int, int]:
    """Return a mapping from the code point of each character to its byte, for a character set of single bytes."""
    decode = decoder(name)
    found: dict[int, int] = {}
    for code in range(256 if is_single_byte(name) else 128):
        try:
            character = decode(bytes((code,)))
        except UnicodeDecodeError:
            continue
        if character not in ("\ufffd", "\ufffe") and character not in _ONE_WAY.get(name, ""):
            found.setdefault(ord(character), code)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionCharsets:
    """The character sets of one connection, as the variables character_set_client, …_connection and …_results.

    `connection` and `collation` are only shown to the client: rplctl converts no text to them.
    """

    client: str = "utf8mb4"
    connection: str = "utf8mb4"
    collation: str = "utf8mb4_general_ci"
    results: ResultCharset = UTF8MB4

    def text(self, data: bytes) -> str:
        """Return a client's statement as text. Bytes that are not valid in its character set are read as UTF-8."""
        if self.client not in ("utf8mb4", "utf8mb3", "binary"):
            try:
                return decoder(self.client)(data)
            except UnicodeDecodeError:
                pass
        return data.decode("utf-8", "replace")

    @property
    def variables(self) -> dict[str, object]:
        """The values of the character set variables, for SELECT @@NAME."""
        results = self.results.name
        return {CLIENT: self.client, CONNECTION: self.connection, RESULTS: results, COLLATION: self.collation}

    def named(self, name: str, collation: str = "") -> ConnectionCharsets:
        """Return the character sets after SET NAMES name COLLATE collation.

        `collation`: '' if the statement has no COLLATE. Raises RplError 1115 or 1231 for the character set, and 1253 or
        1273 for the collation.
        """
        charset = _of_client(CLIENT, name)
        if collation and (of_collation := _of_collation(collation)) not in ("", charset):
            text = f"COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'"
            raise RplError(text, errno=er.COLLATION_CHARSET_MISMATCH) if of_collation else unknown_collation(collation)
        return ConnectionCharsets(
            client=charset,
            connection=charset,
            collation=collation or default_collation(charset),
            results=result_charset(charset),
        )

    def with_character_set(self, name: str) -> ConnectionCharsets:
        """Return the character sets after SET CHARACTER SET name, which changes those of statements and answers.

        Raises RplError 1115 if the character set is unknown, and 1231 if a client cannot use it.
        """
        charset = _of_client(CLIENT, name)
        return replace(ConnectionCharsets(), client=charset, results=result_charset(charset))

    def with_variable(self, variable: str, value: str | None) -> ConnectionCharsets:
        """Return the character sets after SET variable = value. None is the value NULL.

        Raises RplError 1115 or 1273 if the value is unknown, and 1231 if the variable cannot have the value.
        """
        if variable == RESULTS:
            return replace(self, results=result_charset(None if value is None else checked(value)))
        if value is None:
            raise _wrong_value(variable, "NULL")
        if variable == CLIENT:
            return replace(self, client=_of_client(variable, value))
        if variable == CONNECTION:
            charset = checked(value)
            return replace(self, connection=charset, collation=default_collation(charset))
        charset = _of_collation(value)
        return replace(self, connection=charset or self.connection, collation=value.lower())


def of_collation_id(number: int) -> ConnectionCharsets:
    """Return the character sets of a client that signs in with this id of a collation.

    For an id that no server has, return the default, utf8mb4.
    """
    charset = _of_number(number)
    return ConnectionCharsets().named(charset) if charset and charset not in _NOT_OF_CLIENTS else ConnectionCharsets()


def checked(name: str) -> str:
    """Return the name of a character set in the spelling of the servers.

    `name`: in any case, or the number of a collation. Raises RplError 1115 if no server has the character set.
    """
    charset = {"utf8": "utf8mb3", "default": "utf8mb4"}.get(name.lower(), name.lower())
    if charset.isdecimal() and len(charset) < 5:
        charset = _of_number(int(charset))
    if charset not in (*CHARSETS, "binary"):
        raise RplError(f"Unknown character set: '{name}'", errno=er.UNKNOWN_CHARACTER_SET)
    return charset


def _of_number(collation_id: int) -> str:
    """Return the character set of a collation. Return '' if no server has the collation."""
    try:
        return charset_of(collation_id)
    except BinlogFormatError:
        return ""


def default_collation(charset: str) -> str:
    return _NAMES.get(charset, f"{charset}_general_ci")


def unknown_collation(name: str) -> RplError:
    return RplError(f"Unknown collation: '{name}'", errno=er.UNKNOWN_COLLATION)


def _of_client(variable: str, name: str) -> str:
    charset = checked(name)
    if charset in _NOT_OF_CLIENTS:
        raise _wrong_value(variable, charset)
    return charset


def _wrong_value(variable: str, value: str) -> RplError:
    text = f"Variable '{variable}' can't be set to the value of '{value}'"
    return RplError(text, errno=er.WRONG_VALUE_FOR_VAR)


def _of_collation(name: str) -> str:
    """Return the character set of a collation.

    Return '' for a collation of MariaDB that belongs to several character sets. Raises RplError 1273 if the name does
    not begin with a character set.
    """
    lower = name.lower()
    if lower.startswith("uca1400_"):
        return ""
    prefix = lower.partition("_")[0]
    charset = {"utf8": "utf8mb3"}.get(prefix, prefix)
    if charset not in (*CHARSETS, "binary"):
        raise unknown_collation(name)
    return charset

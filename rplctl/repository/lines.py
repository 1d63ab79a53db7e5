"""The bytes of master.info and relay-log.info: one value per line, then a section of `key=value` lines (WL#2775).

    master.info                                   relay-log.info
    1        count of lines, itself included: 33  1       count of lines, itself not included: 14
    2..33    MASTER_INFO_LINES (fields.py)        2..15   RELAY_LOG_INFO_LINES
    34..36   using_gtid= do_domain_ids=           16..17  rplctl_master_id= rplctl_gtid_executed=
             ignore_domain_ids=  (MariaDB)
    then     rplctl_master_id= …                  then    rplctl_…= for an empty, not NULL, value
                                                  then    rplctl_left_at=RELAY:POS SOURCE:POS, in mode marker only
    last     END_MARKER                           then    END_MARKER
                                                  last    prepared: … (PREPARED), in two-phase commit only

The line `prepared: pos456 Xid<xid> relay=./relay-bin.000001 source=binlog.000003:12456 gtid=…` (WL#3970) comes after
END_MARKER, because servers read no line there. Blanks and other special characters in names are percent-encoded.

rplctl also reads the formats of other servers, which differ in the count in line 1:
    server               master.info                  relay-log.info
    MySQL before 4.1.1   7 lines without a count      4 lines without a count
    MySQL 5.6            23                           7
    MySQL 5.7            25                           7, because the line with the channel's name is not counted
    MySQL 8.0.x          26 to 33                     up to 14
    MariaDB 10.0 to 11   33, of which 22 have values  5
    MariaDB 12           33, of which 22 have values  6, the last of them empty

In master.info of MariaDB, the keys may be in any order after the counted lines.

Line 23 distinguishes the vendors: MySQL writes 0 or 1, and MariaDB writes an empty line. Servers rewrite these files
from the start and never truncate them. So the lines after the counted ones may be the tail of an older file. If a line
there begins rplctl's section, all lines of the section up to END_MARKER must follow. An incomplete section is an error:
a default instead of a lost using_gtid or GTID set would give another position.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

from rplctl.errors import UsageError
from rplctl.info import MasterInfo, PreparedPosition, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository.fields import (
    MARIADB_KEYS,
    MASTER_INFO_KEYS,
    MASTER_INFO_LINES,
    RELAY_LOG_INFO_KEYS,
    RELAY_LOG_INFO_LINES,
    Field,
    FieldError,
    NullableText,
    Text,
)

END_MARKER = "END_MARKER"
_PREPARED = re.compile(r"prepared: pos([0-9]{1,20}) Xid(\S+) relay=\./(\S+) source=(\S+) gtid=(\S*)")
_FIRST_COUNTED_MASTER_INFO = 14  # the smallest count; any other line 1 is the log name of the form with 7 lines
_FIRST_COUNTED_RELAY_LOG_INFO = 5
_SHARED_LINES = 22  # the first lines of master.info, which MySQL and MariaDB write alike
_OLD_MASTER_INFO = MASTER_INFO_LINES[:7]
_OLD_RELAY_LOG_INFO = RELAY_LOG_INFO_LINES[:4]
_LEFT_AT = Field("Left_at", Text())
_BY_NAME = {field.name: field for field in MASTER_INFO_LINES}
# MariaDB 12 adds these keys. A key without `=` has the value DEFAULT.
_MARIADB_12_KEYS = {
    "connect_retry": _BY_NAME["connect_retry"],
    "ssl": _BY_NAME["enabled_ssl"],
    **{name: _BY_NAME[name] for name in ("ssl_ca", "ssl_capath", "ssl_cert", "ssl_cipher", "ssl_key", "ssl_crl")},
    "ssl_crlpath": _BY_NAME["ssl_crlpath"],
    "ssl_verify_server_cert": _BY_NAME["ssl_verify_server_cert"],
    "heartbeat_period": _BY_NAME["heartbeat"],
    "retry_count": _BY_NAME["retry_count"],
}


def format_master_info(info: MasterInfo) -> bytes:
    """Return the bytes of master.info: the 33 lines of MySQL 8, then MariaDB's keys and rplctl's keys.

    Raises FieldError if a line cannot represent a value.
    """
    lines = [str(len(MASTER_INFO_LINES) + 1), *_value_lines(info, MASTER_INFO_LINES)]
    lines += [f"{f.name}={f.notation.to_line(getattr(info, f.name))}" for f in MARIADB_KEYS]
    lines += _key_lines(info, MASTER_INFO_KEYS, MASTER_INFO_LINES)
    return _join(lines)


def format_relay_log_info(info: RelayLogInfo) -> bytes:
    """Return the bytes of relay-log.info: the count, the 14 lines of MySQL 8, then rplctl's keys.

    Raises FieldError if a line cannot represent a value.
    """
    lines = [str(len(RELAY_LOG_INFO_LINES)), *_value_lines(info, RELAY_LOG_INFO_LINES)]
    lines += _key_lines(info, RELAY_LOG_INFO_KEYS, RELAY_LOG_INFO_LINES)
    if info.left_at:
        lines.append(f"{_LEFT_AT.key}={_LEFT_AT.notation.to_line(info.left_at)}")
    return _join(lines) + (_prepared_line(info.prepared) if info.prepared else b"")


def parse_master_info(data: bytes) -> MasterInfo:
    """Return the MasterInfo in a master.info that rplctl or any server wrote.

    Raises FieldError, with the line or the key, if the text is invalid.
    """
    lines = _split(data)
    count = _count(lines, _FIRST_COUNTED_MASTER_INFO)
    if count is None:
        return MasterInfo(**_read_lines(lines, _OLD_MASTER_INFO, first_line=1))
    _expect_lines(lines, min(count, _SHARED_LINES + 1))
    if count <= _SHARED_LINES or lines[_SHARED_LINES]:
        _expect_lines(lines, count)
        values = _read_lines(lines, MASTER_INFO_LINES[: count - 1], first_line=2)
        if count == len(MASTER_INFO_LINES) + 1:
            values |= _read_section(lines[count:], (*MARIADB_KEYS, *MASTER_INFO_KEYS), MASTER_INFO_LINES)
        return MasterInfo(**values)
    values = _read_lines(lines, MASTER_INFO_LINES[: _SHARED_LINES - 1], first_line=2)
    if values["retry_count"] == 0:  # MariaDB before 12 writes 0 for its default, while 0 means "for ever" in MySQL
        del values["retry_count"]
    return MasterInfo(**_apply_mariadb_keys(values, lines[_SHARED_LINES:]))


def parse_relay_log_info(data: bytes) -> RelayLogInfo:
    """Return the RelayLogInfo in a relay-log.info that rplctl or any server wrote.

    Raises FieldError, with the line or the key, if the text is invalid.
    """
    lines = _split(data)
    count = _count(lines, _FIRST_COUNTED_RELAY_LOG_INFO)
    if count is None:
        return RelayLogInfo(**_read_lines(lines, _OLD_RELAY_LOG_INFO, first_line=1))
    _expect_lines(lines, count + 1)
    if count == 6 and lines[6] == "":  # MariaDB 12 writes one reserved, empty line here
        lines[6] = "0"
    values = _read_lines(lines, RELAY_LOG_INFO_LINES[:count], first_line=2)
    if count == len(RELAY_LOG_INFO_LINES):
        values |= _read_section(lines[count + 1 :], RELAY_LOG_INFO_KEYS, RELAY_LOG_INFO_LINES)
        keys = lines[count + 1 :]
        section = keys[: keys.index(END_MARKER)] if END_MARKER in keys else []  # older releases wrote no END_MARKER
        left = (line.partition("=")[2] for line in section if line.startswith(f"{_LEFT_AT.key}="))
        values["left_at"] = next(left, "")
        values["prepared"] = _read_prepared(lines)
    return RelayLogInfo(**values)


def _prepared_line(prepared: PreparedPosition) -> bytes:
    names = (f"./{prepared.relay.log_name}", str(prepared.source), prepared.gtid_executed)
    relay, source, gtids = (quote(name, safe="/:,-.@") for name in names)
    where = f"relay={relay} source={source} gtid={gtids}"
    return f"prepared: pos{prepared.relay.log_pos} Xid{prepared.xid} {where}\n".encode()


def _read_prepared(lines: list[str]) -> PreparedPosition | None:
    """Return the prepared position in the last line, directly after END_MARKER, or None if there is no such line.

    Raises FieldError if the line is incomplete, because the next start would otherwise lose the decision about a
    transaction.
    """
    begun = [number for number, line in enumerate(lines, 1) if line.startswith("prepared:")]
    if not begun:
        return None
    found = _PREPARED.fullmatch(lines[-1]) if lines[-2] == END_MARKER else None
    try:
        if found:
            relay = RelayLogPosition(unquote(found[3]), int(found[1]))
            return PreparedPosition(
                xid=found[2],
                relay=relay,
                source=BinlogPosition.parse(unquote(found[4])),
                gtid_executed=unquote(found[5]),
            )
    except UsageError:
        pass
    raise FieldError(f"line {begun[0]} (prepared): '{lines[begun[0] - 1][:80]}' is not a prepared position")


def _value_lines(info: object, fields: Sequence[Field]) -> list[str]:
    return [field.notation.to_line(getattr(info, field.name)) for field in fields]


def _key_lines(info: object, keys: Sequence[Field], lines: Sequence[Field]) -> list[str]:
    """Return the lines of rplctl's section: one for each key, and one for each nullable field whose value is ''.

    The fields with '' need a line, because the value lines cannot distinguish '' from NULL.
    """
    section = [f"{field.key}={field.notation.to_line(getattr(info, field.name))}" for field in keys]
    empty = [field for field in lines if isinstance(field.notation, NullableText) and getattr(info, field.name) == ""]
    return section + [f"{field.key}=" for field in empty]


def _join(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in (*lines, END_MARKER)).encode()


def _split(data: bytes) -> list[str]:
    """Return the lines without their newlines.

    Raises FieldError if the bytes are not UTF-8, have a NUL, or end inside a line.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FieldError(f"byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise FieldError(f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} holds a NUL")
    *lines, rest = text.split("\n")
    if rest and rest != END_MARKER:
        raise FieldError(f"the file ends inside line {len(lines) + 1}")
    return [*lines, rest] if rest else lines


def _count(lines: list[str], smallest: int) -> int | None:
    """Return the number of lines that line 1 announces, or None for the format of MySQL before 4.1.1.

    In this old format, line 1 is a log name, and there is no END_MARKER. `smallest`: a smaller number in line 1 is not
    a count. Raises FieldError if the file is empty, or if line 1 is not a count although there is an END_MARKER.
    """
    if not lines:
        raise FieldError("the file is empty")
    first = lines[0].strip()
    if first.isascii() and first.isdecimal() and smallest <= int(first[:9]):
        return int(first)
    if END_MARKER in lines:
        raise FieldError(f"line 1: '{first[:40]}' is not the count of the lines")
    return None


def _expect_lines(lines: list[str], wanted: int) -> None:
    if len(lines) < wanted:
        raise FieldError(f"the file ends after line {len(lines)}, but the first line announces {wanted} lines")


def _read_lines(lines: list[str], fields: Sequence[Field], *, first_line: int) -> dict[str, Any]:
    _expect_lines(lines, first_line - 1 + len(fields))
    values: dict[str, Any] = {}
    for number, field in enumerate(fields, first_line):
        try:
            values[field.name] = field.notation.from_line(lines[number - 1])
        except FieldError as error:
            raise FieldError(f"line {number} ({field.column}): {error}") from None
    return values


def _read_section(lines: list[str], keys: Sequence[Field], fields: Sequence[Field]) -> dict[str, Any]:
    """Return the values of rplctl's section, which begins directly after the counted lines.

    `lines`: the lines after the counted ones. Return {} if these lines do not begin the section, because they are then
    the tail of an older file. Raises FieldError if the section begins but is incomplete.
    """
    written = [field.name if field in MARIADB_KEYS else field.key for field in keys]
    found = [line.partition("=")[0] for line in lines[: len(keys)]]
    if found[:1] != written[:1]:
        return {}
    if END_MARKER not in lines or found != written:
        raise FieldError(f"the section from {written[0]}= to {END_MARKER} is incomplete")
    values = {}
    for key, field, line in zip(written, keys, lines, strict=False):
        values[field.name] = _value(key, field, line.partition("=")[2])
    rest = set(lines[len(keys) : lines.index(END_MARKER)])
    empty = [f for f in fields if isinstance(f.notation, NullableText) and f"{f.key}=" in rest]
    return values | {field.name: "" for field in empty}


def _apply_mariadb_keys(values: dict[str, Any], lines: list[str]) -> dict[str, Any]:
    """Return `values`, updated from the `key=value` lines up to END_MARKER.

    A line with only a key restores the default of the key. If a key has several lines, only the first is used. Unknown
    keys and blank lines are ignored.
    """
    known = {field.name: field for field in MARIADB_KEYS} | _MARIADB_12_KEYS
    seen: set[str] = set()
    for line in lines:
        key, equals, text = line.partition("=")
        if key == END_MARKER:
            break
        if key not in known or key in seen:
            continue
        seen.add(key)
        if equals:
            values[known[key].name] = _value(key, known[key], text)
        else:
            values.pop(known[key].name, None)
    return values


def _value(key: str, field: Field, text: str) -> Any:
    try:
        return field.notation.from_line(text)
    except FieldError as error:
        raise FieldError(f"key {key}: {error}") from None

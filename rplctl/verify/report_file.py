"""Writes and reads the report of a verify, which `rplctl repair` and people use.

The report has lines of JSON:

    header         the time, the source and its position
    differences    one line for each key whose rows differ
    totals         one line for each table
    last line      marks the report as complete, and has the offset of the totals

Invariant: a new report replaces the old one atomically. It has the mode 0600, because keys are data. A reader refuses
an incomplete report. The differences may be gigabytes, so they are read on demand. A key's values are lossless, and
together with the column's type, they can be used in a WHERE on both sides. Text is stored as text, bytes as
{"hex": "…"}, numbers as decimal strings, and dates and times as text (TIMESTAMP in UTC).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from rplctl.durable import replacing, write_all
from rplctl.errors import RplError, UsageError
from rplctl.plain_file import open_plain, parsed_json

FORMAT: Final = 1
Kind = Literal["missing", "extra", "different"]
KeyValue = str | dict[str, str]
T = TypeVar("T")
_BUFFER_BYTES: Final = 1 << 20
_LAST_BYTES: Final = 1 << 10  # bytes at the end of the file, which include the last line


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header of a report: when and with which source the verify ran.

    `time`: the start of the verify, in seconds since 1970. `position`, `gtids`: the end of the source's log at that
    time. `server_id`, `uuid`: the source's (uuid is '' for MariaDB). `tables`: the compared tables, as `db.table` on
    the target. `verified`: the start of the last verify that compared all tables of the channel, in seconds since 1970;
    0.0 if there was none.
    """

    channel: str
    time: float
    server_id: int
    uuid: str
    position: str
    gtids: str
    tables: tuple[str, ...]
    verified: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One key whose rows differ between source and target, with the names that the target has.

    `kind`: `missing` if only the source has the row, `extra` if only the target has it, else `different`. `columns`:
    the columns with different values.
    """

    database: str
    table: str
    kind: Kind
    key: Mapping[str, KeyValue]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The result of the comparison of one table, in numbers of rows.

    `rows`: the rows on the source. `in_motion`: the keys that changed during each attempt to compare them.
    `not_comparable`: the reason why the table, or a part of it, was not compared; '' if all was compared.
    `drift`: statements that give the target the source's definition, or differences that no statement describes.
    `ignored`: the columns that were not compared (Pair.ignored).
    """

    database: str
    table: str
    rows: int = 0
    equal: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    in_motion: int = 0
    not_comparable: str = ""
    drift: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def differences(self) -> int:
        return self.missing + self.extra + self.different


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """A complete report. The header and the totals are in memory, and the differences stay in the file."""

    path: Path
    header: Header
    totals: tuple[Totals, ...]

    def differences(self) -> Iterator[Difference]:
        """Yield the differences of all tables, which are read from the file one after another."""
        known = {(found.database, found.table) for found in self.totals}
        with os.fdopen(open_plain(self.path), "rb") as file:
            file.readline()
            for text in file:
                record = _record(self.path, text)
                if "kind" not in record:
                    return
                try:
                    found = of_record(Difference, record)
                except TypeError as error:
                    raise _unfit(self.path, "is not a report of rplctl verify") from error
                if (found.database, found.table) not in known:
                    raise _unfit(self.path, "is not a report of rplctl verify")
                yield found


def first_differences(report: VerifyReport, count: int) -> Iterator[str]:
    """Yield the first differences of each table as text, at most `count` for each."""
    left = {(table.database, table.table): min(count, table.differences) for table in report.totals}
    differences = report.differences()
    while any(left.values()) and (found := next(differences, None)):
        name = found.database, found.table
        if left[name] > 0:
            left[name] -= 1
            key = ", ".join(
                f"{column}={value['hex'] if isinstance(value, dict) else value}" for column, value in found.key.items()
            )
            yield f"{'.'.join(name)}: {found.kind} {key}{' in ' + ', '.join(found.columns) if found.columns else ''}"


def write_report(path: Path, header: Header, differences: Iterable[Difference], totals: Sequence[Totals]) -> None:
    """Write a complete report to `path`, in place of an older one. Raises OSError if the file cannot be written."""
    with replacing(path) as descriptor:
        held, written = bytearray(line({"format": FORMAT, **asdict(header)})), 0
        for difference in differences:
            held += line(asdict(difference))
            if len(held) > _BUFFER_BYTES:
                write_all(descriptor, bytes(held))
                written += len(held)
                held.clear()
        last = {"whole": True, "differences": sum(table.differences for table in totals), "totals": written + len(held)}
        held += b"".join(line(asdict(table)) for table in totals) + line(last)
        write_all(descriptor, bytes(held))


def read_report(path: Path) -> VerifyReport:
    """Return the report in the file `path`, after reading its header and totals. The differences stay in the file.

    Raises UsageError if the file is not a report, has another format, or is incomplete. Raises OSError if the file
    cannot be read.
    """
    try:
        return _read(path)
    except (TypeError, LookupError, ValueError) as error:  # a key or a line of a report is missing or changed
        raise _unfit(path, "is not a report of rplctl verify") from error


def _read(path: Path) -> VerifyReport:
    with os.fdopen(open_plain(path), "rb") as file:
        head = _record(path, file.readline())
        if head.pop("format", None) != FORMAT:
            raise _unfit(path, f"is not a report of rplctl verify in format {FORMAT}")
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
        last = _record(path, file.read().splitlines()[-1])
        if "whole" not in last:
            raise _unfit(path, "is not complete")
        file.seek(last["totals"])
        *totals, _ = (_record(path, text) for text in file)
    return VerifyReport(path, of_record(Header, head), tuple(of_record(Totals, one) for one in totals))


def last_verified(path: Path) -> float:
    """Return the start of the last verify that compared all tables, in seconds since 1970, from this report.

    The result is 0.0 if the report is missing or cannot be read.
    """
    try:
        return read_report(path).header.verified
    except (OSError, RplError):
        return 0.0


def line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def of_record(kind: Callable[..., T], record: Mapping[str, Any]) -> T:
    """Return an object of the dataclass `kind` from its JSON form, in which tuples have become lists.

    Raises TypeError if the record has other fields than `kind`, or values of other types.
    """
    hints = _hints(kind)
    if odd := [name for name, value in record.items() if name in hints and not _fits(value, hints[name])]:
        raise TypeError(f"{odd[0]} has another type")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in record.items()})


_hints = cache(get_type_hints)


def _fits(value: object, hint: Any) -> bool:
    """True if the JSON value has the type of a field: a simple type, a tuple of texts, a key, or a word."""
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(
            isinstance(one, str) or (isinstance(one, dict) and [*one] == ["hex"] and isinstance(one["hex"], str))
            for one in value.values()
        )
    return type(value) is hint or (hint is float and type(value) is int)


def _record(path: Path, text: bytes) -> dict[str, Any]:
    try:
        record = parsed_json(text)
    except ValueError as error:
        raise _unfit(path, "is not complete") from error
    if not isinstance(record, dict):
        raise _unfit(path, "is not a report of rplctl verify")
    return record


def _unfit(path: Path, what: str) -> UsageError:
    return UsageError(f"{path} {what}", hint="to write a report, run: rplctl verify --report FILE")

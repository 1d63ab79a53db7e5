"""The report of a verify, which `rplctl repair` and people read.

It has JSON lines: a header, a line for each differing key, the totals of each table, and a last line that marks the
report as complete and has the offset of the totals. Invariant: a report replaces its file atomically, with mode 0600
because keys are data, and a reader refuses an incomplete report. The differences, which may be gigabytes, are read on
demand. A key's values are lossless and, with the column's type, usable in a WHERE on either side: text as text, bytes
as {"hex": "…"}, numbers as decimal strings, dates and times as text (TIMESTAMP in UTC).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from rplctl.durable import replacing, write_all
from rplctl.errors import UsageError

FORMAT: Final = 1
Kind = Literal["missing", "extra", "different"]
KeyValue = str | dict[str, str]
T = TypeVar("T")
_BUFFER_BYTES: Final = 1 << 20
_LAST_BYTES: Final = 1 << 10  # bytes at the end of the file, which include the last line


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header of a report.

    `time`: the start of the verify, in seconds since 1970. `position`, `gtids`: the end of the source's log at that
    time.
    `server_id`, `uuid`: the source's (uuid is '' for MariaDB). `tables`: the target's names, `db.table`.
    `verified`: the start of the last verify that compared all tables of the channel; 0.0 if there was none.
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
    """One key whose rows differ, with the names of its table and columns on the target.

    `kind`: `missing` or `extra` on the target, or `different` in `columns`.
    """

    database: str
    table: str
    kind: Kind
    key: Mapping[str, KeyValue]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The totals of one table. `rows`: the number of rows on the source. `in_motion`: the number of keys that changed
    during each attempt to compare them.

    `not_comparable`: the reason why the table, or a part of it, was not compared; '' if all was compared.
    `drift`: statements that give the target the source's definition, or differences that no statement describes.
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

    @property
    def differences(self) -> int:
        return self.missing + self.extra + self.different


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The content of a complete report."""

    path: Path
    header: Header
    totals: tuple[Totals, ...]

    def differences(self) -> Iterator[Difference]:
        """Yield the differences from the file, in the order of the tables."""
        with self.path.open("rb") as file:
            file.readline()
            for text in file:
                record = _record(self.path, text)
                if "kind" not in record:
                    return
                yield of_record(Difference, record)


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
    """Write a report into a new file. Raises OSError if the file cannot be written."""
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
    """Return the report; its differences stay in the file.

    Raises UsageError for a file that is not a report, is of a later format, or is incomplete, and OSError if the file
    cannot be read.
    """
    try:
        return _read(path)
    except (TypeError, LookupError) as error:  # a key or a line of a report is missing
        raise _unfit(path, "is not a report of rplctl verify") from error


def _read(path: Path) -> VerifyReport:
    with path.open("rb") as file:
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
    """Return the time of the last verify that compared all tables, from this report; 0.0 without a readable report."""
    try:
        return read_report(path).header.verified
    except (OSError, UsageError):
        return 0.0


def line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def of_record(kind: Callable[..., T], record: Mapping[str, Any]) -> T:
    """Return an object of `kind` from a record that `asdict` made, with tuples for its lists. Raises TypeError for any
    other record.
    """
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in record.items()})


def _record(path: Path, text: bytes) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except ValueError as error:
        raise _unfit(path, "is not complete") from error
    if not isinstance(record, dict):
        raise _unfit(path, "is not a report of rplctl verify")
    return record


def _unfit(path: Path, what: str) -> UsageError:
    return UsageError(f"{path} {what}", hint="to write a report, run: rplctl verify --report FILE")

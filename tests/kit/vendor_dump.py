"""What `mariadb-binlog -vv` and `mysqlbinlog -vv` print of a log file, taken apart: events, sessions, rows.

The text is kept as bytes: values come as the tool wrote them (`tests/kit/vendor_values.py` prints ours the same way).
"""

from __future__ import annotations

import calendar
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.kit.fetch_mariadb import mariadb_programs
from tests.kit.fetch_mysql import mysql_programs
from tests.kit.private_server import CACHE, ServerUnavailable

_HEADER = re.compile(
    rb"#(\d\d)(\d\d)(\d\d) +(\d+):(\d\d):(\d\d) server id (\d+)  end_log_pos (\d+)(?: CRC32 0x([0-9a-f]{8}))? ?\t(.*)"
)
_POSITION = re.compile(rb"# at (\d+)$")
_ROW = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) (`.*`)$")
_CELL = re.compile(rb"###   @(\d+)=(.*)$", re.DOTALL)
_META = re.compile(rb"\s*/\* ([A-Z/]+)(\([^()]*\))?(?: COMPRESSED)? meta=(\d+) nullable=\d is_null=(\d) \*/$")
_UNKNOWN = b"!! Don't know how to handle column"


@dataclass(slots=True)
class DumpedEvent:
    timestamp: int
    server_id: int
    end_log_pos: int
    crc: str  # '' without checksums
    text: bytes  # of the header line, behind the tab
    body: list[bytes] = field(default_factory=list)
    in_payload: bool = False

    @property
    def statements(self) -> list[bytes]:
        """What the client would be sent: the parts between the delimiters."""
        return [part.removeprefix(b"\n") for part in b"\n".join(self.body).split(b"/*!*/;")][:-1]


@dataclass(slots=True)
class DumpedRow:
    """Cells by column number from 0: (type word, printed value without the comment); None where the tool gave up."""

    kind: str
    table: bytes
    before: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    after: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    gave_up: bool = False


@dataclass(slots=True)
class Dump:
    events: list[DumpedEvent]
    rows: list[DumpedRow]


def tool_for(vendor: str) -> list[str]:
    """Command prefix of the dump tool of `mariadb` (the installed one), `mariadb118` or `mysql`.

    Raises ServerUnavailable.
    """
    return {"mariadb": _mariadb, "mariadb118": _mariadb_118, "mysql": _mysql}[vendor]()


@cache
def _mariadb() -> list[str]:
    found = shutil.which("mariadb-binlog")
    if found is None:
        raise ServerUnavailable("mariadb-binlog is not installed (apt-get install mariadb-client)")
    return [found, "--no-defaults"]


@cache
def _mariadb_118() -> list[str]:
    return mariadb_programs(CACHE, "11.8")["mariadb-binlog"]


@cache
def _mysql() -> list[str]:
    return mysql_programs(CACHE)["mysqlbinlog"]


def run_tool(vendor: str, path: Path, *options: str, timeout: float = 60) -> subprocess.CompletedProcess[bytes]:
    """Times are printed in UTC. Raises TimeoutExpired."""
    command = [*tool_for(vendor), *options, str(path)]
    return subprocess.run(command, capture_output=True, timeout=timeout, env={**os.environ, "TZ": "UTC"})


def dump(vendor: str, path: Path, *, stops: bool = False) -> Dump:
    """What the tool prints; `stops`: it is known to stop before the end. Raises AssertionError when that is not so."""
    done = run_tool(vendor, path, "-vv", "--base64-output=DECODE-ROWS", "--verify-binlog-checksum")
    assert (done.returncode == 0) is not stops, done.stderr.decode(errors="replace")
    return parse(done.stdout)


def parse(text: bytes) -> Dump:
    events: list[DumpedEvent] = []
    rows: list[bytes] = []
    in_payload = False
    for line in text.split(b"\n"):
        if line.startswith(b"###"):
            rows.append(line)
        elif line.startswith(b"#") and (header := _HEADER.match(line)):
            year, month, day, hour, minute, second, server_id, end = (int(part) for part in header.groups()[:8])
            full_year = year + (1900 if year >= 70 else 2000)
            stamp = calendar.timegm((full_year, month, day, hour, minute, second))
            crc = (header[9] or b"").decode()
            events.append(DumpedEvent(stamp, server_id, end, crc, header[10], in_payload=in_payload))
        elif line.startswith(b"# ") and (line.startswith((b"# Start of compr", b"# End of compr"))):
            in_payload = line.startswith(b"# Start")
        elif events and not (line.startswith(b"# at ") and _POSITION.match(line)):
            events[-1].body.append(line)
    return Dump(events, list(_rows(rows)))


def _rows(lines: list[bytes]) -> Iterator[DumpedRow]:
    row = DumpedRow("", b"")
    cells = row.after
    for line in _joined(lines):
        if match := _ROW.match(line):
            if row.kind:
                yield row
            row = DumpedRow(match[1].split()[0].decode().lower(), match[2])
        elif line == b"### WHERE":
            cells = row.before
        elif line == b"### SET":
            cells = row.after
        elif match := _CELL.match(line):
            if match[2].startswith(_UNKNOWN):
                row.gave_up = True
                continue
            meta = _META.search(match[2])
            assert meta, line[:300]
            value = match[2][: meta.start()] if meta[4] == b"0" else b"NULL"
            if value.startswith(b"b'"):  # BIT, SET: the number, whatever the column's width
                value = value[2:-1].lstrip(b"0") or b"0"
            cells[int(match[1]) - 1] = (meta[1].decode(), value)
        elif line.startswith(b"### Row event for unknown table"):
            raise AssertionError(line.decode())
    if row.kind:
        yield row


def _joined(lines: list[bytes]) -> Iterator[bytes]:
    """A value of several lines (JSON_INSERT(⏎ JSON_REPLACE(…) in one."""
    whole = b""
    for line in lines:
        if line.startswith(b"###      "):
            whole += line[9:] if whole.endswith(b"(") else line[8:]
            continue
        if whole:
            yield whole
        whole = line
    if whole:
        yield whole

"""The table of event types: what is derived from a row, and that one row is enough for a new type."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rplctl
from rplctl.event import event_classes
from rplctl.event.types import (
    CLASS_TABLE,
    COMPRESSED_ROWS,
    GTIDS,
    LOG_EVENTS,
    PLAIN_ROWS,
    ROWS_EVENTS,
    STATEMENT_EVENTS,
    EventType,
    event_name,
)

LAST_ROW = '    GTID_TAGGED = 42, "Gtid_tagged", c.GTID\n'
TOY_ROW = '    TOY = 50, "Toy", c.NEUTRAL\n'
READS_A_TOY = """
from pathlib import Path
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.events import Ignorable, parse_event
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.event.groups import GroupKind, scan_groups
from rplctl.event.header import BINLOG_MAGIC, HEADER_LENGTH, EventHeader, build_header
from rplctl.position import BinlogPosition
from rplctl.relay_log.event_list import events_of

description = build_format_description(1, 7, 1, "8.0.40", relay_log=False)
parts = [BINLOG_MAGIC, description]
for code, body in ((2, bytes(8) + b"\\x01" + bytes(4) + b"d\\0BEGIN"), (50, b"what it holds"), (16, bytes(8))):
    end = sum(map(len, parts)) + HEADER_LENGTH + len(body) + 4
    parts.append(append_checksum(build_header(EventHeader(7, code, 1, HEADER_LENGTH + len(body) + 4, end, 0)) + body))
assert parse_event(parts[3], parse_format_description(description)) == Ignorable(50)
groups = scan_groups(b"".join(parts), 4, BinlogPosition("binlog.000001", 4), 1 << 20)
print([GroupKind(kind).name for kind in groups.kind])
file = Path("toy.000001")
file.write_bytes(b"".join(parts))
print([line.Event_type for line in events_of(file)])
"""


def test_every_list_of_types_comes_from_the_table() -> None:
    assert {EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID} == GTIDS
    assert PLAIN_ROWS == {23, 24, 25, 30, 31, 32, 39}
    assert {int(a): int(b) for a, b in COMPRESSED_ROWS.items()} == {
        166: 23,
        167: 24,
        168: 25,
        169: 30,
        170: 31,
        171: 32,
    }
    assert ROWS_EVENTS == PLAIN_ROWS | set(COMPRESSED_ROWS)
    assert STATEMENT_EVENTS == {5, 9, 11, 13, 14, 17, 18}
    assert LOG_EVENTS == {3, 4, 15, 27, 35, 41, 161, 163}


def test_a_code_without_a_row_is_unknown_and_says_its_number() -> None:
    for code in sorted(set(range(256)) - {int(event_type) for event_type in EventType}):
        assert CLASS_TABLE[code] == event_classes.UNKNOWN
        assert event_name(code) == f"type {code}"


def test_a_type_of_which_the_list_of_events_has_a_name_is_of_a_class() -> None:
    assert [t.name for t in EventType if t.shown and t.event_class == event_classes.UNKNOWN] == []


@pytest.mark.slow
def test_a_new_type_is_one_row(tmp_path: Path) -> None:
    """The group scanner, the reader of events and SHOW RELAYLOG EVENTS know it then."""
    package = tmp_path / "rplctl"
    shutil.copytree(Path(rplctl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    table = package / "event" / "types.py"
    rows = table.read_text()
    assert rows.count(LAST_ROW) == 1
    table.write_text(rows.replace(LAST_ROW, LAST_ROW + TOY_ROW))
    done = subprocess.run(
        [sys.executable, "-c", READS_A_TOY],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        ["['CONTROL', 'ROWS']", "['Format_desc', 'Query', 'Toy', 'Xid']"],
    )

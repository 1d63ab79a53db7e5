"""GTID mode over a folder: the right log to begin with, and no transaction twice."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from rplctl.errors import SourceError
from rplctl.event.format_description import parse_format_description
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from rplctl.source import DumpStart
from rplctl.source.base import EventBatch
from rplctl.source.binlog_folder import FolderStream
from rplctl.source.gtid_filter import GtidFilter
from tests.source.binlogs import FIRST_EVENT, description, event, mariadb_gtid, query, rotate, statements, write_log
from tests.source.test_binlog_folder import read_all

UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"
NOWHERE = BinlogPosition("", 4)


def mysql_logs(folder: Path) -> list[bytes]:
    """Two logs of three statements each."""
    transactions: list[bytes] = []
    for log in range(2):
        before = event(EventType.PREVIOUS_GTIDS, MysqlGtidSet.parse(f"{UUID}:1-3" if log else "").encode(), 0)
        made = statements(3, start=FIRST_EVENT, first=1 + 3 * log)
        end = [] if log else [rotate("bin.000002", 0)]
        write_log(folder / f"bin.00000{log + 1}", [before, *made, *end])
        transactions += made
    return transactions


@pytest.mark.parametrize(
    ("have", "missing", "first_log"),
    [("", range(6), 1), ("1-2", range(2, 6), 1), ("1-3", range(3, 6), 2), ("1-2:5", (2, 3, 5), 1), ("1-6", (), 2)],
)
def test_mysql_sends_what_is_not_in_the_set(tmp_path: Path, have: str, missing: range, first_log: int) -> None:
    made = mysql_logs(tmp_path)
    have_set = MysqlGtidSet.parse(f"{UUID}:{have}" if have else "")
    sent = read_all(FolderStream(tmp_path, tmp_path, DumpStart(NOWHERE, mysql_gtid_set=have_set)))
    assert sent[0][27:-4] == f"bin.00000{first_log}".encode()
    assert [e for e in sent if e in made] == [e for n in missing for e in made[2 * n : 2 * n + 2]]


def test_what_was_purged_from_the_folder_is_1236(tmp_path: Path) -> None:
    mysql_logs(tmp_path)
    (tmp_path / "bin.000001").unlink()
    with pytest.raises(SourceError, match="required binlog files have been purged") as caught:
        read_all(FolderStream(tmp_path, tmp_path, DumpStart(NOWHERE, mysql_gtid_set=MysqlGtidSet())))
    assert caught.value.errno == 1236


def test_mariadb_sends_what_is_behind_the_position_of_each_domain(tmp_path: Path) -> None:
    groups = [(mariadb_gtid(d, n, 0), query(f"{d}-{n}", 0)) for d, n in ((0, 1), (1, 1), (0, 2), (1, 2))]
    write_log(
        tmp_path / "bin.000001", [event(EventType.GTID_LIST, struct.pack("<I", 0), 0), *(e for g in groups for e in g)]
    )
    sent = read_all(FolderStream(tmp_path, tmp_path, DumpStart(NOWHERE, mariadb_gtid="0-4711-1,1-4711-2")))
    assert [e for e in sent if e[4] in (2, 162)] == list(groups[2])


def test_logs_without_gtids_cannot_be_asked_by_gtid(tmp_path: Path) -> None:
    write_log(tmp_path / "bin.000001", [query("a", 0)])
    with pytest.raises(SourceError, match="has no list of the GTIDs"):
        read_all(FolderStream(tmp_path, tmp_path, DumpStart(NOWHERE, mariadb_gtid="")))


@pytest.mark.parametrize("have", ["", "0-4711-1"])
def test_a_batch_from_the_middle_of_a_transaction_is_kept_or_skipped_as_its_beginning(have: str) -> None:
    """A transaction may be larger than a batch, or its log may be written meanwhile."""
    kept = GtidFilter(MysqlGtidSet(), MariadbGtidState.parse(have), parse_format_description(description()))
    batches = [mariadb_gtid(0, 1, 0), query("INSERT", 0), query("COMMIT", 0)]
    found = [kept.keep(EventBatch(np.frombuffer(raw, np.uint8), np.array([0, len(raw)]))) for raw in batches]
    assert [batch is not None for batch in found] == [not have] * 3

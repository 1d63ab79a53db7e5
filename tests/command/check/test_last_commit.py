"""The headers of a log that ends with a commit say what the scan says; what they do not decide is left to the scan."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.command.check.folder_end import folder_end
from rplctl.command.check.last_commit import last_commit
from rplctl.errors import SourceError
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from tests.source.binlogs import FIRST_EVENT, SERVER_ID, event, mysql_gtid, query, rotate, write_log

OTHER = 77
Maker = Callable[[int], bytes]


def of(kind: EventType, server_id: int = SERVER_ID) -> Maker:
    return lambda end: event(kind, bytes(8), end, server_id=server_id)


GTID: Maker = lambda end: mysql_gtid(1, end)  # noqa: E731
BEGIN: Maker = lambda end: query("BEGIN", end)  # noqa: E731
DDL: Maker = lambda end: query("CREATE TABLE t (a INT)", end)  # noqa: E731
XID, STOP, CHECKPOINT = of(EventType.XID), of(EventType.STOP), of(EventType.BINLOG_CHECKPOINT)
COMMIT = (GTID, BEGIN, XID)


def log(folder: Path, *makers: Maker, tail: bytes = b"") -> Path:
    at, events = FIRST_EVENT, []
    for maker in makers:
        at += len(maker(0))
        events.append(maker(at))
    return write_log(folder / "bin.000001", [*events, tail])


@pytest.mark.parametrize("makers", [COMMIT, (*COMMIT, STOP), (GTID, DDL, *COMMIT, CHECKPOINT, STOP)])
def test_the_end_after_a_commit_is_the_scans(makers: tuple[Maker, ...], tmp_path: Path) -> None:
    path = log(tmp_path, *makers)
    assert last_commit(tmp_path, ()) == folder_end(tmp_path) == BinlogPosition("bin.000001", path.stat().st_size)


def test_the_recorded_logs_of_a_server_end_where_the_scan_says() -> None:
    assert last_commit(demo.BINLOG_FOLDER, ()) == folder_end(demo.BINLOG_FOLDER)


@pytest.mark.parametrize(
    "makers",
    [
        (),
        (GTID, DDL),
        (*COMMIT, GTID),
        (*COMMIT, GTID, DDL),
        (*COMMIT, lambda end: rotate("bin.000002", end)),
        (GTID, BEGIN, of(EventType.XID, OTHER)),
        (*COMMIT, of(EventType.STOP, OTHER)),
        (GTID, BEGIN, lambda end: XID(end + 1000)),
    ],
)
def test_any_other_end_is_left_to_the_scan(makers: tuple[Maker, ...], tmp_path: Path) -> None:
    log(tmp_path, *makers)
    assert last_commit(tmp_path, (OTHER,)) is None


@pytest.mark.parametrize("tail", [b"\0", bytes(30), STOP(0)[:-1]])
def test_a_torn_end_is_left_to_the_scan(tail: bytes, tmp_path: Path) -> None:
    log(tmp_path, *COMMIT, tail=tail)
    assert last_commit(tmp_path, ()) is None


def test_a_file_that_is_not_a_binary_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "bin.000001").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(SourceError, match="bad magic number"):
        last_commit(tmp_path, ())


def test_the_end_of_a_log_after_a_commit_loads_no_compiled_code(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rplctl.command.check.source_end import source_end\n"
        "from rplctl.config import Config; from rplctl.info import MasterInfo, RelayLogInfo\n"
        "source_end(Config(Path(sys.argv[1])), MasterInfo(master_binlog_dir=sys.argv[2]), RelayLogInfo())\n"
        "sys.exit('numba' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(demo.BINLOG_FOLDER)]
    assert subprocess.run(command).returncode == 0

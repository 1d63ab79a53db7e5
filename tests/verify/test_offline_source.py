"""Which place of its log a stopped server's folder is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.errors import UsageError
from rplctl.position import BinlogPosition
from rplctl.verify.offline_source import place_of


def test_a_backup_says_its_place_and_an_operator_knows_better(tmp_path: Path) -> None:
    (tmp_path / "ibdata1").touch()
    with pytest.raises(UsageError, match="does not show the position"):
        place_of(tmp_path, None)
    for junk in (b"", b"mysql-bin.000003", b"\xff\xfe \x80", b"mysql-bin.000003 1e9", b"../mysql-bin.000003 4"):
        (tmp_path / "xtrabackup_binlog_info").write_bytes(junk)
        (tmp_path / "xtrabackup_checkpoints").write_bytes(b"\xff")
        with pytest.raises(UsageError, match="does not show the position"):
            place_of(tmp_path, None)
    (tmp_path / "xtrabackup_binlog_info").write_text("mysql-bin.000003\t4711\t0-1-5\n")
    assert place_of(tmp_path, None) == BinlogPosition("mysql-bin.000003", 4711)
    (tmp_path / "xtrabackup_checkpoints").write_text("backup_type = log-applied\n")
    assert place_of(tmp_path, BinlogPosition("mysql-bin.000004", 4)) == BinlogPosition("mysql-bin.000004", 4)


@pytest.mark.parametrize("type_of_backup", ["full-backuped", "incremental"])
def test_a_backup_that_is_not_prepared_is_refused(tmp_path: Path, type_of_backup: str) -> None:
    (tmp_path / "ibdata1").touch()
    (tmp_path / "xtrabackup_checkpoints").write_text(f"backup_type = {type_of_backup}\n")
    with pytest.raises(UsageError, match="not prepared"):
        place_of(tmp_path, BinlogPosition("mysql-bin.000004", 4))


def test_a_folder_without_a_server_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the data folder"):
        place_of(tmp_path / ("x" * 300), BinlogPosition("mysql-bin.000004", 4))

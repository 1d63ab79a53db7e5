"""`log-status` as typed: columns and keys of its formats, layouts, the privilege (WL#9452)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.mark.parametrize(
    ("arguments", "columns", "key"),
    [
        ([], ["SERVER_UUID", "MASTER", "CHANNELS", "STORAGE_ENGINES"], "relay_log_position"),
        (["--format", "seed"], ["SERVER_UUID", "MASTER", "CHANNELS", "STORAGE_ENGINES"], "relay_log_pos"),
        (["--format=mysql8"], ["SERVER_UUID", "LOCAL", "REPLICATION", "STORAGE_ENGINES"], "relay_log_position"),
    ],
)
def test_the_row_has_the_columns_and_keys_of_its_format(
    configured: Program, arguments: list[str], columns: list[str], key: str
) -> None:
    done = configured("log-status", "--json", *arguments)
    (row,) = json.loads(done.out)
    assert (done.code, list(row)) == (0, columns)
    assert row[columns[1]] == {"gtid_executed": ""}
    assert row[columns[2]] == {"channels": [{"channel_name": "", "relay_log_file": "", key: 0}]}


def test_json_columns_are_printed_as_mysql_does(configured: Program) -> None:
    done = configured("log-status", "-E")
    assert '\n         MASTER: {"gtid_executed": ""}\n' in done.out
    assert (
        '\n       CHANNELS: {"channels": [{"channel_name": "", "relay_log_file": "", "relay_log_position": 0}]}\n'
        in done.out
    )
    assert configured("log-status", "-f", "table", "--format", "mysql8").out.startswith("+--")


def test_the_time_in_which_others_were_kept_out_is_told_on_stderr(configured: Program) -> None:
    done = configured("log-status", "-v")
    assert "held" not in done.out and done.err.startswith("held ") and done.err.endswith(" ms\n")
    assert configured("log-status").err == ""


def test_it_makes_no_target_and_shows_none(configured: Program) -> None:
    (row,) = json.loads(configured("log-status", "--json").out)
    assert row["STORAGE_ENGINES"] == {} and not (configured.datadir / "target.db").exists()


def test_a_sqlite_target_is_shown(configured: Program) -> None:
    configured("switch-repo", "--to", "table")
    (row,) = json.loads(configured("log-status", "--json").out)
    assert list(row["STORAGE_ENGINES"]["SQLite"]) == ["LSN", "LSN_checkpoint", "WAL_salt", "data_version"]


def test_without_the_privilege_there_is_the_error_and_nothing_else(
    configured: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured("switch-repo", "--to", "table")
    monkeypatch.setattr("rplctl.target.sqlite.engine_log.os.access", lambda *_: False)
    done = configured("log-status", "--json")
    text = "Access denied; you need (at least one of) the BACKUP_ADMIN privilege(s) for this operation"
    error = json.loads(done.err)
    assert (done.code, done.out) == (7, "") and (error["Errno"], error["Error"]) == (1227, text)


def test_a_format_that_is_none_is_refused(configured: Program) -> None:
    done = configured("log-status", "--format", "mysql9")
    assert (done.code, done.out) == (2, "")


def test_a_folder_that_is_no_instance_is_not_made(program: Program) -> None:
    done = program("log-status")
    assert done.code == 4 and not Path(program.datadir).exists()

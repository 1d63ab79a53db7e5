"""init, change-master, change-filter as typed: what they answer, in words and in JSON, and what they leave behind."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from rplctl.command.channel.change_options import CHANGE_OPTIONS
from tests.cli.program import Program
from tests.cli.terminal import on_terminal


def test_init_makes_a_private_folder_and_says_where_things_are(program: Program) -> None:
    done = program("init")
    assert done.out == f"instance folder {program.datadir}, target sqlite:///{program.datadir}/target.db\n"
    assert done.err.startswith("Note: RelayLogInfo is a FILE; a marker row in the target keeps it crash-safe")
    assert stat.S_IMODE(program.datadir.stat().st_mode) == 0o700


def test_init_again_keeps_what_is_not_given(program: Program) -> None:
    program("init", "--sync-relay-log", "1")
    program("init", "--max-relay-log-size", "8192")
    text = (program.datadir / "rplctl.toml").read_text()
    assert "sync_relay_log = 1\n" in text and "max_relay_log_size = 8192\n" in text


def test_a_new_channel_is_answered_in_words_and_in_json(program: Program) -> None:
    done = program("change-master", "--master-host", "db1", "--master-log-file", "b.000003", "--master-log-pos", "4")
    assert (done.code, done.out, done.err) == (0, "channel '' reads from db1:3306, b.000003:4\n", "")
    done = program("change-master", "--channel", "east", "--source-host", "db2", "--source-port", "3307", "--json")
    assert json.loads(done.out) == [
        {
            "Channel_Name": "east", "Master_Host": "db2", "Master_Port": 3307, "Master_Binlog_Dir": "",
            "Master_Log_File": "", "Read_Master_Log_Pos": 4, "Password_Set": False, "Created": True,
            "Purges_Relay_Logs": True, "Dry_Run": False,
        }
    ]  # fmt: skip


def test_a_dry_run_says_would_and_writes_nothing(configured: Program) -> None:
    before = {p.name: p.read_bytes() for p in configured.datadir.iterdir() if p.is_file()}
    done = configured("change-master", "--master-host", "db9", "--dry-run")
    assert done.out == "would change: channel '' reads from db9:3306, the first binary log; relay logs are removed\n"
    assert {p.name: p.read_bytes() for p in configured.datadir.iterdir() if p.is_file()} == before


def test_a_password_is_told_to_be_set_and_its_risk_named_but_never_shown(program: Program, tmp_path: Path) -> None:
    secret = tmp_path / "pw"
    secret.write_text("C4nary\n")
    secret.chmod(0o600)
    done = program(
        "change-master", "--master-host", "h", "--master-user", "u", "--password-file", str(secret), "--json"
    )
    assert json.loads(done.out)[0]["Password_Set"] is True
    assert done.err == "Note 1759: Sending passwords in plain text without SSL/TLS is extremely insecure.\n"
    assert "C4nary" not in done.out + done.err + (program.datadir / "history.jsonl").read_text()


def test_a_terminal_is_asked_for_the_password_and_does_not_show_it(program: Program) -> None:
    line = ("change-master", "--master-host", "db1", "--master-user", "rpl", "--ask-password")
    done = on_terminal(program.datadir, *line, typed="C4nary\n")
    assert done.code == 0, done.out
    assert "Password of rpl@db1: " in done.out
    assert "fernet:" in (program.datadir / "master.info").read_text()


def test_a_reference_is_stored_as_it_is(program: Program) -> None:
    program("change-master", "--master-host", "h", "--password-reference", "env:RPL_PW")
    assert "env:RPL_PW" in (program.datadir / "master.info").read_text()


def test_every_option_of_the_table_is_an_option_of_the_command(program: Program) -> None:
    text = program("change-master", "--help").out
    for row in CHANGE_OPTIONS.values():
        assert row.flags[0] in text, row.name


def test_a_filter_is_set_listed_and_cleared(configured: Program) -> None:
    done = configured("change-filter", "--replicate-do-table", "shop.t", "--replicate-do-table", "shop.u")
    assert done.code == 0, done.err
    assert done.out == "channel '': replicate_do_table: shop.t,shop.u\n"
    assert configured("show-status", "--field", "Replicate_Do_Table").out == "shop.t,shop.u\n"
    assert configured("change-filter", "--replicate-do-table", "").out == "channel '': everything is applied\n"


@pytest.mark.parametrize("verb", ["change-filter", "change-replication-filter"])
def test_a_filter_command_without_a_rule_names_its_help(configured: Program, verb: str) -> None:
    done = configured(verb)
    assert done.code == 2 and "run: rplctl change-filter --help" in done.err

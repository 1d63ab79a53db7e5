"""flush, purge, recover, switch-repo, load-schema, demo as typed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.cli.demo import demo as demo_command
from rplctl.command.switch_repo import SwitchStep
from tests.cli.program import Program

DUMP = "CREATE DATABASE shop; USE shop;\nCREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(20) CHARACTER SET utf8mb4);\n"


def test_a_switch_shows_its_cell_and_steps_and_its_dry_run_moves_nothing(configured: Program) -> None:
    done = configured("switch-repo", "--to", "table", "--dry-run", "--json")
    steps = json.loads(done.out)
    assert [list(step) for step in steps] == [[*SwitchStep.__dataclass_fields__, "Channel_Name"]] * 2
    assert [step["Repository"] for step in steps] == ["master-info", "relay-log-info"]
    assert (configured.datadir / "master.info").exists()
    assert configured("switch-repo", "--to", "TABLE", "-q").out == ""
    assert not (configured.datadir / "master.info").exists()
    assert configured("show-status", "--field", "Master_Host").out == "db1\n"
    again = json.loads(configured("switch-repo", "--to", "table", "--json").out)
    assert {step["Action"] for step in again} == {"read"}
    back = configured("switch-repo", "--to", "file", "--repository", "master-info")
    assert back.out.splitlines()[1].startswith("master-info\t\tYes\tNo\tFILE\t")
    assert configured("show-status", "--field", "Master_Info_File").out.strip().endswith("/master.info")


def test_both_places_with_data_is_exit_5_with_the_servers_text_and_a_way_out(configured: Program) -> None:
    kept = (configured.datadir / "master.info").read_bytes()
    configured("switch-repo", "--to", "table")
    (configured.datadir / "master.info").write_bytes(kept)
    (configured.datadir / "master.info").chmod(0o600)
    done = configured("switch-repo", "--to", "file", "--repository", "master-info")
    assert done.code == 5
    assert "Multiple replication metadata repository instances found with data in them" in done.err
    assert "hint: keep the record whose position matches the target's rows" in done.err


@pytest.mark.parametrize("kind", ["table", "file"])
@pytest.mark.parametrize("repository", ["master-info", "relay-log-info"])
def test_no_verb_takes_one_of_two_places_with_data(configured: Program, repository: str, kind: str) -> None:
    """REQ-6: MySQL 5.7 refuses each of them with 1794."""
    path = configured.datadir / {"master-info": "master.info", "relay-log-info": "relay-log.info"}[repository]
    kept = path.read_bytes()
    assert configured("switch-repo", "--to", "table").code == 0
    if kind == "file":
        options = configured.datadir / "rplctl.toml"
        options.write_text(options.read_text().replace('"TABLE"', '"FILE"'))
    path.write_bytes(kept)
    path.chmod(0o600)
    for verb in (
        ("start",),
        ("change-master", "--master-connect-retry", "7"),
        ("change-master", "--master-host", "db2", "--dry-run"),
        ("skip", "1", "--yes"),
        ("reset", "--yes"),
        ("reset", "--all", "--yes"),
    ):
        done = configured(*verb)
        found = done.code, "Multiple replication metadata repository instances found" in done.err
        assert found == (5, True), (verb, done.err)
        assert path.read_bytes() == kept


def test_recover_reports_what_it_found_and_cut(configured: Program) -> None:
    row = json.loads(configured("recover", "--json").out)[0]
    assert row.pop("Notes").startswith("Recovery from master pos 1170 and file binlog.000003. Previous relay log pos")
    assert row == {
        "Channel_name": "", "Channel_Name": "", "Next_event": "binlog.000003:1170", "Relay_log_end": "",
        "Truncated_bytes": 0
    }  # fmt: skip


def test_there_is_nothing_to_purge_before_anything_is_applied(configured: Program) -> None:
    assert configured("purge-relay-logs").out == "channel '': 0 relay logs removed\n"
    assert json.loads(configured("purge-relay-logs", "--dry-run", "--json").out) == [
        {"Channel_Name": "", "Removed": [], "Dry_Run": True}
    ]


def test_a_dump_gives_the_channel_its_tables_and_its_dry_run_only_reads_it(configured: Program, tmp_path: Path) -> None:
    path = tmp_path / "schema.sql"
    path.write_text(DUMP)
    done = configured("load-schema", str(path), "--dry-run")
    assert done.out == "channel '': 1 table would be known from binlog.000003:1170 on\n"
    assert not (configured.datadir / "target.db").exists()
    done = configured("load-schema", str(path), "--json")
    assert json.loads(done.out) == [
        {
            "channel": "", "tables": ["shop.t"], "created": ["shop.t"], "empty": ["shop.t"],
            "position": "binlog.000003:1170", "dry_run": False,
        }
    ]  # fmt: skip
    assert json.loads(configured("load-schema", str(path), "--json").out)[0]["created"] == []


@pytest.mark.parametrize(
    ("text", "words"), [("", "holds no CREATE TABLE"), ("SELECT 1;\n", "holds no CREATE TABLE"), ("\xff", "not UTF-8")]
)
def test_a_file_that_is_no_dump_is_refused_by_name(configured: Program, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "schema.sql"
    path.write_bytes(text.encode("latin-1"))
    done = configured("load-schema", str(path))
    assert done.code == 2 and words in done.err and str(path) in done.err


@pytest.mark.long(
    "tests/demo/test_demo.py holds the parts of the demo in make test.",
)
@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_compares_and_names_commands_that_exist(program: Program, tmp_path: Path) -> None:
    assert demo_command.__doc__
    done = program("demo", str(tmp_path / "shop"))
    assert done.code == 0, done.err
    state = demo.source_state()
    assert done.out.startswith(f"{state.transactions} transactions of a {state.server} source, applied to ")
    assert done.out.count("\tOK\n") == len(state.tables)
    for line in done.out.partition("Try next:\n")[2].splitlines():
        words = line.split()[1:]
        assert words[:2] == ["--datadir", os.fspath(tmp_path / "shop")]
        assert program(*words).code == 0


def test_the_demo_refuses_a_folder_that_is_in_use(configured: Program) -> None:
    done = configured("demo", str(configured.datadir))
    assert done.code == 2 and "is not empty" in done.err and "hint: name a new folder" in done.err

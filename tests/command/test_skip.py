"""skip --dry-run: which transactions would be left out, and what is in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.config import Config
from tests.cli.program import Program
from tests.relay_log.stream import SOURCE_UUID, FakeSource, write_relay_log


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    """Four transactions of one row in d.t are received, none is applied."""
    datadir = tmp_path / "instance"
    change_master(Config(datadir), "", MasterChanges(master_host="db1"))
    write_relay_log(Channel("", datadir), FakeSource(), 4)
    return Program(datadir, capsys)


def found(program: Program, *arguments: str) -> list[dict[str, object]]:
    (result,) = json.loads(program("skip", *arguments, "--dry-run", "--json").out)
    assert isinstance(result["Transactions"], list)
    return result["Transactions"]


def test_a_dry_run_shows_gtid_position_tables_and_rows_of_each(program: Program) -> None:
    first, second = found(program, "2")
    assert first | {"Position": ""} == {
        "Gtid": f"{SOURCE_UUID}:1", "Position": "", "Tables": ["d.t"], "Rows": 1, "Statement": "",
    }  # fmt: skip
    assert str(first["Position"]).endswith(":4") or ":" in str(first["Position"])
    assert second["Gtid"] == f"{SOURCE_UUID}:2" and second["Position"] != first["Position"]
    assert f"{SOURCE_UUID}:1 at {first['Position']}: 1 row of d.t" in program("skip", "1", "--dry-run").out
    assert found(program, "0") == []


def test_a_dry_run_by_gtid_shows_those_transactions(program: Program) -> None:
    rows = found(program, "--gtid", f"{SOURCE_UUID}:2-3")
    assert [row["Gtid"] for row in rows] == [f"{SOURCE_UUID}:2", f"{SOURCE_UUID}:3"]
    assert found(program, "--gtid", f"{SOURCE_UUID}:9") == []


def test_pending_gtids_are_cancelled_by_skip_0_and_an_empty_list_is_refused(program: Program) -> None:
    assert program("skip", "--gtid", f"{SOURCE_UUID}:3", "--yes").code == 0
    for empty in ("", " "):
        refused = program("skip", "--gtid", empty, "--yes")
        assert refused.code == 2 and "--gtid requires a GTID" in refused.err and "run: rplctl skip 0" in refused.err
    assert found(program, "1") != []
    assert program("skip", "0").code == 0
    assert not (program.datadir / "run" / "@" / "skip_gtids").read_text()

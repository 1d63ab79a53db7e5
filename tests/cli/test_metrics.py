"""`metrics`: what Prometheus reads is what show-status says, under the names and by the rules of mysqld_exporter."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families as table_groups

from rplctl.command.show_status import WORKLOG_COLUMNS
from tests.cli.program import Program
from tests.kit.programs import required_program

HERE = {"channel_name": "", "connection_name": "", "master_host": "db1", "master_uuid": ""}


def samples(text: str) -> dict[tuple[str, str], float]:
    """(name, channel) → value; states are in the name."""
    return {
        (f"{s.name}{s.labels.get('state', '')}{s.labels.get('thread', '')}", s.labels.get("channel_name", "")): s.value
        for family in table_groups(text)
        for s in family.samples
    }


def test_columns_are_named_and_labelled_as_the_exporter_has_them(configured: Program) -> None:
    found = {s.name: s for family in table_groups(configured("metrics").out) for s in family.samples}
    assert {name for name in found if name.startswith("mysql_slave_status_")} <= {
        f"mysql_slave_status_{column.lower()}" for column in WORKLOG_COLUMNS
    }
    assert found["mysql_slave_status_slave_io_running"].labels == HERE
    assert found["mysql_slave_status_exec_master_log_pos"].value == 1170
    assert found["mysql_up"].value == 1


def test_what_is_not_known_has_no_sample(configured: Program) -> None:
    found = samples(configured("metrics").out)
    for name in ("mysql_slave_status_seconds_behind_master", "rplctl_last_synced_timestamp_seconds",
                 "rplctl_verify_differences", "rplctl_thread_heard_secondsapplier"):  # fmt: skip
        assert (name, "") not in found
    assert found["rplctl_thread_statestoppedapplier", ""] == 1 and found["rplctl_thread_staterunningapplier", ""] == 0


def test_a_channel_that_cannot_be_read_hides_no_other(configured: Program) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    next(configured.datadir.rglob("*east*/relay-log.info"), configured.datadir / "relay-log-east.info").write_text(
        "junk"
    )
    done = configured("metrics")
    found = samples(done.out)
    assert done.code and "channel: 'east'" in done.err and "hint: " in done.err
    assert (found["mysql_up", ""], found["rplctl_channel_up", ""], found["rplctl_channel_up", "east"]) == (0, 1, 0)
    assert ("mysql_slave_status_exec_master_log_pos", "") in found


def test_the_file_for_node_exporter_is_whole_and_readable_and_named_as_it_reads_them(
    configured: Program,
    tmp_path: Path,
) -> None:
    path = tmp_path / "rplctl.prom"
    path.write_text("old")
    assert configured("metrics", "--textfile", str(path)).out == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 and samples(path.read_text())["mysql_up", ""] == 1
    done = configured("metrics", "--textfile", str(tmp_path / "rplctl.txt"))
    assert done.code == 2 and "run: rplctl metrics --textfile" in done.err and not (tmp_path / "rplctl.txt").exists()
    assert configured("metrics", "--textfile", str(tmp_path / "none/a.prom")).code
    assert [path.name for path in tmp_path.iterdir() if "prom" in path.name] == ["rplctl.prom"]


def test_rows_of_json_are_the_same_samples(configured: Program) -> None:
    rows = json.loads(configured("metrics", "--json").out)
    assert {row["Name"] for row in rows} == {s.name for f in table_groups(configured("metrics").out) for s in f.samples}


def test_promtool_finds_nothing_wrong(configured: Program) -> None:
    text = configured("metrics").out
    command = [required_program("promtool", "prometheus"), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3) and "error" not in done.stderr, done.stderr  # 3: lint of names that are not ours

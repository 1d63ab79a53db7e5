"""`purge-binary-logs`, the binary log in log-status and in a backup, and relay logs that the binary log still needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import rplctl.demo
from rplctl.command.backup import backup
from rplctl.command.doctor import doctor
from rplctl.command.log_status import log_status
from rplctl.command.purge_binary_logs import purge_binary_logs
from rplctl.command.purge_relay_logs import purge_relay_logs
from rplctl.command.restore import restore
from rplctl.config import Config, Value, load_config
from rplctl.errors import UsageError
from rplctl.info import MasterInfo
from rplctl.option_file import store_options
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository import open_master_info
from tests.applied_log.applied import apply_rest, events_of, logs_of, receive, resumed
from tests.applier.instance import Instance

DEMO = Path(rplctl.demo.__file__).parent / "data" / "binlog.000001"
OPTIONS: dict[str, Value] = {"log_bin": "logs/binlog", "max_binlog_size": 20_000, "relay_log_info_repository": "TABLE"}
pytestmark = pytest.mark.slow  # each of them applies the demo


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    """A configured channel that has applied the demo's log."""
    folder = tmp_path / "instance"
    groups = receive(folder, DEMO)
    store_options(folder, "", OPTIONS)
    made = Instance(folder, groups, **OPTIONS)
    master = open_master_info(made.config, made.channel, lambda: made.target.engine)
    flushed = {"flushed_relay_log_name": "relay-bin.000001", "flushed_relay_log_pos": groups.end.log_pos}
    master.flush(MasterInfo(master_binlog_dir=str(DEMO.parent), **flushed), force=True)  # type: ignore[arg-type]
    apply_rest(made, groups)
    made.applier.close()
    yield made
    made.target.close()


def configs(folder: Path) -> Config:
    return load_config(folder)


def test_logs_are_purged_by_name_and_by_time(instance: Instance) -> None:
    folder = instance.config.datadir
    names = [path.name for path in logs_of(folder / "logs")]
    assert purge_binary_logs(configs(folder), "", to=names[2], dry_run=True).removed == tuple(names[:2])
    assert purge_binary_logs(configs(folder), "", to=names[2]).removed == tuple(names[:2])
    assert purge_binary_logs(configs(folder), "", before="2001-01-01").removed == ()
    assert purge_binary_logs(configs(folder), "", before="2999-12-31 23:59:59").removed == tuple(names[2:-1])
    assert [path.name for path in logs_of(folder / "logs")] == names[-1:]


@pytest.mark.long("The refusals are one table in the program; the other tests of this file purge.")
@pytest.mark.parametrize(
    ("options", "errno"),
    [
        ({}, 0),
        ({"to": "a.000001", "before": "2001-01-01"}, 0),
        ({"before": "tomorrow"}, 0),
        ({"to": "no.000001"}, 1373),
    ],
)
def test_what_cannot_be_purged_is_refused(instance: Instance, options: dict[str, str], errno: int) -> None:
    with pytest.raises(UsageError) as refused:
        purge_binary_logs(configs(instance.config.datadir), "", **options)  # type: ignore[arg-type]
    assert (refused.value.errno or 0) == errno


def test_without_a_binary_log_it_says_so(instance: Instance) -> None:
    store_options(instance.config.datadir, "", {"log_bin": ""})
    with pytest.raises(UsageError, match="You are not using binary logging") as refused:
        purge_binary_logs(configs(instance.config.datadir), "", to="binlog.000001")
    assert refused.value.errno == 1381


def test_log_status_has_it_as_a_server_has(instance: Instance) -> None:
    row = log_status(lambda _: configs(instance.config.datadir)).row
    last = logs_of(instance.config.datadir / "logs")[-1]
    assert row["MASTER"] == {
        "gtid_executed": "0-1-193",
        "binary_log_file": last.name,
        "binary_log_position": last.stat().st_size,
    }


def test_a_backup_holds_it_and_a_restored_instance_goes_on_with_it(instance: Instance, tmp_path: Path) -> None:
    backup(lambda _: configs(instance.config.datadir), tmp_path / "backup")
    logs = logs_of(instance.config.datadir / "logs")
    with logs[-1].open("ab") as file:
        file.write(b"a transaction in work")
    restore(tmp_path / "backup", tmp_path / "restored")
    manifest = json.loads((tmp_path / "backup" / "backup.json").read_text())
    assert {f"logs/{path.name}" for path in logs} | {"logs/binlog.index"} <= manifest["files"].keys()
    again = resumed(tmp_path / "restored", **OPTIONS)
    again.applier.close()
    assert events_of(logs_of(tmp_path / "restored" / "logs")) == events_of([DEMO])
    again.target.close()


def test_relay_logs_that_the_binary_log_lacks_are_not_purged(instance: Instance) -> None:
    folder = instance.config.datadir
    (folder / "relay-bin.000002").write_bytes((folder / "relay-bin.000001").read_bytes())
    index = RelayLogIndex(instance.channel)
    index.replace(["relay-bin.000001", "relay-bin.000002"])
    instance.execute("UPDATE slave_relay_log_info SET Relay_log_name='relay-bin.000002'")
    assert purge_relay_logs(configs(folder), "").removed == ()
    assert index.names() == ["relay-bin.000001", "relay-bin.000002"]
    store_options(folder, "", {"log_bin": ""})
    assert purge_relay_logs(configs(folder), "").removed == ("relay-bin.000001",)


def test_doctor_says_where_the_log_ends_and_what_is_wrong_with_it(instance: Instance) -> None:
    folder = instance.config.datadir

    def finding() -> tuple[str, str]:
        return next((f.Result, f.Detail) for f in doctor(configs(folder)) if f.Check == "channel '' binary log")

    last = logs_of(folder / "logs")[-1]
    assert finding() == ("OK", f"{folder / 'logs'}: {last.name}, up to {instance.applier.info.exec_position}")
    last.write_bytes(last.read_bytes()[:100])
    assert finding()[0] == "FAIL"

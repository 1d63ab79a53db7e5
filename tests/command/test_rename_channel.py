"""`rename-channel`: what it refuses before anything moves, and what `check` tells of one that was cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.context import known_channels
from rplctl.command.check.verb import CheckLimits, Scope, check
from rplctl.command.rename_channel import rename_channel
from rplctl.command.reset import reset
from rplctl.config import load_config
from rplctl.errors import LockBusy, NotConfigured, UsageError
from rplctl.renaming import both_locked, pending_rename
from tests.cli.program import Program
from tests.command.test_dry_run import contents
from tests.kit.channel_life import Archive
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer
from tests.test_renaming import NEW, archive, in_child, worked

__all__ = ["archive"]
SCHEMA = "DROP DATABASE IF EXISTS named; CREATE DATABASE named; CREATE TABLE named.t (a INT PRIMARY KEY, b INT)"
OF_CHANNEL = ("change-master --master-connect-retry 7", "change-filter --replicate-do-db d", "switch-repo --to table",
              "reset --yes", "skip 1", "recover", "purge-relay-logs", "purge-binary-logs --to x.000001", "repair",
              "clone", "clone --cancel --yes")  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12


def test_check_tells_of_one_that_was_cut_off(tmp_path: Path, archive: Archive) -> None:
    life = worked(tmp_path / "life", archive)
    in_child("rename_after_rows", lambda: rename_channel(life.config, "", NEW))
    codes = {
        finding.code: finding.repair
        for finding in check(life.config, "", CheckLimits(warning_s=60, critical_s=300), Scope.OFFLINE).findings
    }
    assert codes["rename_interrupted"] == "rplctl start (finishes it)"


@pytest.mark.long("The new name stays; the old one goes the same way.", keeps="East")
@pytest.mark.parametrize("name", ["", NEW])
def test_no_dry_run_finishes_one_that_was_cut_off(
    tmp_path: Path, archive: Archive, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It names the command that does, which is the one that was cut off."""
    life = worked(tmp_path / "life", archive)
    in_child("rename_after_relay_logs", lambda: rename_channel(life.config, "", NEW))
    program, before = Program(life.folder, capsys), contents(life.folder)
    dump = tmp_path / "dump.sql"
    dump.write_text("CREATE DATABASE d; CREATE TABLE d.t (a INT)")
    of_channel = [*OF_CHANNEL, f"load-schema {dump}", f"export-info --server mysql-8.0 {tmp_path}/exported",
                  f"import-info {tmp_path}"]  # fmt: skip
    hint = f"to finish it, run: rplctl rename-channel '' '{NEW}'"
    of_others = [["rename-channel", name, "west"], ["change-target", f"sqlite:///{tmp_path}/other.db"]]
    for words in [*of_others, *([*line.split(), "--channel", name] for line in of_channel)]:
        done = program(*words, "--dry-run")
        assert (done.code, hint in done.err) == (2, True), (words, done)
        assert contents(life.folder) == before, words
    assert program("rename-channel", "", NEW).code == 0
    assert known_channels(life.config) == [NEW] and pending_rename(life.folder) is None


def test_what_could_go_wrong_is_refused_before_anything_moves(tmp_path: Path, archive: Archive) -> None:
    life = worked(tmp_path / "life", archive)

    def contents() -> dict[Path, bytes]:
        files = (path for path in life.folder.rglob("*") if path.is_file() and path.suffix != ".lock")
        return {path: path.read_bytes() for path in files if "target.db" not in path.name}

    before = contents()
    with pytest.raises(NotConfigured):
        rename_channel(life.config, "west", NEW)
    for role in ("receiver", "applier"):
        with hold_lock(life.channel, role), pytest.raises((UsageError, LockBusy)):
            rename_channel(life.config, "", NEW)
    with both_locked(life.folder, "", NEW), pytest.raises(LockBusy):
        rename_channel(life.config, "", NEW)
    for name, why in (("", "already has that name"), ("x\n", "invalid or too long")):
        with pytest.raises(UsageError, match=why):
            rename_channel(life.config, "", name)
    result = rename_channel(life.config, "", NEW, dry_run=True)
    assert len(result.steps) == 5 and contents() == before
    for path, why in ((f"relay-bin{Channel(NEW, life.folder).suffix}.000001", "relay logs"), ("run/new/undo", "undo")):
        name = NEW if "relay" in path else "new"
        (life.folder / path).parent.mkdir(exist_ok=True)
        (life.folder / path).write_bytes(b"")
        with pytest.raises(UsageError, match=why):
            rename_channel(life.config, "", name)
        (life.folder / path).unlink()
    assert contents() == before


def test_a_name_is_free_again_once_its_channel_is_renamed_or_reset(tmp_path: Path, archive: Archive) -> None:
    life = worked(tmp_path / "life", archive)
    rename_channel(life.config, "", "a")
    rename_channel(load_config(life.folder, "a"), "A", "b")
    rename_channel(load_config(life.folder, "b"), "b", "a")
    reset(load_config(life.folder, "a"), "a", everything=True)
    assert known_channels(life.config) == []


@pytest.mark.long("test_a_name_is_free_again_once_its_channel_is_renamed_or_reset renames in make test.")
@pytest.mark.slow
@pytest.mark.mariadb
def test_a_channel_of_a_server_goes_on_under_its_new_name(
    replica: Replica, source: MariadbServer, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    """Its records, models and the state of its copy are rows of the target, a MariaDB."""
    server = mariadb_factory("--skip-log-bin")
    source.sql("INSERT INTO t SELECT seq, 0 FROM seq_1_to_1000", "named")
    tables = ("--master-info-repository", "table", "--relay-log-info-repository", "table")
    replica.set_up(source, *replica.into(server), *tables)
    replica.run("start")
    replica.wait_synced(source)
    replica.run("stop", "--applier")
    source.sql("UPDATE named.t SET b = 1 WHERE a < 100")  # received, or not yet
    assert "3081" in replica.run("rename-channel", "", "east", expect=2).stderr
    replica.run("stop")
    replica.run("rename-channel", "", "east")
    source.sql("DELETE FROM named.t WHERE a = 500")
    replica.run("start", "--until-synced", "--channel", "east")
    replica.run("verify", "--channel", "east", "--databases", "named")
    assert server.sql("SELECT SUM(b), COUNT(*) FROM named.t") == source.sql("SELECT SUM(b), COUNT(*) FROM named.t")
    assert server.sql("SELECT DISTINCT Channel_name FROM rplctl.rplctl_channel_owner") == [("east",)]

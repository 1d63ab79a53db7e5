"""init as a function, the journal, and load-schema: what is written where, and what is refused before anything is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.channel import Channel, hold_lock
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import open_repositories
from rplctl.command.doctor import doctor
from rplctl.command.init import init
from rplctl.command.load_schema import load_schema, read_dump
from rplctl.config import Config, Value, load_config
from rplctl.errors import ConfigError, NotConfigured, RplError, UsageError
from rplctl.position import BinlogPosition
from rplctl.target import open_target

DUMP = """
CREATE DATABASE `shop`; USE `shop`;
CREATE TABLE `t` (`id` int unsigned NOT NULL, `kind` enum('a','b') DEFAULT NULL, PRIMARY KEY (`id`)) CHARSET=utf8mb4;
CREATE TABLE `u` (`n` decimal(65,2) NOT NULL);
"""


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} if folder.is_dir() else {}


def test_a_wrong_option_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        init(tmp_path / "new", {"sync_relay_log": "many"})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("wanted", [{"commit_mode": "xa"}, {"replica_parallel_workers": 2}])
def test_two_phase_commit_for_a_target_that_cannot_prepare_is_refused_before_anything_is_written(
    tmp_path: Path, wanted: dict[str, str | int]
) -> None:
    with pytest.raises(ConfigError, match="sqlite cannot prepare"):
        init(tmp_path / "new", wanted)
    assert not (tmp_path / "new").exists()


def test_workers_in_commit_order_prepare_nothing_and_any_target_takes_them(tmp_path: Path) -> None:
    wanted: dict[str, Value] = {"replica_parallel_workers": 2, "replica_preserve_commit_order": True}
    init(tmp_path / "new", wanted)
    assert "two phases" not in {line.Check for line in doctor(load_config(tmp_path / "new"), [])}


def test_repositories_as_tables_are_made_at_once_and_private(tmp_path: Path) -> None:
    result = init(tmp_path / "new", {"master_info_repository": "TABLE", "relay_log_info_repository": "TABLE"})
    assert (result.created_tables, result.notes) == (True, ())
    assert stat.S_IMODE((tmp_path / "new" / "target.db").stat().st_mode) == 0o600
    config = load_config(tmp_path / "new")
    assert open_repositories(config, "").master_info.kind == "TABLE"
    assert not open_repositories(config, "").master_info.exists()


def test_the_targets_password_is_stored_unreadable_and_never_taken_from_the_url(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="process list") as caught:
        init(tmp_path / "new", {"target": "mysql://u:C4nary@h/"})
    assert "--target-password-file" in caught.value.hint and "C4nary" not in str(caught.value)
    init(tmp_path / "new", {"target": "mysql://u@h/"}, "C4nary")
    for path in filter(Path.is_file, (tmp_path / "new").rglob("*")):
        assert b"C4nary" not in path.read_bytes()
    assert "C4nary" in load_config(tmp_path / "new").target_url


def test_how_the_target_is_reached_can_be_made_safe_while_channels_exist(tmp_path: Path) -> None:
    init(tmp_path, {"target": "mysql://u@h:3306/"}, "pw")
    change_master(load_config(tmp_path), "", MasterChanges(master_host="h"))
    init(tmp_path, {"target": "mysql://u@h:3306/?ssl_ca=/etc/ca.pem&ssl_check_hostname=0"})
    assert "ssl_ca" in load_config(tmp_path).target_url
    for other in ("mysql://u@other:3306/", "mysql://u@h:3306/?unix_socket=/tmp/other"):
        with pytest.raises(UsageError, match="cannot be changed while channels exist"):
            init(tmp_path, {"target": other})


def test_a_misspelt_word_of_the_target_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'sslca', which is not an option"):
        init(tmp_path / "new", {"target": "mysql://u@h/?sslca=/etc/ca.pem"})
    assert not (tmp_path / "new").exists()


def test_what_channels_stand_on_cannot_be_pulled_away(tmp_path: Path) -> None:
    init(tmp_path, {})
    change_master(load_config(tmp_path), "", MasterChanges(master_host="h"))
    before = files(tmp_path)
    other = {"target": f"sqlite:///{tmp_path / 'other.db'}"}
    for options, way in (({"master_info_repository": "TABLE"}, "switch-repo"), (other, "change-target URL")):
        with pytest.raises(UsageError, match="cannot be changed while channels exist") as caught:
            init(tmp_path, options)
        assert f"rplctl {way}" in caught.value.hint
    assert files(tmp_path) == before
    assert init(tmp_path, {"sync_relay_log": 7}).created_tables is False
    assert load_config(tmp_path).sync_relay_log == 7


# load-schema


@pytest.fixture
def archive(tmp_path: Path) -> Config:
    config = Config(tmp_path / "data")
    change = MasterChanges(
        master_binlog_dir=os.fspath(demo.BINLOG_FOLDER), master_log_file="binlog.000002", master_log_pos=4
    )
    (tmp_path / "data").mkdir(mode=0o700)
    change_master(config, "", change)
    return config


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    (tmp_path / "schema.sql").write_text(DUMP)
    return tmp_path / "schema.sql"


def test_a_dump_makes_the_tables_and_remembers_their_types_from_the_position_on(archive: Config, dump: Path) -> None:
    result = load_schema(archive, "", dump)
    assert result.position == BinlogPosition("binlog.000002", 4)
    assert result.tables == result.created == ("shop.t", "shop.u")
    target = open_target(archive.target_url)
    try:
        columns = [row[1] for row in target.connection.exec_driver_sql('PRAGMA table_info("shop__t")')]
    finally:
        target.close()
    assert columns == ["id", "kind"]
    model = read_dump(dump).tables["shop", "t"]
    assert [column.type for column in model.columns] == ["int", "enum"]
    assert model.columns[0].unsigned and model.columns[1].labels == ("a", "b")
    assert load_schema(archive, "", dump).created == ()  # they are there now


def test_a_dry_run_reads_the_dump_and_makes_no_target(archive: Config, dump: Path) -> None:
    result = load_schema(archive, "", dump, dry_run=True)
    assert (len(result.tables), result.created, result.dry_run) == (2, (), True)
    assert not (archive.datadir / "target.db").exists()


def test_what_the_command_needs_is_asked_for_before_anything_is_done(archive: Config, dump: Path) -> None:
    with pytest.raises(UsageError, match="FILE or --from-source"):
        load_schema(archive, "", None)
    with pytest.raises(UsageError, match="FILE or --from-source"):
        load_schema(archive, "", dump, from_source=True)
    with pytest.raises(UsageError, match="folder of binary logs has no table definitions"):
        load_schema(archive, "", None, from_source=True)
    with pytest.raises(NotConfigured):
        load_schema(archive, "other", dump)
    with hold_lock(Channel("", archive.datadir), "applier"), pytest.raises(UsageError) as caught:
        load_schema(archive, "", dump)
    assert (caught.value.errno, caught.value.hint) == (3085, "to stop it, run: rplctl stop --applier")
    assert not (archive.datadir / "target.db").exists()


def test_a_statement_that_cannot_be_read_names_itself_and_loads_nothing(archive: Config, tmp_path: Path) -> None:
    bad = tmp_path / "bad.sql"
    bad.write_text(DUMP + "CREATE TABLE v (a FROBNICATE);\n")
    with pytest.raises(RplError, match="FROBNICATE"):
        load_schema(archive, "", bad)
    assert not (archive.datadir / "target.db").exists()

"""export-info and import-info as functions: what they return, and what a crash in mode marker means for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of, open_repositories
from rplctl.command.export_info import Destination, export_info
from rplctl.command.import_info import FOLDER, Origin, import_info
from rplctl.commit.position_store import open_position_store
from rplctl.config import Config
from rplctl.errors import NotConfigured
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition


def test_a_file_that_a_crash_left_behind_its_marker_is_not_exported(tmp_path: Path) -> None:
    config = Config(tmp_path / "i")
    first = MasterChanges(master_host="db1", master_log_file="b.000001", master_log_pos=4)
    change_master(config, "", first)
    engine = engine_of(config)()
    create_own_tables(engine)
    store = open_position_store(config, Channel("", config.datadir), engine)
    info = store.open()
    with engine.begin() as connection:  # killed before the file followed
        store.advance(
            connection, info, info.at(RelayLogPosition("relay-bin.000001", 9), BinlogPosition("b.000001", 777))
        )
    result = export_info(config, "", Destination("mariadb", tmp_path / "out"))
    assert str(result.position) == "b.000001:777"
    other = Config(tmp_path / "j")
    imported = import_info(other, "east", Origin(kind=FOLDER, path=tmp_path / "out"))
    assert (imported.created, str(imported.master_info.read_position)) == (True, "b.000001:777")
    stored = open_repositories(other, "east").relay_log_info.read()
    assert stored.exec_position == BinlogPosition("b.000001", 777)


def test_what_is_not_configured_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured):
        export_info(Config(tmp_path), "", Destination("mariadb", tmp_path / "out"))

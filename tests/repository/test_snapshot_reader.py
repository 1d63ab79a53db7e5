"""Records of many channels, read at once while locks are held: how many statements that takes, and how old they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, text

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.info import MasterInfo
from rplctl.repository import create_tables, open_master_info
from rplctl.repository.record import MASTER_INFO
from rplctl.repository.snapshot_reader import open_records
from rplctl.repository.table import open_reader
from rplctl.target import open_engine

KINDS = {"a": "TABLE", "B": "TABLE", "c": "TABLE", "f": "FILE"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_tables(opened)
    yield opened
    opened.dispose()


@pytest.fixture
def configs(tmp_path: Path, engine: Engine) -> dict[str, Config]:
    """Four channels, one of them a FILE, with the host named after the channel."""
    found = {name: Config(tmp_path, master_info_repository=kind) for name, kind in KINDS.items()}
    for name in found:
        store(found, engine, name, f"host-{name}")
    return found


def store(configs: dict[str, Config], engine: Engine, name: str, host: str) -> None:
    repository = open_master_info(configs[name], Channel(name, configs[name].datadir), lambda: engine)
    stored = repository.read() if repository.exists() else MasterInfo()
    repository.flush(replace(stored, host=host), force=True)


def test_all_channels_of_a_table_cost_one_statement_and_a_record_is_of_after_the_expiry(
    configs: dict[str, Config], engine: Engine
) -> None:
    with open_reader(engine) as reader:
        records = open_records(MASTER_INFO, configs, lambda _: reader)
        for name in configs:
            store(configs, engine, name, f"new-{name}")
        records.expire()
        statements: list[str] = []
        event.listen(engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
        assert [getattr(records.find(name), "host", None) for name in configs] == [f"new-{name}" for name in configs]
        assert len([statement for statement in statements if "slave_master_info" in statement]) == 1
        assert [getattr(records.find(name), "channel_name", None) for name in configs] == list(configs)


def test_what_did_not_change_is_not_taken_apart_again(
    configs: dict[str, Config], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_reader(engine) as reader:
        records = open_records(MASTER_INFO, configs, lambda _: reader)
        before = {name: records.find(name) for name in configs}
        store(configs, engine, "B", "elsewhere")
        records.expire()
        found = {name: records.find(name) for name in configs}
    assert [name for name in configs if found[name] is not before[name]] == ["B"]
    assert getattr(found["B"], "host", None) == "elsewhere"


def test_no_row_no_file_and_no_table_are_none_and_a_damaged_record_is_told(
    configs: dict[str, Config], engine: Engine, tmp_path: Path
) -> None:
    with open_reader(engine) as reader:
        more = configs | {"x": configs["a"], "y": configs["f"]}
        records = open_records(MASTER_INFO, more, lambda _: reader)
        assert (records.find("x"), records.find("y")) == (None, None)
    with engine.begin() as connection:
        connection.execute(text("UPDATE slave_master_info SET Master_log_pos = 'x' WHERE Channel_name = 'a'"))
    with open_reader(engine) as reader, pytest.raises(RplError) as raised:
        open_records(MASTER_INFO, configs, lambda _: reader)
    assert raised.value.errno == 1201 and "channel 'a'" in raised.value.message
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE slave_master_info"))
    with open_reader(engine) as reader:
        assert open_records(MASTER_INFO, configs, lambda _: reader).find("a") is None

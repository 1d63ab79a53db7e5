"""Who we are to a source."""

from __future__ import annotations

from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.source.replica_id import replica_identity, replica_server_id


def test_it_is_the_options_or_stays_the_same_and_differs_between_channels(tmp_path: Path) -> None:
    config = Config(tmp_path)
    ids = [replica_server_id(config, Channel(name, tmp_path)) for name in ("", "east", "EAST")]
    assert ids[0] != ids[1] == ids[2] and min(ids) >= 1 << 30
    assert replica_server_id(Config(tmp_path, server_id=7), Channel("", tmp_path)) == 7


def test_an_identity_is_the_same_at_every_connection_and_differs_between_channels_and_instances(tmp_path: Path) -> None:
    here, there = Config(tmp_path / "a"), Config(tmp_path / "b")
    east = Channel("east", tmp_path / "a")
    assert replica_identity(here, east) == replica_identity(here, Channel("EAST", tmp_path / "a"))  # names fold case
    made = [replica_identity(here, east), replica_identity(here, Channel("", tmp_path / "a"))]
    made.append(replica_identity(there, Channel("east", tmp_path / "b")))
    assert len({one.server_id for one in made}) == len({one.uuid for one in made}) == 3


def test_a_derived_server_id_is_valid_and_clear_of_chosen_ones(tmp_path: Path) -> None:
    derived = replica_identity(Config(tmp_path), Channel("", tmp_path)).server_id
    assert 0x40000000 <= derived < 0x80000000
    assert replica_identity(Config(tmp_path, server_id=7), Channel("", tmp_path)).server_id == 7

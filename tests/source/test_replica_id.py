"""A channel's server id: the option's, or one of its own."""

from __future__ import annotations

from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.source.replica_id import replica_server_id


def test_it_is_the_options_or_stays_the_same_and_differs_between_channels(tmp_path: Path) -> None:
    config = Config(tmp_path)
    ids = [replica_server_id(config, Channel(name, tmp_path)) for name in ("", "east", "EAST")]
    assert ids[0] != ids[1] == ids[2] and min(ids) >= 1 << 30
    assert replica_server_id(Config(tmp_path, server_id=7), Channel("", tmp_path)) == 7

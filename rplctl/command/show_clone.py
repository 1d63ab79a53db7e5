"""`show-clone`: which tables are being copied from the source, and how much of each is there."""

from __future__ import annotations

from rplctl.command.channel.context import Repositories, open_repositories, read_master_info, target_has_table
from rplctl.config import Config
from rplctl.own_tables.clones import ClonedTable, read_clones


def show_clone(config: Config, channel: str) -> list[ClonedTable]:
    """Those that are done, too. Raises NotConfigured, TargetError."""
    repositories = open_repositories(config, channel)
    read_master_info(repositories, channel)
    return cloned(repositories, channel)


def cloned(repositories: Repositories, channel: str) -> list[ClonedTable]:
    """What the ledger says; [] where there is none."""
    if not target_has_table(repositories, "rplctl_clone"):
        return []
    with repositories.engine().connect() as connection:
        return read_clones(connection, channel)

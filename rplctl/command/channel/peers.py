"""Query the source and the target of a channel within one deadline.

A server that is frozen (SIGSTOP) accepts a query and never answers. The same happens if a firewall drops the packets.
Invariant: these queries change nothing, so an abandoned query has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from rplctl.command.channel.context import (
    ask_source,
    engine_of,
    open_repositories,
    reach_engine,
    source_shown,
    target_shown,
)
from rplctl.config import Config
from rplctl.deadline import Deadline
from rplctl.errors import RplError, SourceError, TargetError
from rplctl.info import MasterInfo
from rplctl.sql_text import written
from rplctl.target_url import authority

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Peers:
    """The source and the target, which a command queries within one deadline.

    A query that has no answer at the deadline raises SourceError or TargetError.
    """

    config: Config
    deadline: Deadline = field(default_factory=Deadline)

    def ask_target(self, question: Callable[[], T]) -> T:
        return self.deadline.ask(target_shown(self.config), TargetError, question)

    def ask_source(self, master: MasterInfo, question: Callable[[], T]) -> T:
        return self.deadline.ask(source_shown(master), SourceError, question)


def refuse_silent_peers(config: Config, channel_name: str, *, asks_source: bool = True) -> None:
    """Raise TargetError or SourceError if a server does not answer within the deadline. Commands call this before their
    work.

    An error message of a server, for example a refused sign-in, counts as an answer. The command reports this
    message when it uses the server.
    """
    peers = Peers(config)
    if authority(config.target_place):  # files do not hang
        peers.ask_target(lambda: reach_target(config))
    master = open_repositories(config, channel_name).master()
    if asks_source and not master.master_binlog_dir:
        peers.ask_source(master, lambda: reach_source(config, master))


def reach_target(config: Config) -> None:
    """Return when the target has answered. An error message from the target counts as an answer."""
    with suppress(RplError):
        reach_engine(engine_of(config)())


def reach_source(config: Config, master: MasterInfo) -> None:
    """Return when the source has answered. An error message from the source counts as an answer."""
    with suppress(RplError, OSError), ask_source(config, master) as query:
        query(written("SELECT 1"))

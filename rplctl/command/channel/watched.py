"""Detect a server that becomes silent while a command reads its rows.

A query may take hours, so it has no timeout. Instead, a second connection asks the server every few seconds. Invariant:
a server that answers on the second connection is working. If it does not answer there, it is silent. The command then
ends with an error that names the server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Final

from rplctl.command.channel.context import open_repositories
from rplctl.command.channel.peers import Peers, reach_source, reach_target
from rplctl.config import Config
from rplctl.deadline import Deadline
from rplctl.errors import RplError
from rplctl.info import MasterInfo
from rplctl.source.connection import cut_off
from rplctl.target.aborted import cut_off_target
from rplctl.target_url import authority

PAUSE_S: Final = 5.0  # seconds between two checks
ANSWER_S: Final = 9.0  # shorter than the drivers' timeouts of 10 s, because their error would count as an answer
MOST_LATE: Final = 3  # checks in a row without an answer, because a busy server may accept a connection late


@contextmanager
def watched_peers(config: Config, channel_name: str, *, asks_source: bool = True) -> Iterator[None]:
    """Watch the target during the block, and also the source if `asks_source`.

    If one of them becomes silent, the queries in the block fail. The block then ends with a TargetError or SourceError
    that names the server.
    """
    master = open_repositories(config, channel_name).master()
    asks_source = asks_source and not master.master_binlog_dir
    asks_target = bool(authority(config.target_place))  # files do not hang
    if not asks_source and not asks_target:
        yield
        return
    watch = _Watch(config, master if asks_source else None, asks_target=asks_target)
    thread = threading.Thread(target=copy_context().run, args=(watch.run,), name="rplctl-watch", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        if watch.silent is not None:
            raise watch.silent from None
        raise
    finally:
        watch.over.set()


class _Watch:
    """The thread of `watched_peers`, which asks the servers until the block ends."""

    def __init__(self, config: Config, master: MasterInfo | None, *, asks_target: bool) -> None:
        self._config, self._master, self._asks_target = config, master, asks_target
        self.over = threading.Event()
        self.silent: RplError | None = None

    def run(self) -> None:
        late = 0
        while not self.over.wait(PAUSE_S):
            try:
                self._ask()
                late = 0
            except RplError as error:
                late += 1
                if late == MOST_LATE and not self.over.is_set():
                    self.silent = error
                    self._cut_off()
                    return

    def _ask(self) -> None:
        peers, config, master = Peers(self._config, Deadline(ANSWER_S)), self._config, self._master
        if self._asks_target:
            peers.ask_target(lambda: reach_target(config))
        if master is not None:
            peers.ask_source(master, lambda: reach_source(config, master))

    def _cut_off(self) -> None:
        """Close the connections to the servers, so that every waiting query ends with an error."""
        if self._master is not None:
            cut_off(self._master)
        if self._asks_target:
            cut_off_target(self._config.target_url)

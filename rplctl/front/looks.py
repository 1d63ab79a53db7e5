"""The state of the channels that SHOW REPLICA STATUS shows, cached for a tenth of a second for all clients.

One thread reads the states of all channels, with one connection to each target, and changes nothing. If a target does
not answer within ten seconds, the client gets an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, TypeVar

from rplctl.command.channel.context import known_channels, one_engine, open_repositories
from rplctl.command.process.thread_report import Threads
from rplctl.command.show_status import SlaveStatus, status_and_threads
from rplctl.config import Config
from rplctl.deadline import DEADLINE_S
from rplctl.errors import RplError, TargetError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition

SHARED_S: Final = 0.1
T = TypeVar("T")
ConfigOf = Callable[[str], Config]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The state of one channel at one moment: its status, its records and its threads."""

    status: SlaveStatus
    master: MasterInfo
    relay: RelayLogInfo
    threads: Threads

    @property
    def executed(self) -> BinlogPosition:
        return BinlogPosition(self.status.Relay_Master_Log_File, self.status.Exec_Master_Log_Pos)


class Looks:
    """The cached states of all channels.

    `config_of`: a function that returns the current options of a channel. It is called whenever a state is read.
    """

    def __init__(self, config_of: ConfigOf) -> None:
        self.config_of = config_of
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="look", initializer=self._begin)
        self._open = ExitStack()
        self._names: tuple[float, list[str]] = (float("-inf"), [])
        self._found: dict[str, tuple[float, Look]] = {}

    def _begin(self) -> None:
        self._open.enter_context(one_engine())

    def close(self) -> None:
        """Close the connections to the targets, but do not wait until they are closed.

        If a target does not answer, its connection remains open until the process ends.
        """
        self._worker.submit(self._open.close)
        self._worker.shutdown(wait=False)

    def forget(self) -> None:
        """Discard the cached states, because a statement has changed something. The next client gets a new state."""
        self._names = (float("-inf"), [])
        self._found = {}

    def names(self) -> list[str]:
        """Return the names of all channels. Raises TargetError or ConfigError if the channels cannot be listed."""
        at, names = self._names
        return names if time.monotonic() - at < SHARED_S else self._ask(self._list)

    def spelled(self, name: str) -> str:
        """Return the channel's name in the letter case of its records. Return an unknown name as it is."""
        return next((known for known in self.names() if known.casefold() == name.casefold()), name)

    def channel(self, name: str) -> Look:
        """Return the state of one channel, which is at most SHARED_S seconds old.

        Raises NotConfigured if there is no such channel, and RplError if its state cannot be read.
        """
        at, look = self._found.get(name, (float("-inf"), None))
        if look is not None and time.monotonic() - at < SHARED_S:
            return look
        return self._ask(lambda: self._look(name))

    def all(self) -> list[Look]:
        """Return the states of all channels. Raises RplError if one of them cannot be read."""
        return [self.channel(name) for name in self.names()]

    def readable(self) -> tuple[list[Look], list[RplError]]:
        """Return the states of all channels that can be read, and the error of each other channel.

        Raises TargetError or ConfigError if the channels cannot be listed.
        """
        found, errors = [], []
        for name in self.names():
            try:
                found.append(self.channel(name))
            except RplError as error:
                error.channel = name
                errors.append(error)
        return found, errors

    def _list(self) -> list[str]:
        names = known_channels(self.config_of(""))
        self._names = time.monotonic(), names
        return names

    def _look(self, name: str) -> Look:
        config = self.config_of(name)
        status, threads = status_and_threads(config, name)
        stored = open_repositories(config, name)
        look = Look(status=status, master=stored.master(), relay=stored.relay(), threads=threads)
        self._found[name] = time.monotonic(), look
        return look

    def _ask(self, question: Callable[[], T]) -> T:
        asked = self._worker.submit(question)
        try:
            return asked.result(DEADLINE_S)
        except TimeoutError:
            asked.cancel()
            raise TargetError(
                "the target did not answer in time", hint="to check the target, run: rplctl doctor"
            ) from None

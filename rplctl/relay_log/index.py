"""The relay log index `relay-bin[-CHAN].index`: which relay logs exist, oldest first.

One line a file, `./relay-bin.000001\\n`, as MySQL writes it. Invariant: the index is replaced as a whole, so it is the
old list or the new one, never a mix; a file is durable before its name is here, and the name is gone before the file.
Lines that are not ours (another folder, another base name, noise) are passed over, never opened.
Receiver (appends) and applier (purges) both change it: every change holds the index lock.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rplctl.channel import Channel
from rplctl.durable import private_folder, replace_file
from rplctl.errors import RelayLogError
from rplctl.locks import flock
from rplctl.plain_file import closing_descriptor, open_plain, read_if_there
from rplctl.position import log_number, numbered_log_name

MAX_LOG_NUMBER = 2**31 - 1  # the server's own limit
_NUMBER = re.compile("[0-9]{6,10}")


def files_by_base(folder: Path) -> dict[str, list[str]]:
    """Base name → the relay logs of all channels on disk, oldest first. Symbolic links do not count."""
    found: dict[str, list[str]] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if (base := _base_of(entry.name)) and entry.is_file(follow_symlinks=False):
                found.setdefault(base, []).append(entry.name)
    for names in found.values():
        names.sort(key=log_number)
    return found


def _base_of(name: str) -> str:
    """'' for what cannot be the name of a relay log."""
    base, _, number = name.rpartition(".")
    return base if _NUMBER.fullmatch(number) and 0 < int(number) <= MAX_LOG_NUMBER else ""


@dataclass(frozen=True, slots=True)
class RelayLogIndex:
    """The index of one channel. Nothing is cached: two processes work on it."""

    channel: Channel

    def names(self) -> list[str]:
        """Base names in the index, oldest first, without duplicates and foreign lines; [] when there is no index."""
        return self.names_in(self.read())

    def names_in(self, data: bytes) -> list[str]:
        """Return the `names` in the bytes of an index."""
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        names = map(self._own_name, dict.fromkeys(line.removeprefix("./") for line in lines))
        return [name for name in names if name is not None]

    def read(self) -> bytes:
        """The index as it is; empty when there is none."""
        return read_if_there(self.channel.relay_log_index_path)

    def is_canonical(self) -> bool:
        """True when the stored bytes are exactly what we would write for `names()` in order."""
        data = self.read()
        names = self.names_in(data)
        ordered = sorted(set(names), key=log_number)
        return names == ordered and data == self._encode(ordered)

    def path(self, name: str) -> Path:
        return self.channel.datadir / name

    def files(self) -> list[str]:
        """Base names of the relay logs on disk, whatever the index says, oldest first. Symbolic links do not count."""
        return files_by_base(self.channel.datadir).get(self.channel.relay_log_base, [])

    def next_name(self) -> str:
        """The name after every relay log that is listed or lies in the folder."""
        number = max((log_number(name) for name in [*self.names(), *self.files()]), default=0) + 1
        if number > MAX_LOG_NUMBER:
            raise RelayLogError(
                f"relay log number {number} is too large", channel=self.channel.name, hint="rplctl reset"
            )
        return numbered_log_name(self.channel.relay_log_base, number)

    def append(self, name: str) -> None:
        """Add a relay log that exists and is durable. Caller holds the lock."""
        self.replace([*self.names(), name])

    def remove(self, names: Sequence[str]) -> None:
        """Take names out. Caller holds the lock."""
        gone = set(names)
        self.replace([name for name in self.names() if name not in gone])

    def replace(self, names: Sequence[str]) -> None:
        """Make the index exactly these names, ordered by number. Caller holds the lock."""
        replace_file(self.channel.relay_log_index_path, self._encode(sorted(set(names), key=log_number)))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait for and hold the index lock: short, never across a network call or a scan of a relay log."""
        private_folder(self.channel.run_folder)
        path = self.channel.lock_path("relay-index")
        with closing_descriptor(open_plain(path, os.O_RDWR | os.O_CREAT, follow=False)) as descriptor:
            flock(descriptor)
            yield

    def _own_name(self, name: str) -> str | None:
        """The name when it is `<our base>.<number>`: other channels' bases differ, so theirs never match."""
        return name if _base_of(name) == self.channel.relay_log_base else None

    @staticmethod
    def _encode(names: Sequence[str]) -> bytes:
        return "".join(f"./{name}\n" for name in names).encode()

"""The relay log index `relay-bin[-CHAN].index`: the list of relay logs, oldest first.

It has one line per file, `./relay-bin.000001\\n`, as in MySQL. Invariants:
* The index is replaced atomically. So a reader sees the old list or the new one, never a mix.
* A file is durable before its name is added to the index. The name is removed before the file is deleted.
* Other lines (another folder, another base name, garbage) are skipped, and the files that they name are never opened.
* The receiver appends names and the applier purges them, so every change is made under the index lock.
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
    """Return the relay logs of all channels in the folder, oldest first, by their base name. Symbolic links do not
    count.
    """
    found: dict[str, list[str]] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if (base := _base_of(entry.name)) and entry.is_file(follow_symlinks=False):
                found.setdefault(base, []).append(entry.name)
    for names in found.values():
        names.sort(key=log_number)
    return found


def _base_of(name: str) -> str:
    """Return the base name in a file's name, which is the part before the number, or '' if a relay log cannot have this
    name.
    """
    base, _, number = name.rpartition(".")
    return base if _NUMBER.fullmatch(number) and 0 < int(number) <= MAX_LOG_NUMBER else ""


@dataclass(frozen=True, slots=True)
class RelayLogIndex:
    """The relay log index of one channel. Nothing is cached, because two processes change the index."""

    channel: Channel

    def names(self) -> list[str]:
        """Return the names of the channel's relay logs in the index, oldest first. Duplicates and other lines are
        skipped.
        """
        return self.names_in(self.read())

    def names_in(self, data: bytes) -> list[str]:
        """Return the file names in the bytes of an index, as `names` does for the stored index."""
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        names = map(self._own_name, dict.fromkeys(line.removeprefix("./") for line in lines))
        return [name for name in names if name is not None]

    def read(self) -> bytes:
        """Return the bytes of the index, or b'' if there is no index."""
        return read_if_there(self.channel.relay_log_index_path)

    def is_canonical(self) -> bool:
        """True if the index has exactly the bytes that rplctl itself would write for its names, in the order of their
        numbers.
        """
        data = self.read()
        names = self.names_in(data)
        ordered = sorted(set(names), key=log_number)
        return names == ordered and data == self._encode(ordered)

    def path(self, name: str) -> Path:
        return self.channel.datadir / name

    def files(self) -> list[str]:
        """Return the names of the channel's relay logs in the folder, oldest first, even if the index does not list
        them.

        Symbolic links do not count.
        """
        return files_by_base(self.channel.datadir).get(self.channel.relay_log_base, [])

    def next_name(self) -> str:
        """Return the name for a new relay log. Its number is 1 above the highest one in the index and in the folder.

        Raises RelayLogError if the number is too large.
        """
        number = max((log_number(name) for name in [*self.names(), *self.files()]), default=0) + 1
        if number > MAX_LOG_NUMBER:
            raise RelayLogError(
                f"relay log number {number} is too large",
                channel=self.channel.name,
                hint="to delete all relay logs and the position, run: rplctl reset",
            )
        return numbered_log_name(self.channel.relay_log_base, number)

    def append(self, name: str) -> None:
        """Add the name of a relay log, which already exists and is durable. The caller holds the index lock."""
        self.replace([*self.names(), name])

    def remove(self, names: Sequence[str]) -> None:
        """Remove these names from the index, but not the files. The caller holds the index lock."""
        gone = set(names)
        self.replace([name for name in self.names() if name not in gone])

    def replace(self, names: Sequence[str]) -> None:
        """Replace the index by these names, in the order of their numbers. The caller holds the index lock."""
        replace_file(self.channel.relay_log_index_path, self._encode(sorted(set(names), key=log_number)))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the index lock during the block. The block must be short, without a network call or a scan of a relay
        log.
        """
        private_folder(self.channel.run_folder)
        path = self.channel.lock_path("relay-index")
        with closing_descriptor(open_plain(path, os.O_RDWR | os.O_CREAT, follow=False)) as descriptor:
            flock(descriptor)
            yield

    def _own_name(self, name: str) -> str | None:
        """Return the name if it is `<base name of this channel>.<number>`, or None for a file of another channel."""
        return name if _base_of(name) == self.channel.relay_log_base else None

    @staticmethod
    def _encode(names: Sequence[str]) -> bytes:
        return "".join(f"./{name}\n" for name in names).encode()

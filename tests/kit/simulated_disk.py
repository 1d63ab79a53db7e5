"""A disk that loses what was not synced: calls below one folder are carried out for real and kept account of.

The account is what a disk may hold after a power cut. Of a file: what its last fsync left, plus any of the writes
since, whole, in sectors or not at all (where one is lost and what is behind it is not, there are zeros). Of a folder:
its entries at its last fsync, plus the first few of the changes since, in their order, as file systems with a journal
have it. A failed fsync loses some of the pending writes for good, and the next one says nothing of them. All by chance,
and all of it by one generator: the same seed gives the same disk. What is `volatile` (folder, name) is left out.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

SECTOR, BLOCK = 512, 4096
Change = tuple[int, bytes]  # (offset, data); data b'' cuts the file there


class PowerCut(BaseException):
    """The process is gone. What it does while it unwinds reaches nothing."""


@dataclass(eq=False)
class Inode:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)


@dataclass(eq=False)
class Folder:
    live: dict[str, Inode] = field(default_factory=dict)
    durable: dict[str, Inode] = field(default_factory=dict)
    pending: list[dict[str, Inode | None]] = field(default_factory=list)  # each at once: a rename is one


def _apply(content: bytearray, change: Change) -> None:
    offset, data = change
    if data:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data
    else:
        del content[offset:]
        content.extend(bytes(offset - len(content)))


class SimulatedDisk:
    """The files below `root`; folders once made stay. `calls_left`: mutating calls until the power goes."""

    def __init__(self, root: Path, chance: Random, volatile: Callable[[str, str], bool]) -> None:
        self.root, self.chance, self._volatile = root, chance, volatile
        self.calls_left: int | None = None
        self.failing: tuple[str, int] | None = None  # (call, errno) of the next such call
        self.calls = 0
        self._is_off = False
        self._folders: dict[str, Folder] = {}
        self._open: dict[int, tuple[Inode | None, Path, bool]] = {}  # descriptor → (None: a folder), path, appends

    def tick(self) -> None:
        """A point where the power may go: every call that changes something, and others if they say so."""
        self.calls += 1
        if self.calls_left is not None:
            self.calls_left -= 1
            self._is_off |= self.calls_left < 0
        if self._is_off:
            raise PowerCut

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        names = (
            "open",
            "fdopen",
            "close",
            "write",
            "pwrite",
            "fsync",
            "ftruncate",
            "replace",
            "rename",
            "link",
            "unlink",
        )
        with contextlib.ExitStack() as stack:
            for name in names:
                ours = getattr(self, f"_on_{'replace' if name == 'rename' else name}")
                stack.enter_context(patch.object(os, name, partial(ours, getattr(os, name))))
            yield

    def end_process(self) -> None:
        """The process ended, the machine did not: what it wrote is there, what it had open is not."""
        for descriptor in list(self._open):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._open, self._is_off, self.calls_left, self.failing = {}, False, None, None

    def cut_power(self, root: Path) -> None:
        """What had reached the disk, by chance, is in `root` then."""
        self.end_process()
        left: dict[Path, bytes] = {}
        for name, folder in self._folders.items():
            for entries in folder.pending[: self.chance.randint(0, len(folder.pending))]:
                _enter(folder.durable, entries)
            relative = Path(name).relative_to(self.root)
            left |= {relative / entry: self._after_cut(inode) for entry, inode in folder.durable.items()}
        shutil.rmtree(self.root)
        root.mkdir()
        self.root, self._folders = root, {}
        for path, content in left.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
            (root / path).chmod(0o600)
            folder = self._folders.setdefault(str((root / path).parent), Folder())
            inode = Inode(bytearray(content))
            folder.live[path.name] = folder.durable[path.name] = inode

    def _after_cut(self, inode: Inode) -> bytes:
        content = bytearray(inode.durable)
        self._reach(content, inode.pending)
        return bytes(content)

    def _reach(self, content: bytearray, pending: list[Change]) -> None:
        """Those that reach the disk: all, none, the first few, or any; of the last of them some sectors."""
        kind = self.chance.randrange(4)
        if kind == 0:
            return
        kept = [c for c in pending if self.chance.random() < 0.5] if kind == 3 else list(pending)
        if kind == 2:
            kept = kept[: self.chance.randint(0, len(kept))]
        torn = kept.pop() if kind > 1 and kept and kept[-1][1] else None
        for change in kept:
            _apply(content, change)
        if torn is not None:
            self._tear(content, *torn)

    def _tear(self, content: bytearray, offset: int, data: bytes) -> None:
        """The file has its new size, or ends with a block before it; sectors are written or as they were."""
        end = offset + len(data)
        ends = [end, *range(-(-offset // BLOCK) * BLOCK, end, BLOCK)]
        end = self.chance.choice(ends)
        content.extend(bytes(max(0, end - len(content))))
        while offset < end:
            stop = min(end, (offset // SECTOR + 1) * SECTOR)
            if self.chance.random() < 0.5:
                content[offset:stop] = data[: stop - offset]
            data, offset = data[stop - offset :], stop

    def _fails(self, call: str) -> OSError | None:
        if self.failing is None or self.failing[0] != call:
            return None
        number, self.failing = self.failing[1], None
        return OSError(number, os.strerror(number))

    def _account(self, path: Any) -> tuple[Folder, str] | None:
        """The folder's account and the entry's name; None when the path is none of ours."""
        folder, _, name = ("" if isinstance(path, int) else os.fspath(path)).rpartition("/")
        if not f"{folder}/".startswith(f"{self.root}/") or self._volatile(folder, name):
            return None
        return self._folders.setdefault(folder, Folder()), name

    def _changed(self, folder: Folder, entries: dict[str, Inode | None]) -> None:
        folder.pending.append(entries)
        _enter(folder.live, entries)

    def _on_open(self, real: Callable[..., int], path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        if flags & os.O_DIRECTORY:
            descriptor = real(path, flags, *arguments, **keywords)
            self._open[descriptor] = (None, Path(path), False)
            return descriptor
        account = self._account(path)
        if account is None:
            return real(path, flags, *arguments, **keywords)
        folder, name = account
        is_new = name not in folder.live
        if flags & os.O_CREAT and is_new or flags & os.O_TRUNC:
            self.tick()
        elif self._is_off:
            raise PowerCut
        descriptor = real(path, flags, *arguments, **keywords)
        if is_new:
            self._changed(folder, {name: Inode()})
        elif flags & os.O_TRUNC:
            folder.live[name].pending.append((0, b""))
        self._open[descriptor] = (folder.live[name], Path(path), bool(flags & os.O_APPEND))
        return descriptor

    def _on_fdopen(self, real: Callable[..., Any], descriptor: int, mode: str) -> Any:
        """A file object closes by itself: from here on the number may be anybody's."""
        assert mode == "rb", "what is written so would be in no account"
        self._open.pop(descriptor, None)
        return real(descriptor, mode)

    def _on_close(self, real: Callable[..., None], descriptor: int) -> None:
        self._open.pop(descriptor, None)
        real(descriptor)

    def _on_write(self, real: Callable[..., int], descriptor: int, data: Any) -> int:
        inode, _, appends = self._open.get(descriptor, (None, None, False))
        if inode is None:
            return real(descriptor, data)
        self.tick()
        whole = bytes(data)
        if self.chance.random() < 0.02:
            whole = whole[: self.chance.randint(1, len(whole))]  # a short write
        error = self._fails("write")
        if error is not None:
            whole = whole[: self.chance.randint(0, len(whole) - 1)]
        at = os.lseek(descriptor, 0, os.SEEK_END if appends else os.SEEK_CUR)
        written = real(descriptor, whole) if whole else 0
        if written:
            inode.pending.append((at, whole))
        if error is not None:
            raise error
        return written

    def _on_pwrite(self, real: Callable[..., int], descriptor: int, data: Any, offset: int) -> int:
        inode = self._open.get(descriptor, (None,))[0]
        if inode is not None:
            self.tick()
            inode.pending.append((offset, bytes(data)))
        return real(descriptor, data, offset)

    def _on_ftruncate(self, real: Callable[..., None], descriptor: int, size: int) -> None:
        inode = self._open.get(descriptor, (None,))[0]
        if inode is not None:
            self.tick()
            inode.pending.append((size, b""))
        real(descriptor, size)

    def _on_fsync(self, real: Callable[..., None], descriptor: int) -> None:
        """Nothing real: the account is what counts."""
        if descriptor not in self._open:
            real(descriptor)
            return
        self.tick()
        inode, path, _ = self._open[descriptor]
        error = self._fails("fsync")
        if inode is None:
            folder = self._folders.setdefault(str(path), Folder())
            if error is None:
                folder.durable, folder.pending = dict(folder.live), []
        else:
            if error is None:
                for change in inode.pending:
                    _apply(inode.durable, change)
            else:
                self._reach(inode.durable, inode.pending)
            inode.pending = []
        if error is not None:
            raise error

    def _on_replace(self, real: Callable[..., None], source: Any, target: Any) -> None:
        account, other = self._account(source), self._account(target)
        if account and other:
            self.tick()
            real(source, target)
            (folder, name), (into, new_name) = account, other
            assert folder is into
            self._changed(folder, {new_name: folder.live[name], name: None})
        else:
            real(source, target)

    def _on_link(self, real: Callable[..., None], source: Any, target: Any) -> None:
        account, other = self._account(source), self._account(target)
        if account and other:
            self.tick()
            real(source, target)
            self._changed(other[0], {other[1]: account[0].live[account[1]]})
        else:
            real(source, target)

    def _on_unlink(self, real: Callable[..., None], path: Any) -> None:
        account = self._account(path)
        if account is not None:
            self.tick()
        real(path)
        if account is not None:
            self._changed(account[0], {account[1]: None})


def _enter(entries: dict[str, Inode], changes: dict[str, Inode | None]) -> None:
    for name, inode in changes.items():
        if inode is None:
            entries.pop(name, None)
        else:
            entries[name] = inode

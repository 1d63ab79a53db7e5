"""The only place that makes bytes durable: fsync, rename, unlink, and the folder entry behind them.

Invariant: after `replace_file` returns, a power cut leaves the new content; before it, the old content; never a mix
(temporary file → fsync → rename → fsync of the folder). Files are created 0600 whatever the umask: they may hold
secrets. Every fsync is counted, so that WL#5125's table of extra fsyncs can be measured (`sync_count`). An OSError that
leaves a function with a path names that path, not our temporary file, and never none.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
LEFT_AFTER_S = 10.0  # no process needs its temporary file that long

sync_count: Counter[str] = Counter()  # file name → fsyncs by this process


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name this path in each OSError of the block."""
    try:
        yield
    except OSError as error:
        if error.filename2 is not None:  # of a rename
            del error.filename2
        error.filename = os.fspath(path)
        raise


def note(descriptor: int, path: Path, text: str) -> None:
    """All that an open file holds, for people to read: who has a lock. Not synced. Raises OSError with the path."""
    with naming(path):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def sync(descriptor: int, name: str) -> None:
    """fsync and count. An error is never retried: after it the kernel may have dropped the pages."""
    sync_count[name] += 1
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable (a created, renamed or removed name)."""
    with naming(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            sync(descriptor, folder.name)
        finally:
            os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte or raise: a short write is continued, never a hole."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


Guard = Callable[[], AbstractContextManager[object]]  # entered for the instant in which something becomes visible


def replace_file(
    path: Path, data: bytes, *, durable: bool = True, guard: Guard = nullcontext, keep: Path | None = None
) -> None:
    """Put `data` in place of the file at once. `durable=False` skips the fsyncs: atomic against a killed process
    only. `guard` is held around the rename alone.

    `keep`: a durable replacement stays under this name, too, whatever later ones that are not durable leave in `path`.
    """
    with naming(path):
        temporary = _written(path, data, durable=durable)
        if durable and keep is not None:
            second = temporary.with_name(f"{temporary.name}.keep")
            second.unlink(missing_ok=True)
            os.link(temporary, second)
            os.replace(second, keep)
        with guard():
            os.replace(temporary, path)
    if durable:
        sync_folder(path.parent)


def put_in_place(made: Path, path: Path) -> None:
    """Give a complete file next to `path` its name, atomically and durably. Raises OSError."""
    with naming(path):
        with made.open("rb") as file:
            sync(file.fileno(), path.name)
        os.replace(made, path)
    sync_folder(path.parent)


def rename(made: Path, path: Path) -> None:
    """Rename a synced file atomically; the caller syncs the folder above. Raises OSError: FileExistsError where
    a folder has the name and files in it, which stays.
    """
    with naming(path):
        try:
            os.rename(made, path)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            raise


def _written(path: Path, data: bytes, *, durable: bool) -> Path:
    """The temporary file beside it, whole."""
    temporary, descriptor = _open_temporary(path)
    try:
        write_all(descriptor, data)
        if durable:
            sync(descriptor, path.name)
    except BaseException:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)
        raise
    os.close(descriptor)
    return temporary


def _open_temporary(path: Path) -> tuple[Path, int]:
    """A new file beside it, for this thread alone, and its descriptor. What has the name already is not written to:
    somebody else may have it open.
    """
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}.{threading.get_native_id()}")
    temporary.unlink(missing_ok=True)  # a killed process with the same number left it
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    os.fchmod(descriptor, PRIVATE_FILE)
    return temporary, descriptor


@contextmanager
def replacing(path: Path) -> Iterator[int]:
    """A descriptor for content that comes in pieces: it takes the file's place at once when the block ends well; else
    nothing is left. Not durable: after a power cut the file may be junk, and its reader must see that. Raises OSError.
    """
    with naming(path):
        temporary, descriptor = _open_temporary(path)
    try:
        yield descriptor
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> list[str]:
    """Temporary files that a killed process left before its rename; their names. Those of a live process stay, and
    young ones: a pid of another container says nothing here.
    """
    left = []
    for path in folder.glob(".*.tmp*"):
        pid = path.name.rpartition(".tmp")[2].partition(".")[0]
        try:
            is_dead = pid.isdecimal() and not Path("/proc", pid).exists()
            if is_dead and time.time() - path.stat().st_mtime > LEFT_AFTER_S:
                path.unlink()
                left.append(path.name)
        except FileNotFoundError:  # another start removed it
            continue
    return left


def remove_file(path: Path) -> None:
    """Unlink (a missing file is fine) and make that durable."""
    with naming(path):
        path.unlink(missing_ok=True)
    sync_folder(path.parent)


def private_folder(path: Path) -> Path:
    """Create a 0700 folder with its parents where missing, these 0700, too; an existing one keeps its mode."""
    if not path.is_dir():
        if path.parent != path:
            private_folder(path.parent)
        path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        path.chmod(PRIVATE_FOLDER)
    return path


def is_readable_by_others(path: Path) -> bool:
    """True when group or others may read the file: a secret must not live there (design D14)."""
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)

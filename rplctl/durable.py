"""The only module that makes bytes durable: fsync, rename and unlink of files, and the fsync of their folder.

Invariant: a file that `replace_file` writes has either its old content or its new content, even after a power failure.
After `replace_file` has returned, the file has the new content. Its steps are: write a temporary file, fsync, rename,
fsync of the folder. New files have mode 0600, whatever the umask, because they may contain secrets. If a function with
a path raises OSError, the error names this path, not the temporary file.
`sync_count` counts every fsync, to measure WL#5125's table of extra fsyncs.
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
LEFT_AFTER_S = 10.0  # no process needs its temporary file longer than this

sync_count: Counter[str] = Counter()  # file name → fsyncs by this process


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make each OSError of the block name this path."""
    try:
        yield
    except OSError as error:
        if error.filename2 is not None:  # an error of a rename
            del error.filename2
        error.filename = os.fspath(path)
        raise


def note(descriptor: int, path: Path, text: str) -> None:
    """Replace the content of an open lock file by a text for people, without an fsync.

    Raises OSError, which names the path, if the file cannot be written.
    """
    with naming(path):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def sync(descriptor: int, name: str) -> None:
    """Call fsync, and count the call under `name`.

    The caller must not retry after an OSError. The kernel may have dropped the unwritten data, and a second fsync would
    succeed although the data is lost.
    """
    sync_count[name] += 1
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable after a file was created, renamed or removed."""
    with naming(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            sync(descriptor, folder.name)
        finally:
            os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all bytes. Raises OSError if the system rejects a write.

    If the system writes only a part, the function writes the rest, so the file never has a gap.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


Guard = Callable[[], AbstractContextManager[object]]  # entered only while a change becomes visible


def replace_file(
    path: Path, data: bytes, *, durable: bool = True, guard: Guard = nullcontext, keep: Path | None = None
) -> None:
    """Replace the file's content by `data` atomically.

    `durable=False` skips the fsyncs. The replacement then survives a killed process, but not a power failure. `guard`:
    a lock that is held only during the rename. `keep`: a second path. Each durable replacement also puts the new
    content there, so the file at `keep` always has the last durable content.
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
    """Sync the complete file `made` and rename it to `path` in the same folder, atomically and durably.

    Raises OSError if the file cannot be synced or renamed.
    """
    with naming(path):
        with made.open("rb") as file:
            sync(file.fileno(), path.name)
        os.replace(made, path)
    sync_folder(path.parent)


def rename(made: Path, path: Path) -> None:
    """Rename `made`, a synced file or folder, to `path` atomically. The caller must sync the parent folder.

    Raises FileExistsError if `path` is a folder that contains files; this folder is unchanged. Raises OSError if the
    rename fails for another reason.
    """
    with naming(path):
        try:
            os.rename(made, path)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            raise


def _written(path: Path, data: bytes, *, durable: bool) -> Path:
    """Write the data to a temporary file in the folder of `path`, and return the path of this file."""
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
    """Create a temporary file for this thread in the folder of `path`, and return its path and its descriptor.

    An existing file with the same name is removed and not overwritten, because another process may have it open.
    """
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}.{threading.get_native_id()}")
    temporary.unlink(missing_ok=True)  # a leftover of a killed process with the same pid
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    os.fchmod(descriptor, PRIVATE_FILE)
    return temporary, descriptor


@contextmanager
def replacing(path: Path) -> Iterator[int]:
    """Yield a descriptor for content that arrives in parts, and replace `path` by this content after the block.

    After an error in the block, `path` is unchanged and the new content is removed. There is no fsync: after a power
    failure, the file may be damaged, and its reader must detect this. Raises OSError if the file cannot be written.
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
    """Remove the temporary files of processes that were killed before their rename, and return the names.

    A file is kept if a process with its pid lives. A recent file is also kept, because the pid in its name may belong
    to a live process in another container.
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
    """Unlink the file durably. A missing file is not an error."""
    with naming(path):
        path.unlink(missing_ok=True)
    sync_folder(path.parent)


def private_folder(path: Path) -> Path:
    """Create a folder and its missing parents with mode 0700, and return the folder.

    A folder that already exists keeps its mode.
    """
    if not path.is_dir():
        if path.parent != path:
            private_folder(path.parent)
        path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        path.chmod(PRIVATE_FOLDER)
    return path


def is_readable_by_others(path: Path) -> bool:
    """True if the group or others have any permission on the file. Such a file must not have a secret (design D14)."""
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)

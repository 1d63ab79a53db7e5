"""Choose the folder of the compiled kernels, and check if the kernels are compiled. Imports neither numba nor numpy.

If the operator sets NUMBA_CACHE_DIR, kernels are stored in this folder. Otherwise, the first writable folder of this
list is used:
* `__pycache__` next to the modules, which is read-only in a system-wide install
* `$XDG_CACHE_HOME/rplctl/numba`, which a service without a home does not have
* `<datadir>/cache/numba`

Child processes use the same folder. If no folder is writable, each process compiles the kernels again.

Invariant: the second and the third folder are used only if no other user can write to them, or replace them through a
parent folder. The reason is that machine code in such a folder is executed when it is loaded.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from rplctl.durable import private_folder

LOCK_FILE = "rplctl.compiling"
STAMP_FILE = "rplctl.compiled"
VARIABLE = "NUMBA_CACHE_DIR"
DATADIR_FOLDER = Path("cache", "numba")

_SOURCES = Path(__file__).parent
_WRITE = os.W_OK | os.X_OK


def choose_folder(datadir: Path | None = None) -> None:
    """Set NUMBA_CACHE_DIR if the folder `__pycache__` is not writable. The caller has not imported Numba yet.

    If NUMBA_CACHE_DIR is already set, it is not changed. The chosen folder is not created. `datadir` is the data
    directory of the instance that the command uses.
    """
    if VARIABLE in os.environ or "numba" in sys.modules or is_kept_beside():
        return
    users = Path(users_cache())
    if is_private(users) and _is_safe(users, users / "numba"):
        os.environ[VARIABLE] = str(users / "numba")
    elif datadir is not None and _is_ours(place := datadir.resolve()) and _is_safe(place, place / DATADIR_FOLDER):
        os.environ[VARIABLE] = str(place / DATADIR_FOLDER)


def users_cache() -> str:
    """Return rplctl's folder in the cache of the user, who may remove the files in this folder at any time."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache_home, "rplctl")


def is_private(folder: Path) -> bool:
    """True if only this account can write to the folder, so that rplctl may load code from the folder.

    The result is also True if the folder is missing and only this account can create it.
    """
    return folder.is_absolute() and _is_safe(folder, folder)


def cache_folder() -> Path | None:
    """Return the folder of the compiled kernels, or None if no folder can be used or created."""
    choose_folder()
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen) if os.access(_nearest(Path(chosen)), _WRITE) else None
    return _SOURCES / "__pycache__" if is_kept_beside() else None


def made_folder() -> Path | None:
    """Create the folder of the compiled kernels if it is missing.

    Return the folder, or None if this is impossible.
    """
    folder = cache_folder()
    try:
        return None if folder is None else private_folder(private_folder(folder.parent) / folder.name)
    except OSError:
        return None


def is_compiled() -> bool:
    """True if the kernels were compiled after the last change of their sources."""
    folder = cache_folder()
    if folder is None:
        return False
    stamp = folder / STAMP_FILE
    return stamp.exists() and stamp.stat().st_mtime > max(source.stat().st_mtime for source in _SOURCES.glob("*.py"))


def is_kept_beside() -> bool:
    return os.access(_nearest(_SOURCES / "__pycache__"), _WRITE)


def _is_safe(above: Path, folder: Path) -> bool:
    """True if this account, and no other account, can write to `folder` or create it.

    For this, existing folders from `above` down to `folder` must belong to this account. Other accounts except root
    must not be able to replace a folder on the path to `above`.
    """
    inside = [path for path in (folder, *folder.parents) if path.is_relative_to(above)]
    is_ours = all(_is_ours(path) for path in inside if os.path.lexists(path))
    parents = {*above.parents, *above.resolve().parents}
    return is_ours and all(map(_keeps_entries, parents)) and os.access(_nearest(folder), _WRITE)


def _keeps_entries(folder: Path) -> bool:
    """True if only root and this account can replace entries of the folder.

    A missing folder is safe, because it is created with mode 0700.
    """
    try:
        found = folder.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    is_shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    return found.st_uid in (0, os.geteuid()) and not is_shared


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _nearest(folder: Path) -> Path:
    """Return the folder, or its first existing parent folder."""
    while not os.path.lexists(folder):
        folder = folder.parent
    return folder

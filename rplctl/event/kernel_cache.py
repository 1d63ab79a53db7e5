"""Where compiled kernels are kept, and whether they are there; loads neither numba nor numpy.

Compiled code lies beside the modules; when that folder is read-only (a system-wide install), in
`$XDG_CACHE_HOME/rplctl/numba`. Invariant: an operator's NUMBA_CACHE_DIR wins.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

LOCK_FILE = "rplctl.compiling"
STAMP_FILE = "rplctl.compiled"

_SOURCES = Path(__file__).parent


def choose_folder() -> None:
    """Point Numba at a writable folder; must run before Numba is imported."""
    if "NUMBA_CACHE_DIR" in os.environ or "numba" in sys.modules or os.access(_SOURCES, os.W_OK):
        return
    os.environ["NUMBA_CACHE_DIR"] = os.path.join(users_cache(), "numba")


def users_cache() -> str:
    """The folder of what is made once per machine and user, and may be removed at any time."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache_home, "rplctl")


def cache_folder() -> Path:
    choose_folder()
    return Path(os.environ.get("NUMBA_CACHE_DIR") or _SOURCES / "__pycache__")


def is_compiled() -> bool:
    """True when the kernels were compiled after their sources were last changed."""
    stamp = cache_folder() / STAMP_FILE
    return stamp.exists() and stamp.stat().st_mtime > max(source.stat().st_mtime for source in _SOURCES.glob("*.py"))

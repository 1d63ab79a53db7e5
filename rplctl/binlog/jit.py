"""The one door to Numba: `kernel` compiles a function over bytes, once per machine.

Invariant: a kernel sees read-only C-contiguous byte arrays (`byte_view`), so that each compiles exactly one version
whatever the caller holds (bytes, a socket buffer, a memory map). Compiled code is cached beside the module; when that
folder is read-only (a system-wide install), in `$XDG_CACHE_HOME/rplctl/numba`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
ByteArray: TypeAlias = "NDArray[np.uint8]"
Buffer: TypeAlias = "bytes | bytearray | memoryview | NDArray[np.uint8]"


def _choose_cache_folder() -> None:
    """Point Numba at a writable folder before it is imported; an operator's NUMBA_CACHE_DIR wins."""
    if "NUMBA_CACHE_DIR" in os.environ or "numba" in sys.modules or os.access(Path(__file__).parent, os.W_OK):
        return
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    os.environ["NUMBA_CACHE_DIR"] = os.path.join(cache_home, "rplctl", "numba")


_choose_cache_folder()

import numba  # noqa: E402  the cache folder must be known first

_LEAN: dict[str, Any] = {"cache": True, "nogil": True, "boundscheck": False, "_nrt": False}  # _nrt is in no stub


def cache_folder() -> Path:
    """Where compiled kernels are kept."""
    return Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__")


def kernel(function: F) -> F:
    """Compile on first call (about 0.3 s each, later from the cache); runs without the GIL."""
    return cast(F, numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def lean_kernel(function: F) -> F:
    """A kernel that creates no array: without reference counts it runs twice as fast and compiles sooner.

    Slices of its arguments are fine: the caller keeps those alive. An allocation fails to compile.
    """
    return cast(F, numba.njit(**_LEAN)(function))


def byte_view(data: Buffer) -> ByteArray:
    """A read-only uint8 view of any buffer; copies nothing (but a strided array, which it makes contiguous)."""
    if isinstance(data, np.ndarray) and not data.flags.c_contiguous:
        data = np.ascontiguousarray(data)
    view: ByteArray = np.frombuffer(data, dtype=np.uint8)
    view.flags.writeable = False
    return view

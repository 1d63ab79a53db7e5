"""Compile functions over bytes with Numba, once per machine (`kernel`, `lean_kernel`). No other module imports Numba.

Invariant: a kernel gets read-only C-contiguous byte arrays (`byte_view`). So Numba compiles exactly one version for
bytes, socket buffers and memory maps. The compiled code is saved if a folder for it exists (`kernel_cache`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rplctl.event.kernel_cache import made_folder

F = TypeVar("F", bound=Callable[..., Any])
ByteArray: TypeAlias = "NDArray[np.uint8]"
Buffer: TypeAlias = "bytes | bytearray | memoryview | NDArray[np.uint8]"


_IS_KEPT = made_folder() is not None


def _import_numba() -> Any:
    """Import Numba without the `.numba_config.yaml` of the working directory.

    This file can name a CACHE_DIR, from which Numba loads machine code. Numba reads the file during its import, if YAML
    is importable, and at each compilation.
    """
    if "numba" in sys.modules:  # the host program has imported Numba with its own settings
        import numba
    else:
        modules: dict[str, Any] = sys.modules
        yaml, modules["yaml"] = modules.get("yaml"), None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # "the file exists, but YAML is missing"
                import numba
        finally:
            del modules["yaml"]
            modules |= {"yaml": yaml} if yaml else {}
        numba.core.config._config_fname = ""
    return numba


numba = _import_numba()  # after the choice of the cache folder

from numba.core.caching import FunctionCache  # noqa: E402 - after numba's configuration
from numba.core.runtime.nrt import rtsys  # noqa: E402


class _KernelCache(FunctionCache):
    """A loader of machine code that does not prepare a compiler.

    Numba prepares its compiler before each load: it imports 80 modules and registers thousands of typing rules. This
    takes half a second of CPU time in each process. To run compiled code, only the symbols of Numba's runtime are
    necessary. If a kernel must be compiled, Numba prepares its compiler then.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


_LEAN: dict[str, Any] = {"nogil": True, "boundscheck": False, "_nrt": False}  # no type stub has _nrt


def kernel(function: F) -> F:
    """Compile `function` on its first call (about 0.3 s, later from the cache). It runs without the GIL."""
    return cast(F, _cached(numba.njit(nogil=True, boundscheck=False)(function)))


def lean_kernel(function: F) -> F:
    """Compile a kernel that creates no array. It has no reference counts, runs twice as fast and compiles sooner.

    Slices of the arguments are allowed, because the caller keeps the arguments alive. A function that allocates memory
    does not compile.
    """
    return cast(F, _cached(numba.njit(**_LEAN)(function)))


def _cached(function: Any) -> Any:
    if _IS_KEPT and not numba.config.DISABLE_JIT:
        function._cache = _KernelCache(function.py_func)  # type: ignore[no-untyped-call]
    return function


def byte_view(data: Buffer) -> ByteArray:
    """Return a read-only uint8 view of any buffer. Only an array that is not contiguous is copied."""
    if isinstance(data, np.ndarray) and not data.flags.c_contiguous:
        data = np.ascontiguousarray(data)
    view: ByteArray = np.frombuffer(data, dtype=np.uint8)
    view.flags.writeable = False
    return view

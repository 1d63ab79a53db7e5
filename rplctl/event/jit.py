"""The one door to Numba: `kernel` compiles a function over bytes, once per machine.

Invariant: a kernel sees read-only C-contiguous byte arrays (`byte_view`), so that each compiles exactly one version
whatever the caller holds (bytes, a socket buffer, a memory map). Compiled code
is kept where there is a folder for it (`kernel_cache`).
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
    """Import Numba without the `.numba_config.yaml` of the working directory: it can name a CACHE_DIR, from which
    Numba loads machine code. Numba reads the file when it is imported, if it finds YAML, and at each compilation.
    """
    if "numba" in sys.modules:  # imported by the program that we are a part of: its choice
        import numba
    else:
        modules: dict[str, Any] = sys.modules
        yaml, modules["yaml"] = modules.get("yaml"), None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that the file is there and YAML is not
                import numba
        finally:
            del modules["yaml"]
            modules |= {"yaml": yaml} if yaml else {}
        numba.core.config._config_fname = ""
    return numba


numba = _import_numba()  # the cache folder must be known first

from numba.core.caching import FunctionCache  # noqa: E402 - after numba's configuration
from numba.core.runtime.nrt import rtsys  # noqa: E402


class _KernelCache(FunctionCache):
    """Loads machine code without all that a compiler needs.

    Numba prepares its compiler before each load: it imports 80 modules and enters thousands of typing rules, half a
    second of CPU time in each process. Machine code needs the runtime's symbols only. A compilation prepares the rest.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


_LEAN: dict[str, Any] = {"nogil": True, "boundscheck": False, "_nrt": False}  # _nrt is in no stub


def kernel(function: F) -> F:
    """Compile on first call (about 0.3 s each, later from the cache); runs without the GIL."""
    return cast(F, _cached(numba.njit(nogil=True, boundscheck=False)(function)))


def lean_kernel(function: F) -> F:
    """A kernel that creates no array: without reference counts it runs twice as fast and compiles sooner.

    Slices of its arguments are fine: the caller keeps those alive. An allocation fails to compile.
    """
    return cast(F, _cached(numba.njit(**_LEAN)(function)))


def _cached(function: Any) -> Any:
    if _IS_KEPT and not numba.config.DISABLE_JIT:
        function._cache = _KernelCache(function.py_func)  # type: ignore[no-untyped-call]
    return function


def byte_view(data: Buffer) -> ByteArray:
    """A read-only uint8 view of any buffer; copies nothing (but a strided array, which it makes contiguous)."""
    if isinstance(data, np.ndarray) and not data.flags.c_contiguous:
        data = np.ascontiguousarray(data)
    view: ByteArray = np.frombuffer(data, dtype=np.uint8)
    view.flags.writeable = False
    return view

"""The folder of compiled code, as commands see it: chosen for the instance, filled once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.event.kernel_cache import cache_folder, choose_folder, is_compiled

if TYPE_CHECKING:
    import subprocess

__all__ = ["choose_folder", "compile_kernels"]

_background: list[subprocess.Popen[bytes]] = []  # left running on purpose


def compile_kernels(datadir: Path) -> None:
    """Once per machine, in the background, so that the first `start` need not wait for it (some seconds of CPU)."""
    import subprocess  # the module is imported by every command

    choose_folder(datadir)
    if cache_folder() is not None and not is_compiled():
        command = [sys.executable, "-m", "rplctl.result_set.warm_up"]
        null = subprocess.DEVNULL
        child = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True, cwd="/")
        _background.append(child)  # ends by itself

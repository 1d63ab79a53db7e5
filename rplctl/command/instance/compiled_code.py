"""Choose the folder of compiled code for the instance, on behalf of commands."""

from __future__ import annotations

from rplctl.event.kernel_cache import choose_folder

__all__ = ["choose_folder"]

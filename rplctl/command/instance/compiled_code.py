"""The folder of compiled code, as commands see it: chosen for the instance."""

from __future__ import annotations

from rplctl.event.kernel_cache import choose_folder

__all__ = ["choose_folder"]

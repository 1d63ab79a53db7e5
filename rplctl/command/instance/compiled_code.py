"""Provide the function that chooses the folder of compiled code to the commands (rplctl/event/kernel_cache.py)."""

from __future__ import annotations

from rplctl.event.kernel_cache import choose_folder

__all__ = ["choose_folder"]

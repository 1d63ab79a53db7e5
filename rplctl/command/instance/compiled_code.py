"""Provide the choice of the folder of compiled code to the commands. rplctl/event/kernel_cache.py implements it."""

from __future__ import annotations

from rplctl.event.kernel_cache import choose_folder

__all__ = ["choose_folder"]

"""The rows of the toy as SQL text for `rplctl repair`, as in SQLite."""

from __future__ import annotations

from rplctl.target.sqlite.undo import UNDO

__all__ = ["UNDO"]

"""The rows of the toy as `rplctl verify` compares them, as in SQLite."""

from __future__ import annotations

from rplctl.target.sqlite.compared import COMPARED

__all__ = ["COMPARED"]

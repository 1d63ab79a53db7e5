"""The toy's values are SQLite's."""

from __future__ import annotations

from rplctl.target.sqlite.form import FORM

__all__ = ["FORM"]

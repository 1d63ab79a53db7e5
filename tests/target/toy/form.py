"""The form of values for the toy, which is SQLite's."""

from __future__ import annotations

from rplctl.target.sqlite.form import FORM

__all__ = ["FORM"]

"""The value form of a lake, which is not used: values are Arrow arrays from the log (decode.arrow)."""

from __future__ import annotations

from rplctl.target.value_form import ValueForm

FORM = ValueForm()

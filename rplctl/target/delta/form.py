"""A lake's values are made as Arrow arrays from the bytes of the log (applier.decode.arrow); nothing asks for these."""

from __future__ import annotations

from rplctl.target.value_form import ValueForm

FORM = ValueForm()

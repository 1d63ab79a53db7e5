"""The value format of a lake. It has only defaults, because Spark tasks decode the log of the source into Arrow arrays
(`decode.arrow`).
"""

from __future__ import annotations

from rplctl.target.value_form import ValueForm

FORM = ValueForm()

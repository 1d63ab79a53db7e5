"""The value format of a lake. All its properties have the default values, because Spark tasks decode the source's log
into Arrow arrays (`decode.arrow`).
"""

from __future__ import annotations

from rplctl.target.value_form import ValueForm

FORM = ValueForm()

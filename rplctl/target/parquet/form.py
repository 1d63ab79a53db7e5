"""The value form of Delta Lake: values are made as Arrow arrays from the bytes of the log (applier.decode.arrow)."""

from rplctl.target.delta.form import FORM as FORM

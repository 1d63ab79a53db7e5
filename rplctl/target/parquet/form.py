"""The value form of Delta Lake, also for Parquet: values are Arrow arrays from the log (decode.arrow)."""

from rplctl.target.delta.form import FORM as FORM

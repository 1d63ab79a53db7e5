"""The value format of Delta Lake, which is also used for Parquet: Arrow arrays (`decode.arrow`)."""

from rplctl.target.delta.form import FORM as FORM

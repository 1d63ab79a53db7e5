"""Spark looks into every module called `pyspark_…` for a `DefaultSource`: the wheel puts this one beside `rplctl`.

Without pyarrow (`pip install 'rplctl[dataframe]'`) there is none: an error here would end each look of Spark's for any
format.
"""

__all__ = ["DefaultSource"]

try:
    from rplctl.data_source.source import BinlogDataSource as DefaultSource
except ModuleNotFoundError as error:
    if error.name != "pyarrow":
        raise
    __all__.clear()

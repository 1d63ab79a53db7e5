"""Spark's entry point: Spark imports every module `pyspark_…` for a `DefaultSource`; the wheel installs this module.

Without pyarrow (`pip install 'rplctl[dataframe]'`), the module has no `DefaultSource`. An error here would end Spark's
search for any format.
"""

__all__ = ["DefaultSource"]

try:
    from rplctl.data_source.source import BinlogDataSource as DefaultSource
except ModuleNotFoundError as error:
    if error.name != "pyarrow":
        raise
    __all__.clear()

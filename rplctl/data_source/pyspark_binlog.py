"""The entry point for Spark, which imports every module `pyspark_…` and takes the `DefaultSource` in it.

The wheel installs this module at the top level, where Spark finds it. Without pyarrow (`pip install
'rplctl[dataframe]'`), the module has no `DefaultSource`. An error here would end Spark's search for any format.
"""

__all__ = ["DefaultSource"]

try:
    from rplctl.data_source.source import BinlogDataSource as DefaultSource
except ModuleNotFoundError as error:
    if error.name != "pyarrow":
        raise
    __all__.clear()

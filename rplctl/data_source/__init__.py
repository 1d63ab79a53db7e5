"""Read binary logs as Spark DataFrames: `spark.read.format("binlog")` and `readStream` (man rplctl-dataframe(7)).

source.py           the functions that Spark calls: schema, partitions, offsets;  pyspark_binlog.py  Spark's entry point
options.py          the options of a query
live.py             a live server's logs, copied into a folder
walk.py             the driver: logs → pieces for tasks, each with the models in force
json_rows.py        rows as JSON;  column_type.py  the type of a column in the DataFrame

The modules piece, changes, arrow and logged_model of rplctl.decode do the work of a task.

The package is read-only: it has no replication position and writes no target. Invariant: each change of a committed
transaction is returned once, with the table's definition at that time. A change that cannot be represented exactly is
an error.
"""

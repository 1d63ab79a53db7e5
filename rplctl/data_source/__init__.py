"""Read binary logs as Spark DataFrames: `spark.read.format("binlog")` and `readStream` (man rplctl-dataframe(7)).

The modules piece, changes, arrow and logged_model of rplctl.decode do the work of a task.

The package is read-only: it has no replication position and writes no target. Invariant: each change of a committed
transaction is returned once, with the table's definition at that time. A change that cannot be represented exactly is
an error.

pyspark_binlog  the entry point that Spark finds by its name
source          the functions that Spark calls: schema, partitions, offsets
options         parses and checks the options of a query
live            copies a live server's logs into a folder
walk            divides logs into pieces for tasks, with their table models
column_type     the type of a column in the DataFrame
json_rows       converts rows of different tables to JSON
"""

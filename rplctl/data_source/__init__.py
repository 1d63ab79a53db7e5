"""Binary logs as Spark DataFrames: `spark.read.format("binlog")` and `readStream` (man rplctl-dataframe(7)).

    source.py           what Spark calls: schema, partitions, offsets;  pyspark_binlog.py  how Spark finds it
    options.py          what a query asks for
    live.py             a live server's logs, copied into a folder
    walk.py             the driver: logs → pieces for tasks, each with the models in force
    json_rows.py        rows as JSON

What a task makes of its piece is in rplctl.applier.decode: piece, changes, arrow, logged_model.

Read-only: it holds no position of a replica and writes nothing. Invariant: a change is told once, of a transaction that
is committed, under the definition that its table had there; what cannot be told exactly is an error, not a guess.
"""

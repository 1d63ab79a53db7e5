"""The applier (MySQL's SQL thread): one process per channel, which applies the relay log to the target with the help of
Spark.

    __main__.py         the process;  shared_process.py  one process for several channels
    options.py          the options of one START REPLICA (UNTIL);  interrupt.py  a stop in the middle of a batch
    job.py              one run, from start to stop;  run.py  the objects that a run uses
    loop.py             the loop on one connection to the target: read, apply, commit, report
    copying.py          the copy of tables, as the loop sees it;  spark_start.py  when Spark starts
    outage.py           the wait for an unreachable target
    feed/               relay log → batches: which transactions are due, and how many form a batch
    spark/              Java, the Spark session of a process, the Spark job of a batch
    apply/              one batch into the target: in bulk, in order, or one transaction at a time
    log_bin/            writes applied transactions to the binary log of applied transactions
    heartbeat.py        the rows of pt-heartbeat in the target
    report.py           the status file;  way_out.py  the hint for each error

The applier never connects to the source. It only reads files that the receiver writes, above all the relay log.
"""

"""The applier (MySQL's SQL thread): one process and one Spark job per channel, from the relay log to the target.

    __main__.py         the process;  shared_process.py  one process for several channels
    options.py          the options of one START REPLICA (UNTIL);  interrupt.py  STOP in the middle of a batch
    job.py              one run: its connections to the target;  run.py  what the connections share
    loop.py             the loop on one connection: feed, apply, commit, report
    copying.py          the copy of tables, beside the loop;  spark_start.py  when Spark starts
    outage.py           the wait for an unreachable target
    feed/               relay log → batches: which transactions are due, and how many form a batch
    spark/              Java, the Spark session of a process, the Spark job of a batch
    apply/              one batch into the target: in bulk, in order, or one transaction at a time
    log_bin/            writes applied transactions to the binary log of applied transactions
    heartbeat.py        rows of pt-heartbeat in the target
    report.py           the status file;  way_out.py  the hint for each error

Only this package imports pyspark. The applier never talks to the source: it shares only the relay log with the
receiver.
"""

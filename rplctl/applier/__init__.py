"""The applier (MySQL's SQL thread): one process and one Spark job per channel; relay log → target.

    __main__.py         the process;  shared_process.py  one process for several channels
    options.py          what START REPLICA says to a run (UNTIL);  interrupt.py  STOP in the middle of a batch
    job.py              the loop: feed, apply, commit, report;  outage.py  a target that is away is waited for
    feed/               relay log → batches: how far, how many, which GTIDs
    decode/             events → row images → net changes; pure, what a Spark task does
    spark/              Java, the Spark of a process, the job of a batch
    apply/              one batch into the target: in bulk, in order, one transaction at a time
    log_bin/            what was applied goes into the binary log of applied transactions
    heartbeat.py        rows of pt-heartbeat in the target
    report.py           the status file;  way_out.py  what an operator does about an error

The only package that imports pyspark. It never talks to the source; it meets the receiver in the relay log.
"""

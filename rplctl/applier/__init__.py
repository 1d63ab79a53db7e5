"""The applier (MySQL's SQL thread): one process and one Spark job per channel; relay log → target.

    job.py          the loop: plan, decode, commit, report
    plan.py         groups of the relay log → batches, cut at every barrier
    pipeline.py     the Spark job of a batch; row_stream.py and decode.py are what a task does
    ordered.py      what cannot be a set of net changes, in the source's order; finds the offender of a failed batch
    options.py      UNTIL and the like;  report.py  the status file

The only package that imports pyspark. It never talks to the source; it meets the receiver in the relay log.
"""

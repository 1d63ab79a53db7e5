"""The applier (MySQL's SQL thread): one process per channel, which applies the relay log to the target with the help of
Spark.

The applier never connects to the source. It only reads files that the receiver writes, above all the relay log.

A run and its loop:

__main__        the applier process of one channel or of several channels
shared_process  runs the appliers of several channels in one process
options         the options of one START REPLICA, for example UNTIL
job             one run of the applier, from start to stop
run             the objects that a run uses
spark_start     decides when a run starts Spark
outage          waits for a target that is unreachable
loop            reads, applies, commits and reports, over one connection to the target
interrupt       lets `rplctl stop` interrupt a large transaction
copying         the copy of tables, as the loop sees it

The work on a batch:

feed/           turns the relay log into batches of transactions
spark/          starts Spark, and runs the tasks that decode a batch
apply/          applies one batch to the target
log_bin/        selects the events for the log of applied transactions

Reports:

heartbeat       reads the rows of pt-heartbeat in the target
report          writes the status file that `show-status` reads
way_out         the hint for each error that ends the applier
"""

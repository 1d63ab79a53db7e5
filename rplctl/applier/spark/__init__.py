"""Runs the tasks that decode rows: finds Java, starts one Spark for each process, and runs the Spark job of a batch.

The start of Spark:

java                chooses the Java that runs Spark
class_archive       the archive of Spark's classes, parsed once per machine
make_class_archive  the program that creates this archive
own_gateway         starts the JVM of this process, and connects to it
session             starts and ends the Spark context of the process
loaded_daemon       the process from which Python workers are forked
worker_daemon       the program that Spark starts to get Python workers
cluster             settings and checks for executors on other machines

The job of a batch:

splits              divides a batch into jobs, and each job into splits
pipeline            runs the job of a batch
in_process          runs the same tasks without Spark
carried             gives a split's bytes to executors without the relay log
split_task          the task that decodes a split to net changes
lake_piece          the input and the result of a task for a lake
lake_task           the task that writes changes to files of a lake

Long-running tasks, and failures:

pool                gives ranges of the log to long-running tasks
pool_task           the loop of such a task: get, decode, answer
copy_task           tasks for rows of a copy, or in the source's order
answer              the bytes of a task's answer, and their checks
failure             error messages for failures of Spark
"""

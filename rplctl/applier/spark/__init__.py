"""Runs the tasks that decode rows: finds Java, starts one Spark for each process, and runs the Spark job of a batch.

java.py, class_archive.py   which Java is used; its classes, parsed once (make_class_archive.py parses them)
own_gateway.py, session.py  the JVM that this process starts, and the Spark context in it
worker_daemon.py            the program that Spark starts for Python workers
loaded_daemon.py            the parent process of these workers, with all modules loaded
splits.py                   which part of a batch is decoded at a time, and by which task
split_task.py               the task for a split (a range of the relay log)
lake_piece.py, lake_task.py the task for a lake
copy_task.py                the task for rows of a copy, and for events whose order counts
answer.py, pool_task.py     the answers of a long-running task of the pool, and the loop of this task
pool.py                     the driver's side of the pool
pipeline.py                 the job of a batch
in_process.py               runs the same tasks without Spark
cluster.py, carried.py      executors on other machines; how they get the bytes of a split
failure.py                  error messages for failures of Spark
"""

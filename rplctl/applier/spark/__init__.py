"""Where the tasks run: Java, one Spark for each process, the job of a batch.

java.py, class_archive.py   which Java; its classes parsed once (make_class_archive.py makes that in the background)
own_gateway.py, session.py  a JVM of our own, and the Spark context in it
worker_daemon.py            what Spark starts to get Python workers;  loaded_daemon.py  the process that forks them
splits.py                   what of a batch is decoded at a time, and by which task
split_task.py               what a task does for a split;  lake_piece.py, lake_task.py  the same for a lake
copy_task.py                the same for rows of a copy and for events whose order counts
answer.py, pool_task.py     what a task of the pool answers, and its loop;  pool.py  the driver's side: who gets a range
pipeline.py                 the job of a batch;  in_process.py  the same without Spark
cluster.py, carried.py      executors on other machines; how they come to the bytes of a split
failure.py                  how Spark fails, in words
"""

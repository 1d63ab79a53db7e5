"""Where the tasks run: Java, one Spark for each process, the job of a batch."""

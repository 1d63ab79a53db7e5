"""rplctl: a crash-safe MySQL/MariaDB replica for any SQL database, applied by Spark, run like a MySQL replica."""

__version__ = "0.1.0"

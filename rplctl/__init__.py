"""rplctl: a crash-safe replica of a MySQL or MariaDB server in another database, operated like a MySQL replica."""

__version__ = "0.1.0"

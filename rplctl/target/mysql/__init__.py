"""The kind of target for MySQL and MariaDB."""

"""The kind of target `mysql`: rplctl applies the source's changes to a MySQL or MariaDB server."""

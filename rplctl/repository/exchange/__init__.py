"""Import positions and settings from other replicas and tools, and export them: pure functions over their files.

servers     master.info and relay-log.info of MySQL 5.6, 5.7, 8.0 and MariaDB
rows        rows of a server that stores its positions in tables
statement   CHANGE MASTER TO for a running server
tools       Maxwell, Debezium, Canal, Tungsten
"""

"""Convert positions and settings from and to the formats of other servers and tools, with functions on bytes and text.

servers    master.info and relay-log.info of MySQL 5.6, 5.7, 8.0 and MariaDB
rows       rows of a server that stores its positions in tables
tools      positions of Maxwell, Debezium, Canal and Tungsten
statement  CHANGE MASTER TO for a running server
"""

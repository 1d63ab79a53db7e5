"""Positions and settings taken over from, and given to, other replicas and tools: pure functions over their files.

servers     master.info and relay-log.info of MySQL 5.6, 5.7, 8.0 and MariaDB
rows        rows of a server that keeps no files
statement   CHANGE MASTER TO for a server that runs
tools       Maxwell, Debezium, Canal, Tungsten
"""

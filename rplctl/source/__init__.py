"""The source: a live server or a folder of binary logs, as one stream of raw events (man rplctl-design).

base               the interface of the stream, and its values

A folder of binary logs:

log_folder         the files of the folder, and the start of each file
own_log            the readable part of a binary log of another rplctl
gtid_filter        finds the first log of a dump by GTID, and skips transactions
binlog_folder      the folder as a stream of events

A live server:

replica_id         the server id and the UUID with which rplctl registers
network_namespace  makes connections in another network namespace
connection         connects to the server: sign-in and session settings
flavor             the requests for a dump, for MySQL and MariaDB
interruption       interrupts a thread that waits for its source
dump               the dump of the server as a stream of events

Queries to a live server:

survey             queries for settings, the end of the log, and tables
clock              the difference between the source's clock and rplctl's clock
keeps              the time at which the source purges the next log
rights             the privileges of the account, and missing GRANT statements
snapshot           snapshots of tables at a known position of the log
select             the rows of one SELECT as raw packets
"""

from __future__ import annotations

from rplctl.source.base import DumpStart, EventBatch, ReplicaIdentity, SourceIdentity, SourceStream

__all__ = ["DumpStart", "EventBatch", "ReplicaIdentity", "SourceIdentity", "SourceStream"]

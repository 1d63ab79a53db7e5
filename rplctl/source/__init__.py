"""The source: a live server or a folder of binary logs, as one stream of raw events (man rplctl-design).

base.py                the interface of the stream, and its values
binlog_folder.py       a folder of binary logs as a stream
log_folder.py          the files of this folder, and the start of each file
own_log.py             the readable part of a binary log that another rplctl writes
gtid_filter.py         a dump by GTID from a folder: the first log, and the transactions to skip
connection.py          the connection to a live server: sign-in and session
network_namespace.py   connections in another network namespace
flavor.py              the requests before and for a dump, for MySQL and MariaDB
replica_id.py          the server id and the UUID with which rplctl registers
interruption.py        the interruption of a thread that waits for its source
dump.py                the dump of a live server as a stream
keeps.py               the binary logs that a server retains
clock.py               the difference between the source's clock and rplctl's clock
survey.py              queries to a live server
rights.py              the privileges of the account
snapshot.py            snapshots of tables at a known position of the log
select.py              the rows of one SELECT as raw packets
"""

from __future__ import annotations

from rplctl.source.base import DumpStart, EventBatch, ReplicaIdentity, SourceIdentity, SourceStream

__all__ = ["DumpStart", "EventBatch", "ReplicaIdentity", "SourceIdentity", "SourceStream"]

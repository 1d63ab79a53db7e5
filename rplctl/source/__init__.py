"""The source: a live server or a folder of binary logs, as one stream of raw events (man rplctl-design).

base.py              the interface of the stream and its values
binlog_folder.py     a folder of binary logs;  own_log.py  the readable part of a log that rplctl writes
log_folder.py        the files of the folder, and the start of each
gtid_filter.py       the first log and the transactions to skip for a GTID set;  snapshot.py, select.py  rows of tables
connection.py        sign-in and session of a live server;  network_namespace.py, flavor.py, replica_id.py
dump.py              the server's dump of binary logs
keeps.py             the binary logs that a server retains;  clock.py  the difference to the server's clock
survey.py            queries to a server, for checks;  rights.py  the privileges of the account
"""

from __future__ import annotations

from rplctl.source.base import DumpStart, EventBatch, ReplicaIdentity, SourceIdentity, SourceStream

__all__ = ["DumpStart", "EventBatch", "ReplicaIdentity", "SourceIdentity", "SourceStream"]

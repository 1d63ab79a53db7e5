"""The source: a live server or a folder of binary logs, behind one stream of raw events (man rplctl-design).

base.py              the stream and what it brings
binlog_folder.py     a folder of binary logs;  own_log.py  what of a log of our own is left out
log_folder.py        which files these are, and how each begins
gtid_filter.py       what an asked GTID set leaves out of a folder;  snapshot.py, select.py  rows of its tables
connection.py        sign-in and session of a live server;  network_namespace.py, flavor.py, replica_id.py
dump.py              its dump of binary logs
keeps.py             what a server keeps of its binary log;  clock.py  its clock against ours
survey.py            what a server says of itself, for checks;  rights.py  what its account may see
"""

from __future__ import annotations

from rplctl.source.base import DumpStart, EventBatch, ReplicaIdentity, SourceIdentity, SourceStream

__all__ = ["DumpStart", "EventBatch", "ReplicaIdentity", "SourceIdentity", "SourceStream"]

"""The relay log: binary log v4 files and their index. The receiver writes them, and the applier reads them.

Invariant: a reader gets only complete transactions, byte for byte as the source sent them, without a gap in the
source's positions. A file only grows, or it is cut once, at the end of a transaction. After a cut, the receiver begins
a new file (WL#4621, design D7).

An *event group* is a sequence of events that the applier applies as a whole. It is a transaction, a single statement,
or control events that only move the position.

index       the list of the relay logs, oldest first
log_file    one file as bytes: first events, transactions, intact part
origin      the source from which the files were fetched
useful      checks that the files continue the stored records
writer      creates files, appends events, syncs and rotates
received    the groups that arrive, and the tables they may change
locate      finds the place for a position in the source's log
gtid        computes Retrieved_Gtid_Set, and finds positions by GTID
reader      reads complete groups for the applier
purge       removes relay logs that are applied
event_list  the rows of SHOW RELAYLOG EVENTS
"""

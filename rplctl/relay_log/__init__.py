"""The relay log: binary log v4 files and their index. The receiver writes them, and the applier reads them.

Invariant: a reader gets only complete transactions, byte for byte as the source sent them, without a gap in the
source's positions. A file only grows, or it is cut once, at the end of a transaction. After a cut, the receiver begins
a new file (WL#4621, design D7).

index.py       the list of files
log_file.py    one file as bytes: its first events, its transactions, its intact part
writer.py      appending and rotating;  purge.py  removing
reader.py      complete groups for the applier;  locate.py, gtid.py  find a position, or GTIDs
origin.py      the source of the files;  useful.py  checks that the files continue the stored records
received.py    the groups that arrive, and the tables that they may have changed
event_list.py  SHOW RELAYLOG EVENTS

An *event group* is a sequence of events that the applier applies as a whole. It is a transaction, a single statement,
or control events that only move the position.
"""

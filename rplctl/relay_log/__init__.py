"""The relay log: binary log v4 files and their index, between the receiver (writes) and the applier (reads).

Invariant: what a reader is given is complete transactions, byte for byte as the source sent them, without a hole in the
source's positions. A file only grows, or is cut once at a transaction end; after a cut a new file is begun
(WL#4621, design D7).

index.py       which files there are
log_file.py    one file as bytes: its first events, its transactions, how far it is intact
writer.py      appending and rotating;  purge.py  removing
reader.py      complete groups for the applier;  locate.py, gtid.py  the place of a position, of GTIDs
origin.py      where the files were fetched from;  useful.py  whether they lead on from the records
event_list.py  SHOW RELAYLOG EVENTS
"""

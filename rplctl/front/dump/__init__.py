"""The binlog server: replicas read rplctl's binary log of applied transactions (`log_bin`) from `serve --mysql`.

A dump is the answer to one replica: the stream of events from its start position on. These are the modules in the order
in which a dump passes through them:

request   the requests of a replica: COM_REGISTER_SLAVE, COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, settings
serve     checks the privileges, and lists the connected replicas
logs      the channel whose log is read
sendable  the part of each log file that may be sent
choose    finds the first log file, or refuses the dump
skip      the transactions that a replica already has
until     the GTIDs after which a dump ends, on request
stream    sends events, log after log, and heartbeats

Invariants:

* After each commit, the applier writes a position record to the log. Events after the last position record are not
  sent. An event is sent only after this process has synced the file of the event. So a replica never has a transaction
  that the target lacks, even after a power failure.
* A dump writes only the lock file that protects a log from being purged. It holds no lock that a commit, a rotation or
  a recovery needs, so a slow or stopped replica does not delay them.
* Events are sent as they are in the file. Only the checksums are removed, if the replica requests this. Position
  records are not sent.
* A dump has one buffer of CHUNK bytes, even if a transaction is large or its replica is slow.
"""

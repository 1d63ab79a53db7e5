"""The binlog server: replicas read the binary log of applied transactions (`log_bin`) from the MySQL front, by GTID.

The modules in the order in which a dump passes through them:

    request    COM_REGISTER_SLAVE, COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, and the settings that a replica sends before
    serve      the privileges to read, and the replicas that are connected
    logs       the channel whose log is read
    sendable   how much of each log file may be sent
    choose     the log file at which a replica begins, and the reasons to refuse a replica
    skip       the transactions that a replica has already
    until      the GTIDs after which a replica wants the dump to end
    stream     events, log after log, and heartbeats

Invariants:

* No event past the last position record of a log is sent, and no event before an fsync of its file has returned in this
  process. Therefore a replica never has transactions that the target lacks, even after a power failure.
* A dump only reads files, except for the lock file that protects a log from being purged. It holds no lock that a
  commit, a rotation or a recovery waits for, so a slow or stopped replica delays none of them.
* Events are sent as they are in the file; only the checksum is removed, on request. The position records are not sent.
* A dump has one buffer of CHUNK bytes, whatever the size of a transaction or the speed of its replica.
"""

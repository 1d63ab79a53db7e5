"""The binlog server: replicas read the binary log of applied transactions (`log_bin`) from the MySQL front, by GTID.

In the order in which a dump passes through them:

    request    COM_REGISTER_SLAVE, COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, and the settings that a replica sends before
    serve      who may read, and the replicas that are connected
    logs       the channel whose log is read
    sendable   how much of each log file may be sent
    choose     the log file at which a replica begins, and the reasons to refuse a replica
    skip       the transactions that a replica has already
    stream     events, log after log, and heartbeats

Invariants:

* Nothing is sent past the last position record of a log, and nothing before an fsync of its file has returned in this
  process. A replica is therefore never ahead of the target, also after a power failure.
* A dump reads files and writes none but the lock that keeps a log from being purged. It holds no lock that a commit, a
  rotation or a recovery waits for, so a slow or stopped replica delays nobody.
* Events are sent as they are in the file; only the checksum is removed, on request. The position records are not sent.
* A dump has one buffer of CHUNK bytes, whatever the size of a transaction or the speed of its replica.
"""

"""Applies one batch to the target (design D2). The modules, in the order of the data:

batch.py               the planned strategies of a batch, its retries
strategy.py            which strategy takes a batch that another one rejects
table_source.py        where table models come from: StoredModels, or LiveTables
bulk.py                strategy BULK: net changes, job after job;  lake.py  strategy LAKE: files with every change
table_groups.py        tables that connections may share
ordered_batch.py       strategies IN_ORDER, ALONE and NO_ROLLBACK
in_order.py            a range event by event;  savepoint_groups.py  several transactions of the source in one
rows_ahead.py          its rows events, decoded by tasks before their turn;  row_error.py  one that does not fit
permitted.py           what REQUIRE_ROW_FORMAT and the like let through
unsupported_ddl.py     which statements about views, triggers and other objects are skipped (on_unsupported_ddl)
recopy.py              which tables are copied again after DDL that cannot be computed (on_uncomputable_ddl)
tolerance.py           which errors may be ignored (replica_exec_mode, replica_skip_errors)
cascade_refresh.py     generated columns of rows that foreign keys changed
live_tables.py         the source's own statements on a server;  target_catalog.py  its tables as they are
binlog_statement.py    a rows event for the server's BINLOG statement
committer.py           rows and position in one COMMIT, or the position after it
clone_load.py          rows of a copy of the source's tables (rplctl clone);  clone_rows.py  as a target takes them
clone_pieces.py        which thread loads which piece of a copy;  clone_loaders.py  the connections of these threads
clone_speed.py         how fast they come
failover_position.py   after a failover by GTID: the step without data to a lower position
"""

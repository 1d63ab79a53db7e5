"""Bringing one batch into the target: in bulk, in order, or one source transaction at a time (design D2).

batch.py               which of the three ways a batch goes, tried again, committed with its position
table_source.py        where table models come from: StoredModels, or LiveTables
bulk.py                net changes, job after job
in_order.py            a range event by event;  savepoint_groups.py  several transactions of the source in one
rows_ahead.py          its rows events, decoded by tasks before their turn;  row_error.py  one that does not fit
permitted.py           what REQUIRE_ROW_FORMAT and the like let through
unsupported_ddl.py     which statements about views, triggers and other objects are skipped (on_unsupported_ddl)
recopy.py              which tables are copied again after DDL that cannot be computed (on_uncomputable_ddl)
tolerance.py           what may be passed over (replica_exec_mode, replica_skip_errors)
cascade_refresh.py     generated columns of rows that foreign keys changed
live_tables.py         the source's own statements on a server;  target_catalog.py  its tables as they are
binlog_statement.py    a rows event for the server's BINLOG statement
clone_load.py          rows of a copy of the source's tables (rplctl clone);  clone_rows.py  as a target takes them
clone_speed.py         how fast they come
failover_position.py   after a failover by GTID: the step without data to a lower position
"""

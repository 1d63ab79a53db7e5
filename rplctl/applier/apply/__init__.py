"""Applies one batch to the target (design D2). The modules, in the order in which data passes through them:

batch.py               the strategies for a batch, and its retries
strategy.py            which strategy applies a batch that another one has rejected
table_source.py        the source of the table models: StoredModels, or LiveTables
bulk.py                strategy BULK: net changes, job after job;  lake.py  strategy LAKE: files with every change
table_groups.py        tables that several connections may apply in parallel
ordered_batch.py       strategies IN_ORDER, ALONE and NO_ROLLBACK
in_order.py            a range event by event;  savepoint_groups.py  several source transactions in one of the target
foreign_key_checks.py  whether the target checks foreign keys for the events of a range
rows_ahead.py          decodes rows events of a range in advance, in tasks;  row_error.py  MySQL's text for a failed row
permitted.py           the statements that REQUIRE_ROW_FORMAT and the primary key check permit
unsupported_ddl.py     which statements about views, triggers and other objects are skipped (on_unsupported_ddl)
recopy.py              which tables are copied again after DDL that cannot be computed (on_uncomputable_ddl)
tolerance.py           which errors may be ignored (replica_exec_mode, replica_skip_errors)
cascade_refresh.py     generated columns of rows that foreign keys changed
live_tables.py         the source's own statements on a server;  target_catalog.py  the table models of this server
binlog_statement.py    a rows event for the server's BINLOG statement
committer.py           commits rows and position together, or the position after the rows
clone_load.py          loads rows of copied tables (rplctl clone);  clone_rows.py  decodes and inserts the rows
clone_tables.py        creates and drops the tables of a copy;  snapshot_side.py  the applier's side of a snapshot
clone_pieces.py        which thread loads which piece of a copy;  clone_loaders.py  the connections of these threads
clone_speed.py         the rate at which rows of a copy are loaded
failover_position.py   after a failover by GTID: moves the position back, without data
"""

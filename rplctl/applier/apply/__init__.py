"""Applies one batch to the target (design D2).

The choice of a strategy:

batch               tries the strategies for a batch, and repeats failed attempts
strategy            the strategies, and the next one after a rejection
table_source        the source of the table models: StoredModels or LiveTables

Many rows at once:

bulk                strategy BULK: applies net changes, job after job
lake                strategy LAKE: writes files with every change
table_groups        the groups of tables that several connections apply in parallel

Event by event:

ordered_batch       strategies IN_ORDER, ALONE and NO_ROLLBACK
in_order            applies the events of a range in the source's order
savepoint_groups    applies several source transactions in one of the target
foreign_key_checks  decides whether the target checks foreign keys for an event
rows_ahead          decodes rows events in advance, in tasks
row_error           MySQL's error text for a row that fails
permitted           checks REQUIRE_ROW_FORMAT and the primary key check for a statement
unsupported_ddl     decides which unsupported statements are skipped (on_unsupported_ddl)
recopy              decides which tables are copied again after DDL (on_uncomputable_ddl)
tolerance           decides which errors are ignored (replica_exec_mode, replica_skip_errors)
cascade_refresh     recomputes generated columns after foreign key actions
live_tables         executes the source's own statements on a server
temporary_tables    the temporary tables of the source's sessions
target_catalog      the table models of this server
binlog_statement    prepares a rows event for the server's BINLOG statement

Commit:

committer           commits rows together with the position, or the position afterwards
failover_position   moves the position back after a failover by GTID

The copy of tables (`rplctl clone`):

snapshot_side       compares the applier's position with a snapshot's position
clone_statements    the DDL of a copy on a server target
clone_tables        creates and drops the tables of a copy
clone_load          loads chunk files at their position in the source's log
clone_pieces        gives the pieces of a copy to threads
clone_loaders       runs these threads, each with a connection
clone_rows          decodes the rows of a chunk file, and inserts them
clone_speed         computes the rate at which rows are loaded
"""

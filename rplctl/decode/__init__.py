"""Decode one piece of the log, mostly in a Spark task. Pure: no database, no clock, no state between calls.

A piece is a range of bytes of a log file.

From a piece to row images:

filter_rules       the channel's replication filters, with MySQL's rules
event_filter       removes the events that these filters exclude
transaction_words  patterns for queries that begin or end a transaction
undone             removes changes that the source rolled back within a transaction
tables_to_requeue  finds tables that a statement adds to a copy
ddl_context        the session in which the source executed a statement
row_stream         groups the verified row images of a piece by table
table_shape        checks that a table map matches its table's model
missing_columns    computes columns that a row image lacks

From row images to the changes that a target applies:

json_as_text       finds JSON documents that a text would change on a MySQL server
net_changes        turns row images into net changes per table, as bytes
overwritten        finds changes of one piece that a later piece overwrites
ordered_rows       the changes of each event, if their order counts
copied_rows        turns the rows of a chunk file into rows to insert

The format `binlog` and lakes report each change separately:

asked              names the changes that the reading program needs
piece              the input of a task: events of one file, and their context
logged_model       makes a table model from a table map alone
gtid_texts         prints the GTIDs of a whole piece as text
changes            turns a piece into single changes, as numbers and offsets
arrow              converts the cells of a column to an Arrow array
change_columns     the Arrow columns that changes of all tables have
lake_rows          turns changes into rows of a lake's table
"""

"""Decode one piece of the log, mostly in a Spark task. Pure: no database, no clock, no state between calls.

A piece is a range of bytes of a log file.

row_stream.py       a piece of the log → its verified and unpacked events → row images of each table
filter_rules.py     the channel's replication filters;  event_filter.py  removes the events that they exclude
ddl_context.py      the session that executed a statement on the source
table_shape.py      checks that a table map matches its table's model, and finds the format of the cells
missing_columns.py  computes columns that a row image lacks
net_changes.py      row images → net changes per table, encoded
overwritten.py      removes changes of one piece that a later piece overwrites
ordered_rows.py     rows events whose order counts → the changes of each
copied_rows.py      rows of a chunk file → rows to insert

The format `binlog` and lakes report each change separately:

piece.py            the input of one task;  logged_model.py  a table model from a table map alone
changes.py          a piece → its changes, as numbers and offsets;  gtid_texts.py  GTIDs as text
lake_rows.py        changes as rows of a lake's table
arrow.py            columns as Arrow arrays
"""

"""Decodes one piece of the log, mostly in a Spark task. Pure: no database, no clock, no state between calls.

row_stream.py       a piece of the log → its verified and unpacked events → row images of each table
filter_rules.py     the channel's replication filters;  event_filter.py  removes the events that they exclude
ddl_context.py      the session in which a statement ran
table_shape.py      whether a table map matches its table's model, and how its cells are read
missing_columns.py  columns that a row image lacks
net_changes.py      row images → net changes per table, encoded
overwritten.py      changes of one piece that a later piece overwrites
ordered_rows.py     rows events whose order counts → the changes of each
copied_rows.py      rows of a chunk file → rows to insert

If each change is reported separately (the format `binlog`, lakes):

piece.py            the input of one task;  logged_model.py  a table model from a table map alone
changes.py          a piece → its changes, as numbers and offsets;  gtid_texts.py  GTIDs as text
lake_rows.py        changes as rows of a lake's table
arrow.py            columns as Arrow arrays
"""

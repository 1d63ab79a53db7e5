"""Decoding of one piece of the relay log by a Spark task. Pure: no database, no clock, no state between calls.

row_stream.py       a piece of log → its events, checked and unpacked → row images of each table
filter_rules.py     the channel's replication filters;  event_filter.py  events without those that they exclude
ddl_context.py      the session a statement ran in
table_shape.py      does a table map fit its table's model, and how are its cells read
missing_columns.py  columns that a row image leaves out
net_changes.py      row images → net changes per table, encoded
overwritten.py      changes of one piece that a later piece overwrites
ordered_rows.py     rows events whose order counts → the changes of each
copied_rows.py      rows of a chunk file → rows to insert

Where each change is reported separately (the format `binlog`, lakes):
piece.py            the input of one task;  logged_model.py  a model out of a table map alone
changes.py          a piece → its changes, in numbers and offsets;  gtid_texts.py
lake_rows.py        changes as rows of a lake's table
arrow.py            columns in Spark's types, as Arrow arrays
"""

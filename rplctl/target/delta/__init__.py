"""The kind of target `delta`: a folder or bucket of Delta Lake tables. The tables contain the source's changes (layer
`changes`), or the source's current rows (layer `mirror`).

Both layers:

dialect     describes the kind, whose internal tables are in a SQLite file
place       reads the URL of a lake, and names its folders
form        the value format, which is Arrow for all columns
columns     maps the source's column types to Arrow types
tables      creates and changes Delta tables, one commit per table
target      applies changes to the layer `changes`, in batches

Only the layer `mirror`:

mirror      applies changes to tables that have the source's rows
overlay     collects the net changes of the open transaction by key
rewrite     rewrites the files that have changed rows
mirror_ddl  computes a table's files and columns after a DDL statement
compared    reads a mirror's rows for `rplctl verify`
"""

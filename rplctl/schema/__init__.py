"""Reads MySQL's DDL, keeps table models, and plans the work of a target, whatever its kind (design D10, D18).

A *model* is the MySQL definition of a table; a *catalog* has the models of all tables. This package knows no kind of
target: a package below `target` converts a plan to the target's DDL.

From the text of a statement to its actions:

context            settings of session and server on which a statement depends
lexer              splits a statement into tokens by the servers' rules
token_stream       reads tokens one after another, for the parsers
updated_names      finds the tables that a statement updates, for the filters
parse              parses DDL into actions, with the next five modules
table_definition   parses CREATE TABLE after the name of the table
column_definition  parses one column and its inline constraints
data_type          parses column types in all spellings of MySQL and MariaDB
partition          replaces function calls in VALUES of a partition by numbers
alter_clause       parses ALTER TABLE into operations, clause by clause
statement          the actions and operations that the parsers create
binary_literal     reads literals that were written after SET NAMES binary

From actions to table models, and to a plan for the target:

structure          the server's rules about names, keys and inherited charsets
model              the MySQL definition of a table, with its columns and keys
naming             names of tables and indexes for targets with one namespace
alter              applies ALTER TABLE to a model, in the server's order
plan               plans a statement: the new models, and the target's steps
affected           the objects of a server that a statement changes

Values that no row event contains:

value              the type of a value, and the error for an unknown value
default_value      computes default values for rows that lack a column
default_time       reads numbers and texts as dates and times of a default
generated          finds generated columns that need special care
row_key            finds the columns that identify a row
computed_value     computes a generated column of one row as a server does
converted_value    converts a stored value for ALTER TABLE as a server does
converted_number   reads, rounds and prints numbers without strict mode
converted_time     converts dates and times without strict mode

Models from other texts, and uses of a model:

dump               reads models from the text of mysqldump or mariadb-dump
source_catalog     reads models from a live source
definition         proves that a definition printed by a server is safe to execute
bounds             divides the keys of a table into chunks
cell_format        formats of cells that a table map does not contain
"""

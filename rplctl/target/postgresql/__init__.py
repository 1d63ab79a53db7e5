"""Implements the target kind PostgreSQL: it applies rows, DDL and two-phase commit to a PostgreSQL database.

Connections:

dialect     the properties of the kind, its settings and internal tables
driver      the interface of the driver's connection, which accepts only `Sql`
connection  opens connections with common settings, and converts errors
doctor      checks a server for `rplctl doctor`

Row changes:

target      applies rows and DDL over one connection
form        the format in which decoded values are passed
values      converts these values to the text that PostgreSQL reads
rows        writes row changes as SQL statements
bulk        applies few rows as parameters, and many rows with COPY
large       sends large parameters in pieces, as large objects
errors      converts errors about rows and DDL to MySQL's errors

DDL of the source:

ddl         translates a DDL plan into statements of PostgreSQL
ddl_alter   writes ALTER TABLE statements, which do not rebuild the table
ddl_table   writes columns, keys, indexes and comments of a table
ddl_type    the types of stored values, literals and quoted names
conversion  converts stored values after MODIFY

Commit, and reports:

two_phase   finds and ends prepared transactions over other connections
engine_log  the position of the write-ahead log, for `rplctl log-status`
compared    reads the target's rows for `rplctl verify`
undo        writes rows as SQL literals, for the undo of a repair
"""

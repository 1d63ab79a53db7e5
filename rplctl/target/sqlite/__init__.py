"""Implements the target kind SQLite, which is the default: it applies rows and DDL to one local file.

dialect     the properties of the kind, with one namespace for all tables
driver      the interface of the driver's connection, which accepts only `Sql`
target      applies rows and DDL over one connection
form        the format in which decoded values are passed
multiset    deletes copies of equal rows in a table without a key
large       writes large values in pieces, into space that zeros reserve
cascades    executes foreign key actions with triggers
ddl         translates a DDL plan into statements of SQLite
ddl_type    the types of stored values, and their literals
conversion  converts stored values after MODIFY
errors      converts SQLite's errors to MySQL's errors
engine_log  the position of the write-ahead log, for `rplctl log-status`
compared    reads the target's rows for `rplctl verify`
undo        writes rows as SQL literals, for the undo of a repair
"""

"""The MySQL front: a server that speaks the MySQL protocol, and answers like a replica (`rplctl serve --mysql`).

Monitors and scripts that were written for a MySQL or MariaDB replica work with this server without changes.

Invariants: a statement makes a change only through a function that a command of rplctl also calls. A client with the
role `reader` changes nothing. The server answers no statement before the sign-in, and closes a connection whose sign-in
has failed.

From the connection to the statement:

server         listeners, limits, and one thread per connection
wire           packets and their parts, with one deadline per packet
sign_in        the sign-in: greeting, TLS and authentication plugins
front          the state that all connections share
bugs           unexpected exceptions: an error for the client, the traceback in a log
session        commands of a signed-in client: statements, prepared statements
charset        the character sets of a connection
set_charset    SET NAMES, SET CHARACTER SET and SET character_set_… = …
binary         parameters and rows of prepared statements
statement      splits a statement into words, and reads them
table          the supported statements, each with its role and function

The answers:

show           SHOW statements, with the columns of MySQL or MariaDB
binlog_events  SHOW BINLOG EVENTS, and GTIDs before a position
describe       DESCRIBE, EXPLAIN and SHOW COLUMNS, for the tables of SELECT
dump/          the binary log for replicas
locks          LOCK INSTANCE FOR BACKUP and FLUSH TABLES WITH READ LOCK
administer     CHANGE, START, STOP, RESET …, which call functions of rplctl's commands
select         SELECT, executed by SQLite in memory, which an authorizer restricts
functions      functions of GTIDs, of the session, and functions that wait
tables         the rows of the tables that SELECT can read
table_columns  the columns of these tables
variables      system variables and status counters
status         SHOW REPLICA STATUS, with the columns of MySQL or MariaDB
looks          the state of the channels, read ten times per second at most
vendor         errors and notes with MariaDB's numbers and texts
result         the answer to a statement: rows, or OK
"""

"""The MySQL front: a server that speaks the MySQL protocol, and answers like a replica (`rplctl serve --mysql`).

Monitors and scripts that were written for a MySQL or MariaDB replica work with this server without changes. These are
the modules in the order in which a connection passes through them:

    server       listeners, limits, one thread per connection
    wire         packets and their parts, with one deadline per packet
    sign_in      the sign-in: greeting, TLS, authentication plugins
    front        the state that all connections share
    bugs         unexpected exceptions: an error for the client, the traceback in a log
    session      commands of a signed-in client: statements, prepared statements
    binary       parameters and rows of prepared statements
    statement    the words of one statement
    table        the supported statements, the role that each one needs and the function that answers it
    charset      the character sets of a connection
    set_charset  SET NAMES, SET CHARACTER SET and SET character_set_… = …
    vendor       errors and notes of MySQL with the numbers and texts of MariaDB
    show         SHOW …
    binlog_events  SHOW BINLOG EVENTS, and the GTIDs before a position of the binary log
    describe     DESCRIBE, SHOW COLUMNS, EXPLAIN
    dump         the binary log for replicas (a package)
    locks        LOCK INSTANCE FOR BACKUP and FLUSH TABLES WITH READ LOCK
    administer   CHANGE, START, STOP, RESET …, which call the functions of rplctl's commands
    select       SELECT, executed by SQLite in memory, which an authorizer restricts
    functions    functions of GTIDs, of the session, and functions that wait
    tables       the rows of the tables that SELECT can read
    table_columns  the columns of these tables
    variables    system variables and status counters
    status       SHOW REPLICA STATUS, with the columns of MySQL or MariaDB
    looks        the state of the channels, which is checked once per tenth of a second for all clients
    result       the answer to a statement

Invariants: a statement makes a change only through a function that a command of rplctl also calls. A client with the
role `reader` changes nothing. The server answers no statement before the sign-in, and closes a connection whose sign-in
has failed.
"""

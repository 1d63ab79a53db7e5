"""The MySQL protocol in front of rplctl's commands (`serve --mysql`), for monitors and runbooks written for a replica.

The modules in the order in which a connection passes through them:

    server       listeners, limits, one thread per connection
    wire         packets and their parts, with one deadline per packet
    sign_in      greeting, TLS, authentication plugins
    front        the state that all connections share
    bugs         unforeseen exceptions: an error for the client, the traceback in a log
    session      commands of a signed-in client: statements, prepared statements
    binary       parameters and rows of prepared statements
    statement    the words of one statement
    table        the supported statements, the role that each one needs and the function that answers it
    charset      the character sets of a connection
    set_charset  SET NAMES, SET CHARACTER SET and SET character_set_… = …
    vendor       errors and notes with the numbers of the other vendor
    show         SHOW …
    binlog_events  SHOW BINLOG EVENTS, and the GTIDs before a position of the binary log
    describe     DESCRIBE, SHOW COLUMNS, EXPLAIN
    dump         the binary log for replicas (a package)
    locks        LOCK INSTANCE FOR BACKUP and FLUSH TABLES WITH READ LOCK
    administer   CHANGE, START, STOP, RESET … by the functions of the command line
    select       SELECT, by an in-memory SQLite behind an authorizer
    functions    functions of GTIDs, of the session, and functions that wait
    tables       the rows of the tables that SELECT reads
    table_columns  the columns of these tables
    variables    system variables and status counters
    status       SHOW REPLICA STATUS in the columns of each vendor
    looks        the state of the channels; one check serves all clients for a tenth of a second
    result       the answer to a statement

Invariants: a statement changes something only by a function that the command line calls, too. A client with the role
reader changes nothing. No statement is answered before the sign-in, and a connection whose sign-in failed is closed.
"""

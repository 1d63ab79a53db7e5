"""The MySQL protocol in front of rplctl's commands (`serve --mysql`): monitors and runbooks ask as they ask a replica.

In the order in which a connection passes through them:

    server       listeners, limits, one thread a connection
    wire         packets and their parts, within one deadline
    sign_in      greeting, TLS, authentication plugins
    front        what all connections share
    session      commands of a signed-in client: statements, prepared statements
    binary       parameters and rows of prepared statements
    statement    the words of one statement
    table        each statement, the role that it needs and who answers it
    show         SHOW …
    dump         the binary log for replicas, with a page of its own
    administer   CHANGE, START, STOP, RESET … by the functions of the command line
    select       SELECT, by an in-memory SQLite behind an authorizer
    functions    functions of GTIDs, of the session, and those that wait
    tables       the rows of the tables that SELECT reads
    table_columns  their columns
    variables    system variables and status counters
    status       SHOW REPLICA STATUS in the columns of each vendor
    looks        the state of the channels, shared by all who ask within a tenth of a second
    result       what a statement answers

Invariants: no statement is carried out but by a function that the command line calls, too; a reader changes nothing;
nothing is answered before the sign-in is done, and a connection whose sign-in failed is closed.
"""

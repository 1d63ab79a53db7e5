"""The kind of target `mysql`: rplctl applies the source's changes to a MySQL or MariaDB server.

Connections and sessions:

dialect           describes the kind: it executes the source's statements
security          reads the options in the URL of a target
settings          the variables of rplctl's own sessions, as SET statements
connection        opens connections, and converts the driver's errors
fence             locks a channel on the server, so that one applier commits
kill              ends a running statement from a second connection
doctor            checks a server for `rplctl doctor`

Row changes:

target            applies rows with SQL, and the source's statements as they are
table_facts       caches the triggers, foreign keys and storage engines of tables
form              the format in which decoded values are passed to the server
values            writes values as SQL literals that are stored byte for byte
rows              writes row changes as SQL statements
bulk              applies net changes with LOAD DATA or bulk execution
bulk_execute      MariaDB's command that executes a statement for many rows
multiset          deletes copies of equal rows in a table without a key
large             applies single row changes, also with very large values
event_replay      applies row events with the BINLOG statement

Statements of the source:

session           sets the session variables of a statement, and resets them
time_zone         the time zone of statements with time_zone=SYSTEM
statement         prepares the text of a statement, and checks the answer
translation       translates DDL for another vendor or an earlier version
edited_statement  the text and the tokens that the translation edits
edited_elements   translates the columns, keys and checks of a statement
collations        the collation that replaces one of the other vendor
between_vendors   column types that both vendors convert alike
definitions       definitions of objects, which are compared after a crash

Commit, and reports:

two_phase         finds and ends prepared XA transactions over other connections
engine_log        reads the position of InnoDB's log, for `rplctl log-status`
undo              writes rows as SQL literals, for the undo of a repair
"""

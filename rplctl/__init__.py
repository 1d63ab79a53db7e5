"""rplctl: a crash-safe replica of a MySQL or MariaDB server in another database, operated like a MySQL replica.

docs/architecture.md follows one transaction through these packages and modules.

The program, and other ways to use rplctl:

__main__         runs `python -m rplctl` like the command `rplctl`
cli/             the command line: options, output and exit codes
command/         the work of each command, which is also the Python API
front/           the server that speaks the MySQL protocol (`serve --mysql`)
accounts         the accounts with which MySQL clients sign in to this server
data_source/     the format `binlog`, with which Spark reads binary logs as DataFrames
dataframe        registers this format in a Spark session
demo/            recorded binary logs for `demo` and `crash-test`

An instance and its channels:

config           the options of an instance, and the files that set them
option_text      parses values of options as mysqld does
option_file      sets and removes options in an option file
instance_id      the id with which an instance recognizes its rows in a target
channel          a channel's name, its files and the locks of its processes
renaming         renames a channel in steps that a crash may interrupt
secret           finds, stores and reads the passwords of sources and targets
target_url       inserts and hides passwords in a target's URL, and compares URLs

From the source to the relay log:

handshake/       opens sessions on MySQL and MariaDB servers: TLS and sign-in
source/          a live server, or a folder of logs, as an event stream
receive_buffer   holds received bytes in memory, or in a temporary file
event/           parses and builds the events of the binary log
source_zones     the time zone that SYSTEM means on a source, per relay log
system_zone      the UTC offsets of a server's zone SYSTEM at all times
receiver/        the process that writes the source's events to the relay log
recovery         repairs the relay log at each connection of the receiver
relay_log/       the relay log files and their index
clone/           reads the tables of a running source for the initial copy
result_set/      turns the rows of a SELECT into row images

From the relay log to the target:

applier/         the process that applies the relay log to the target
skip_list        the transactions that the operator wants the applier to skip
decode/          turns a piece of the log into net changes or rows
schema/          reads DDL, keeps table models, and plans a target's DDL
commit/          commits data and position together, or resolves them after a crash
position         the types of positions in the source's log and the relay log
info             MasterInfo and RelayLogInfo, the two records of positions and settings
repository/      stores these records in files or in tables
own_tables/      rplctl's internal tables in the target, except the repositories
target/          the databases and lakes that rplctl writes, one package per kind
skipped_objects  names of triggers, views and routines that the target lacks
applied_log/     the binary log of applied transactions (option log_bin)
verify/          compares source and target, and repairs the target's rows

Reports about an instance:

status           the status file of each running receiver and applier
log_status       the row of `log-status`: positions, GTIDs and logs at one moment
incident         reports the steps of an incident once, from error to recovery
hook             runs the operator's commands after an error and after recovery
history          the history of an instance, with one JSON object per line
log_file         the log files of receivers and appliers
mask             masks passwords in texts that come from servers or users

Errors and SQL text, for all packages:

errors           every error of rplctl, with its number and its exit code
mysql_errors     MySQL's and MariaDB's error numbers by name, and shared error texts
sql_text         the type of SQL text that rplctl may execute
sql_run          executes SQL of this type with SQLAlchemy

Processes, time and files, for all packages:

own_process      starts rplctl's own processes, and sends them signals
limits           raises limits of the process that a shell set too low
locks            the locks between the processes of an instance
deadline         one deadline for all queries of a command
attempts         repeats attempts within a limited time
plain_file       reads small files, and rejects devices, FIFOs and huge files
durable          makes files durable with fsync, rename and unlink
weak_members     lists a weak collection while other threads add members
failpoint        named crash points, at which a test can kill the process
"""

__version__ = "0.1.0"

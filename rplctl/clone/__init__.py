"""Reads the tables of a running source for the initial copy, one chunk of rows after another (man rplctl-design).

The applier loads the copy (applier/apply/clone_load.py). The state of the copy is in the target (own_tables/clones.py).
tests/clone/model.py has a model of the rules of the copy, with the loss that each rule prevents.

source_tables    the tables to copy, their sizes, and missing privileges
table_groups     groups of tables that foreign keys link; one snapshot reads each
late_keys        chooses the keys that are created after the rows are loaded
cloner           reads the source for a copy, in the receiver's process
read_from        checks a replica that is read instead of the source
shown_end        the position of a snapshot on such a replica
last_row         locks a row that the last change of a group wrote
snapshot_method  opens a snapshot, and finds its position in the source's log
changed_keys     the keys that change after an unfinished snapshot
go_on            the part of an unfinished snapshot that the next snapshot reuses
throttle         limits the load on the source and the target
lag              the lag of the source's replicas, which pauses a copy
reading          reads a snapshot's tables into chunk files
chunk_file       one chunk's rows and position, read completely or not at all
folder           the files that the cloner and the applier share
report           the status file of the cloner
"""

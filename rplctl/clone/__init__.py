"""Reads the tables of a running source for the initial copy, one chunk of rows after another (man rplctl-design).

    source_tables    the source's tables to copy, and those that it hides from the account
    table_groups  the tables that one snapshot must read together: those that foreign keys link
    cloner       reads the source, in the receiver's process;  reading  writes a snapshot's tables to chunk files
    snapshot_method  opens a snapshot of a table group, and finds its position in the source's log
    go_on        the part of an unfinished snapshot that the next snapshot reuses
    changed_keys the keys of rows that changed after an unfinished snapshot
    last_row     locks a row that the last change of a table group wrote
    read_from    a replica that is read instead of the source;  shown_end  the position of a replica's snapshot
    throttle     limits the load on the source;  lag  the lag of its replicas;  report  the status of the cloner
    folder       the files that the cloner and the applier share: the plan, claims, chunk files
    late_keys    the keys of a table that are created after its rows are loaded
    chunk_file   one chunk's rows as received, with their position in the log; it is read completely or not at all

The applier loads the copy (applier/apply/clone_load.py); its state is in the target (own_tables/clones.py).
tests/clone/model.py has a model of the rules of the copy, with the loss that each rule prevents.
"""

"""The initial copy of a living source, a chunk at a time (man rplctl-design).

    source_tables    what the source has to be copied, and what it hides from the account
    table_groups  which tables must be read in one snapshot: those that foreign keys link
    cloner       the reading end, beside the receiver;  reading  a snapshot's tables into chunk files
    go_on        what is taken over of a snapshot that was not read to its end
    changed_keys the rows that changed since such a snapshot
    received     what has come into the relay log meanwhile;  last_row  a row that its last change of a family wrote
    read_from    a replica that is read in the source's place;  shown_end  where in the source's log its rows are
    throttle     how much of the source it may take;  lag  of its replicas;  report  what it says of itself
    folder       where the two ends meet: the plan, claims, chunk files
    bounds       a table's keys → chunks that partition them; the server compares, we never do
    late_keys    which keys of a table are made when its rows are there
    chunk_file   one chunk's rows as they came, with the place of the log they belong to, whole or not at all

The loading end is the applier's (applier/apply/clone_load.py), the ledger is in the target (own_tables/clones.py).
The rules of the copy are modelled, with each rule's loss, in tests/clone/model.py.
"""

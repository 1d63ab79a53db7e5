"""The reading side of the applier: relay log → batches, in the order in which they are applied.

relay_feed.py         reads groups (transactions) after the committed position;  prefetch.py  works in advance
batch_size.py         how much of the log a batch has, and how many transactions a commit has
until.py, skip.py     the groups that START REPLICA UNTIL permits;  the transactions that the operator skips
plan.py               groups → batches, cut wherever groups cannot be applied together
gtids.py              the GTIDs of a batch
event_range.py        the bytes of a batch's events, unpacked if necessary
relay_watch.py        wakes an applier when its receiver has written
"""

"""The reading side of the applier: relay log → batches, in the order in which they are to be applied.

relay_feed.py         groups of the relay log from the committed position on;  prefetch.py  read before their turn
batch_size.py         how much of the log a batch takes, and how many transactions a commit
until.py, skip.py     what START REPLICA UNTIL lets through;  what the operator skips
plan.py               groups → batches, cut at every barrier
gtids.py              the GTIDs of a batch
event_range.py        where a batch's events lie, unfolded if need be
"""

"""The reading side of the applier: relay log → batches, in the order in which they are applied.

relay_watch  wakes an applier when its receiver has written
relay_feed   reads groups (transactions) after the committed position
until        the groups that START REPLICA UNTIL permits
skip         skips the transactions that the operator has chosen
batch_size   decides the size of batches, jobs and commits
plan         divides groups into batches that can be applied together
gtids        the GTIDs of a batch, which are stored with the position
event_range  the bytes of a batch's events, unpacked if necessary
prefetch     reads and decodes the next piece in advance
"""

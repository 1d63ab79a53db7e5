"""`check`, and the parts that it shares with `doctor` and `start`: findings about a channel. Nothing is changed.

verb           the command: the verdict on a channel and its reasons
findings       the permanent codes of findings and their levels
threads        the receiver and the applier: whether they run, report, and keep up
repository     the stored records: whether they agree
relay_log      relay logs, their index and the positions: whether they agree
ends           the target and the source: whether they answer and have the tables and logs that are needed
skipped        the source's triggers, views, routines and events that the target cannot have
clone          the progress of a copy of tables
verify         the result and the age of the last verify
progress       whether the receiver keeps up with the source's log
ahead          forecasts: purged logs, a full disk
source_end     the present end of the source's log
folder_end     the end of a folder of binary logs;  last_commit  a fast way if the newest log ends with a commit
sync_record    the last time at which a channel had everything that its source had
"""

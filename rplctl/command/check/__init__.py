"""Find the problems of a channel, for the command `check`. `doctor` and `start` use parts of it. Nothing is changed.

verb           the command: the verdict on a channel and its reasons
findings       the permanent codes of findings and their levels
threads        whether the receiver and the applier run, report, and keep up
repository     whether the stored records agree
relay_log      whether the relay logs, their index and the positions agree
ends           whether the target and the source answer, and have the tables and logs that are needed
skipped        the source's triggers, views, routines and events that the target cannot have
clone          the progress of a copy of tables
verify         the result and the age of the last verify
progress       whether the receiver keeps up with the source's log
ahead          forecasts: purged logs, a full disk
source_end     the present end of the source's log
folder_end     the end of a folder of binary logs;  last_commit  a fast way if the newest log ends with a commit
sync_record    the last time at which a channel had everything that its source had
"""

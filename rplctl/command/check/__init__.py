"""Find the problems of a channel, for the command `check`. `doctor` and `start` use parts of it. Nothing is changed.

verb         the command: the verdict on a channel and its reasons
findings     the permanent codes of findings and their levels
threads      checks that receiver and applier run, report, and keep up
repository   checks that each record exists once, is complete and safe
relay_log    checks that relay logs, their index and the positions agree
ends         checks that target and source answer, with the needed tables and logs
skipped      the source's triggers, views, routines and events that the target lacks
clone        the progress of a copy of tables
verify       the result and the age of the last verify
progress     checks that the receiver keeps up with the source's log
ahead        forecasts, for example of a purged log or a full disk
source_end   the present end of the source's log
folder_end   the end of a folder of binary logs
last_commit  finds a folder's end faster if the log ends with a commit
sync_record  the last time at which a channel had all transactions
"""

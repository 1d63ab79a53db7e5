"""The receiver (MySQL's I/O thread): pulls the source's binary log into the relay log. It never imports the applier.

__main__.py                the process
receiver.py                the loop: recover, connect, pull, again
identity.py, dump_start.py who we are to the source; where a connection begins
source_log_identity.py     is the source's log the one that was read before
pull.py                    batches of events into the relay log;  event_runs.py  how far as they are
retrieved_gtids.py         Retrieved_Gtid_Set as it grows;  flush.py  when MasterInfo is written
reporter.py                the status file
"""

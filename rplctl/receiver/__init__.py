"""The receiver (MySQL's I/O thread) writes the source's binary log to the relay log. It never imports the applier.

__main__.py                the process
receiver.py                the loop: recover the relay log, connect, receive, connect again
same_history.py            checks, with GTIDs, that the source's log is still the one that was read
pull.py                    writes batches of events to the relay log, and MasterInfo at the right times
event_runs.py              finds the events of a batch that are appended unchanged
retrieved_gtids.py         Retrieved_Gtid_Set while events arrive
reporter.py                the status file;  observer.py  the source's clock, end and purging
shared_process.py          one process for several channels
"""

"""The receiver (MySQL's I/O thread): writes the source's binary log to the relay log. It never imports the applier.

__main__.py                the process
receiver.py                the loop: recover, connect, pull, again
same_history.py            checks, with GTIDs, that the source's log is still the one that was read
pull.py                    writes batches of events to the relay log, and MasterInfo at the right times
event_runs.py              how many events of a batch are appended unchanged
retrieved_gtids.py         Retrieved_Gtid_Set while it grows
reporter.py                the status file;  observer.py  the source's clock, end and purging
shared_process.py          one process for several channels
"""

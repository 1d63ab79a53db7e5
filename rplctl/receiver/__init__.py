"""The receiver (MySQL's I/O thread): pulls the source's binary log into the relay log. It never imports the applier.

__main__.py                the process
receiver.py                the loop: recover, connect, pull, again
same_history.py            by GTID, the source's log is still the one that was read
pull.py                    batches of events into the relay log, and when MasterInfo is written
event_runs.py              how far a batch goes in as it is;  retrieved_gtids.py  Retrieved_Gtid_Set as it grows
reporter.py                the status file;  observer.py  the source's clock, end and purging
"""

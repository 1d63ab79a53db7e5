"""The receiver (MySQL's I/O thread) writes the source's binary log to the relay log. It never imports the applier.

__main__         the receiver process of one channel or of several channels
shared_process   runs the receivers of several channels in one process
receiver         the loop: recover the relay log, connect, receive, connect again
same_history     checks by GTIDs that the source's log is the same
pull             writes batches of events to the relay log, and MasterInfo
dropped_gtids    keeps the GTIDs of dropped transactions in the relay log
event_runs       finds the events of a batch that are appended unchanged
retrieved_gtids  keeps Retrieved_Gtid_Set up to date while events arrive
observer         observes the source's clock, end and purging, and the disk
reporter         writes the status file that `show-status` reads
"""

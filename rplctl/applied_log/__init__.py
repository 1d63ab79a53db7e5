"""The binary log of applied transactions (`log_bin`, design D9): files, position records, writer, purge.

files       names and folders of the logs, and option values
record      the event that stores the position after the events before it
end         finds and repairs the end of a log after a crash
binary_log  what each commit of an applier writes to the log
writer      appends events to the log and rotates its files
purge       removes logs, as PURGE BINARY LOGS does
"""

"""The binary log of applied transactions (`log_bin`, design D9): files, position records, writer, purge.

files       names and folders of the logs; option values
record      the event that stores the position after the events before it
end         the end of a log after a crash
binary_log  the binary log of one channel, for its applier: what each commit writes
writer      appends events and rotates files
purge       PURGE BINARY LOGS
"""

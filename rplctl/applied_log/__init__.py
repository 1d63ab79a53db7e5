"""The binary log of applied transactions (`log_bin`, design D9): files, position records, writer, purge.

files      names and places; option values
record     the event that says which position what stands before it leads to
end        where a log ends after a crash
writer     appending and rotating
purge      PURGE BINARY LOGS
"""

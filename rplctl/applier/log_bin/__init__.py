"""The applier's side of the binary log of applied transactions (option log_bin); the files are `applied_log`'s.

events.py     what of a batch goes into the log
catch_up.py   log and target come together at start, after a crash
"""

"""Select the events for the binary log of applied transactions (option log_bin). `applied_log` writes its files.

catch_up  makes log and target agree at start, after a crash
events    the events of a batch that are written to the log
"""

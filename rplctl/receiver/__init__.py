"""The receiver (I/O thread): pulls the source's binary log into the relay log. Never imports the applier (design
section 1).
"""

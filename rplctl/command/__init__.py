"""One function per verb: takes a Config and typed arguments, returns a dataclass, prints nothing and never exits.

This is also the Python API: `from rplctl.command.start import start`. Every error is an RplError of errors.py.
What is no verb is in a package: channel (its records), process (its threads), instance (the folder), check, selftest.
Spark, SQLAlchemy and Numba are imported inside the functions that need them, so that asking for help, or for the status
of a FILE repository, stays fast (design D16).
"""

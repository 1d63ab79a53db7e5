"""One function per verb: it takes a Config and typed arguments, returns a dataclass, prints nothing and never exits.

`rplctl VERB` is VERB.py (check: check/verb.py). This is also the Python API: `from rplctl.command.start import start`.
Every error is an RplError of errors.py. Code that is not a verb is in a package:

channel    the records of a channel
cloning    the steps of `clone` before and after the copy itself
check      the findings about a channel
instance   files and locks of the whole instance folder
process    the processes of a channel's threads
selftest   the inside of `crash-test`

Modules that load Spark, SQLAlchemy or Numba are imported inside the functions that need them, unless every call needs
them. So the help and the status of a FILE repository are fast (design D16; tests/house/test_imports.py checks this).
"""

"""One function per verb: takes a Config and typed arguments, returns a dataclass, prints nothing and never exits.

`rplctl VERB` is VERB.py (check: check/verb.py). This is also the Python API: `from rplctl.command.start import start`.
Every error is an RplError of errors.py. What is no verb is in a package:

channel    a channel's records
cloning    what `clone` does before and after the copy itself
check      what can be found about a channel
instance   what belongs to the instance folder as a whole
process    the processes of a channel's threads
selftest   `crash-test` on the inside

What loads Spark, SQLAlchemy or Numba is imported inside the functions that need it, where not each call does, so that
asking for help, or for the status of a FILE repository, stays fast (design D16; held by tests/house/test_imports.py).
"""

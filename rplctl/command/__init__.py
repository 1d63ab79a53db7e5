"""Implement each verb as one function, which receives a Config and typed arguments and returns a dataclass.

A verb such as `rplctl start` is in the module of that name, start.py (`check` is in check/verb.py). The functions print
nothing and never exit. They are also the Python API: `from rplctl.command.start import start`. Every error that they
raise is an RplError of errors.py. Code that is not a verb is in a package:

channel/   reads and changes the records of a channel
process/   starts, watches and stops the processes of a channel
cloning/   the steps of `clone` before and after the copy itself
check/     the findings about a channel, for `check` and `doctor`
watching/  observes channels repeatedly, for `metrics`, `serve` and `top`
instance/  files and locks of the whole instance folder
selftest/  the crash cases of `crash-test`, and their runs

Spark, SQLAlchemy and Numba take long to load. So a function imports a module that loads one of them only when the
function runs, except where every call needs the module. This keeps the help and the status of a FILE repository fast
(design D16; tests/house/test_imports.py checks this).
"""

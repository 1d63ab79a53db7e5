"""Implement `crash-test`: rplctl kills itself at each crash point, and compares the state after the restart.

crash_cases    the crash points, commit modes and kinds of transactions, and the expected outcome of each case
crash_run      a scratch instance whose steps are child processes
crash_steps    the steps around the applier
crash_walk     the run of the cases, and the verdict on each
clone_walk     the crash points in a copy of tables from a running source
"""

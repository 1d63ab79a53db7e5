"""Implement `crash-test`: rplctl kills itself at each crash point, and compares the state after the restart.

crash_cases  the crash points, commit modes and kinds of transactions, with expected outcomes
crash_run    a scratch instance whose steps are child processes
crash_steps  the steps before and after the applier
crash_walk   runs the cases, and judges the state after each
clone_walk   runs the crash points of a copy from a running source
"""

"""The inside of `crash-test`: the program kills itself at each crash point and compares the state afterwards.

crash_cases    the crash points, commit modes and kinds of groups, and the outcome of each case
crash_run      a scratch instance whose steps are child processes
crash_steps    the steps around the applier
crash_walk     runs the cases
clone_walk     runs the crash points of a copy from a running source
"""

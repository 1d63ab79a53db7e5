"""`crash-test` on the inside: the program kills itself at each crash point, and compares.

crash_cases    which points, commit modes and kinds of groups there are, and the outcome of each
crash_run      a scratch instance whose steps are child processes
crash_steps    the steps around the applier
crash_walk     walks the cases
clone_walk     walks the points of a copy, from a living source
"""

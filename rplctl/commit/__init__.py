"""Commits data and position together: one target transaction has the changes and the position (WL#2775 REQ-5).

A commit passes through these files in this order:

position_store    chooses where the position is stored, per commit mode (design D3)
belonging         checks that the target belongs to position and instance (D29)
written_source    records on this host the source in the target's owner row
step              the positions before and after a commit
transaction       one transaction that moves the position, applies and commits, with crash points
noted             executes a statement with an implicit commit exactly once (D28)
marker            mode marker: stores the position in the target, then in a file
two_phase         mode xa: target and position commit in two phases (WL#3970)
branches          commits one batch over several connections, by tables (D24)
per_table         mode per-table: the tables of a lake commit separately
xid               the names of rplctl's transactions in two-phase commit
participants/     the position as a participant in two-phase commit
ambiguous_commit  finds the outcome of a COMMIT that was not answered
resolve           commits or rolls back transactions that a crash left prepared
"""

"""Commits data and position together: one target transaction has the changes and the position (WL#2775 REQ-5).

A commit passes through these files in this order:

    position_store     chooses where the applier's position is stored, per commit mode (design D3); mode transaction
    belonging          checks that the target belongs to the stored position, and to this instance (D29)
    written_source     the local record of the source that this instance last stored in the target's owner row
    step               the positions before and after a commit
    transaction        the one transaction: compare-and-swap the position, apply, commit, with named crash points
    noted              statements that commit by themselves are first recorded in the target, and executed once (D28)
    marker             mode marker: a row in the target has the position, and a FILE repository is updated after COMMIT
    two_phase          mode xa: the target and a position outside the target commit together (WL#3970)
    branches           several connections commit one batch together, each with its own tables (D24)
    per_table          mode per-table: tables of a lake commit one by one
    xid                the names of rplctl's transactions in two-phase commit
    participants/      the position as a participant in two-phase commit, one module per kind of storage
    ambiguous_commit   finds out the outcome of a COMMIT that the target did not answer
    resolve            at the next start, commits or rolls back transactions that a crash left prepared
"""

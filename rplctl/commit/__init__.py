"""Commits data and position together: one target transaction has the changes and the position (WL#2775 REQ-5).

A commit passes through these files in this order:

    position_store     chooses where the applier's position is stored, per commit mode (design D3); mode transaction
    belonging          checks that the target belongs to the stored position, and to this instance (D29)
    written_source     the source that this instance last wrote into the owner's row in the target
    step               the positions before and after a commit
    transaction        the one transaction: compare-and-swap the position, apply, commit, with named crash points
    noted              statements that commit by themselves are recorded first, and executed once (D28)
    marker             mode marker: a row in the target has the position, and a FILE repository follows it
    two_phase          mode xa: the target and a position outside of it commit together (WL#3970)
    branches           several connections commit one batch, each its own tables (D24)
    per_table          mode per-table: tables of a lake commit one by one
    xid                the names of rplctl's transactions in two-phase commit
    participants/      the position as a participant in two-phase commit, one module per kind of storage
    ambiguous_commit   a COMMIT without an answer: the target is queried for its outcome
    resolve            at the next start: transactions that a crash left between two phases
"""

"""Where data and position meet: one target transaction holds the changes and the position after them (WL#2775 REQ-5).

ledger.py       who keeps the applier's position, per commit mode (design D3)
transaction.py  the one transaction: compare-and-swap the position, apply, commit, named crash points
models.py       MySQL-side table models, versioned by position, written with the DDL that made them (design D18)
tables.py       our own tables in the target
"""

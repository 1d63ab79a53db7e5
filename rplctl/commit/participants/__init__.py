"""Stores the position as a participant in two-phase commit, with one class for each kind of storage (WL#3970).

choice  chooses the participant, and finds those that may have a decision
base    the interface of a participant
line    FILE: a `prepared:` line after relay-log.info's record
page    FILE, prepared_position=pages: a shadow-page file next to relay-log.info
row     TABLE: a row in another engine than the data
log     the binary log's last record; the repository is written later
"""

"""The position takes part in two-phase commit: each kind of its storage is a participant (WL#3970).

base     the interface of a participant
line     FILE: a `prepared:` line after relay-log.info's record
page     FILE, prepared_position=pages: a shadow-page file next to relay-log.info
row      TABLE in another engine than the data
log      the binary log's last record, which the repository follows
choice   which of them stores the position, and which may have a decision
"""

"""The position takes part in two-phase commit: each kind of place for it is a participant (WL#3970).

base     what a participant promises
line     FILE: a `prepared:` line behind relay-log.info's record
page     FILE, prepared_position=pages: a shadow-page file beside relay-log.info
row      TABLE in another engine than the data
log      the binary log's last record, which the repository follows
choice   which of them keeps the position, and which may hold a decision
"""

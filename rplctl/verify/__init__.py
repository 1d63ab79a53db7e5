"""Is the copy right, while it runs: source and target compared row by row, and repaired (man rplctl-design).

table         one table: hashes of both sides, then what of them differs
source_side   its rows on the source           target_side   its rows on the target, and a stage beside them
offline_source  a stopped source: a server of our own on a copy of its folder
pair          the table as both have it        hashes        rows → hashes, buckets of them
server_sums   sums that two servers make themselves, where both define the table alike
spool         rows of unequal buckets → suspects
resolve       suspects → differences, by position; the target decides
log_keys      what the relay log touches meanwhile
key_values    a key's values as text and as literals
progress      what is done of a verify that is not over
report_file   what was found: for people, and for `rplctl repair`
repair        the keys that differ: the target's rows become the source's
log_rows      the source's rows at the place where the target is
undo          SQL that takes it back              shown          SQL of a dry run, for people
"""

"""Compares source and target row by row while the channel runs, and repairs the target (man rplctl-design).

table           one table: hashes of both sides, then the rows that differ
source_side     the table's rows on the source
target_side     the table's rows on the target, and a temporary table for rows of the source
offline_source  a stopped source: a temporary server on a copy of its data folder
pair            the table's models on both sides
hashes          computes hashes of rows, and groups them in buckets
server_sums     checksums that both servers compute, if both define the table alike
spool           turns rows of unequal buckets into suspects: rows that may differ
resolve         turns suspects into differences, by comparing their rows at known positions of the log
log_keys        the keys that the relay log changes meanwhile
key_values      a key's values as text and as literals
progress        the finished part of an interrupted verify
report_file     the results, for people and for `rplctl repair`
drift           differences between the table definitions of two servers
repair          changes the target's rows with differing keys to the source's
log_rows        the source's rows at the target's position
undo            SQL that undoes a repair
shown           SQL of a dry run, for people
"""

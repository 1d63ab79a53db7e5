"""Compares source and target row by row while the channel runs, and repairs the target (man rplctl-design).

table           compares one table: first hashes of both sides, then the rows that may differ
source_side     reads the table's rows on the source
target_side     reads the table's rows on the target, and rows of the source from a temporary table
offline_source  reads a stopped source with a temporary server on a copy of its data folder
pair            the table's models on both sides
hashes          computes hashes of rows, and groups them in buckets
server_sums     checksums that both servers compute, if both define the table alike
spool           turns rows of unequal buckets into suspects: rows that may differ
resolve         turns suspects into differences, by comparing their rows at known positions of the log
log_keys        the keys that the relay log changes during the comparison
key_values      a key's values as text and as literals
progress        the finished part of an interrupted verify
report_file     the results, for people and for `rplctl repair`
drift           differences between the table definitions of two servers
repair          replaces the target's rows that differ with the source's rows
log_rows        computes the source's rows at the target's position
undo            writes SQL that undoes a repair
shown           writes SQL that a dry run shows to people
"""

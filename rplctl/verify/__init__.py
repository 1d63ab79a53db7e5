"""Compares source and target row by row while the channel runs, and repairs the target (man rplctl-design).

The comparison:

table           compares one table: hashes of both sides, then suspect rows
pair            the columns to compare, and comparable rows of both sides
offline_source  runs a temporary server on a stopped source's data
server_sums     compares checksums that both servers compute
source_side     reads the table's rows on the source
target_side     reads the table's rows on the target
hashes          computes hashes of rows, and groups them in buckets
spool           turns rows of unequal buckets into suspects, which may differ
log_keys        the keys that the relay log changes during the comparison
resolve         compares suspects at known positions of the log
key_values      converts a key to JSON, plain values and SQL literals
progress        stores the finished part of an interrupted verify
report_file     the results, for people and for `rplctl repair`
drift           differences between the table definitions of two servers

The repair:

repair          makes the target's rows equal to the source's rows
log_rows        computes the source's rows at the target's position
undo            writes SQL that undoes a repair
shown           writes SQL that a dry run shows to people
"""

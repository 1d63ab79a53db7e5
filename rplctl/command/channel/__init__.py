"""Read and change a channel's records, for the commands.

context               repositories, locks and threads: each command begins here
lost_record           creates a lost RelayLogInfo again, or names the remedy
both_places           refuses a record that is in its file and in its table
source_terms          replaces MySQL's old words, for example master by source
change_options        the options of change-master as one table
change_plan           computes the new records from the stored records and options
change_store          writes both records as one change
peers                 queries the source and the target within one deadline
watched               detects servers that become silent while rows are read
position_applied      tests whether a position is applied, also after a failover
applied_transactions  the applied transactions and their tables, for verify and repair
true_lag              the channel's lag by the source's clock
"""

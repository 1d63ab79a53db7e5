"""Read and change a channel's records, for the commands.

context               repositories, locks and threads: each command begins here
change_options        the options of change-master
change_plan           the effect of these options on both records
change_store          the write of both records as one change
both_places           the refusal of a record that is in a file and also in a table
peers, watched        queries to both servers within a deadline; the report of a server that becomes silent
lost_record           the remedies for a lost RelayLogInfo
position_applied      the test whether a position is applied
applied_transactions  the applied transactions, for verify and repair
true_lag              the channel's lag by the source's clock
"""

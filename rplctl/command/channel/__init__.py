"""Read and change a channel's records, for the commands.

context               repositories, locks and threads, with which every verb begins
change_options        the options of change-master
change_plan           the effect of these options on both records
change_store          writing both records as one change
both_places           the refusal of a record that is in its file and in its table
peers, watched        queries to both servers within a deadline; silent servers while rows are read
lost_record           the remedies for a lost RelayLogInfo
position_applied      the test whether a position is applied
applied_transactions  the applied transactions, for verify and repair
true_lag              the channel's lag by the source's clock
"""

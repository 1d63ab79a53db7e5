"""A channel's records, as the commands read and change them.

context           repositories, locks and threads: what every verb begins with
change_options    the options of change-master
change_plan       what a change of them means for both records
change_store      both records written as one change
both_places       a record that is in its file and in its table
peers, watched    the servers, asked within a deadline; silent ones while rows are read
lost_record       what can be done when RelayLogInfo is gone
position_applied  whether a position is applied
true_lag          how far it is behind by the source's clock
"""

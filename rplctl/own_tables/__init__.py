"""rplctl's internal tables in the target, next to the repositories: state that the applier stores together with the
data.

tables          defines and creates these tables, and updates old layouts
owner           the instance and the source of a channel's rows
initial_models  models of tables that are older than the channel (`load-schema`)
models          the source's table models, versioned by position (design D18)
clones          the tables that are copied, and the progress of each
group_begun     transactions on nontransactional tables that are being applied
statement_note  the statement with an implicit commit that is being executed
prepared        events of XA transactions that the source has not ended
lake_batch      the batch that a lake's tables receive one after another
"""

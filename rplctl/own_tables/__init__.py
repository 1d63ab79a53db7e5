"""rplctl's internal tables in the target, next to the repositories: state that the applier stores together with the
data.

tables           their definitions; creates them, and updates old layouts
owner            the instance and the source of a channel's rows
models           the source's table models, versioned by position (design D18)
initial_models   models of tables that are older than the channel: `load-schema`
clones           the tables that are copied from the source, and the progress of each
prepared         events of XA transactions that are prepared but not ended on the source
group_begun      the transactions on nontransactional tables that are being applied
statement_note   the statement with an implicit commit that is being executed
lake_batch       the batch that the tables of a lake receive one after another
"""

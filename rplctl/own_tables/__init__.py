"""Our own tables in the target, next to the repositories: what the applier keeps there with the data.

tables           their definitions; made, and brought to today's layout
owner            which instance and source a channel's rows belong to
models           the source's table models, versioned by position (design D18)
initial_models   models of tables that existed before the channel did: `load-schema`
clones           which tables are being copied from the source, and how far
prepared         events of XA transactions that the source has prepared and not ended
group_begun      which transactions on tables without transactions are being applied
statement_note   which statement that commits by itself is being executed
"""

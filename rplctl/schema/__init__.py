"""MySQL's DDL → table models → the plan of what a target does, whatever kind it is (design D10, D18).

    context                             session and server that a statement's meaning hangs on
    lexer → token_stream                text → tokens, and the questions that a grammar asks of them
    parse                               statement → actions (`statement`), by way of
        table_definition, column_definition, data_type, alter_clause, partition
    binary_literal                      literals of a session in the character set binary
    structure → model                   actions → tables: names and keys that the server gives, charsets
    alter                               what ALTER TABLE makes of a model
    plan                                statement and catalog → steps for a target, models to store; `naming`
    default_value, generated            values that a column takes by itself
    dump, source_catalog                models of a dump's text, of a live source
    cell_format                         what a model says of its cells
    updated_names                       the tables that a statement updates, for filters

No kind of target is known here: its DDL is made of a plan in its folder below `target`.
"""

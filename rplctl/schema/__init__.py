"""Reads MySQL's DDL, keeps table models, and plans the work of a target, whatever its kind (design D10, D18).

    context                             session and server settings that a statement depends on
    lexer → token_stream                text → tokens, and the operations of a parser on these tokens
    parse                               statement → actions (`statement`), with the help of
        table_definition, column_definition, data_type, alter_clause, partition
    binary_literal                      literals of a session in the character set binary
    structure → model                   actions → tables: the server's names and keys, charsets
    alter                               the effect of ALTER TABLE on a model
    plan                                statement and catalog → steps for a target, models to store; `naming`
    default_value, generated            values that a column gets without a value in the row
    dump, source_catalog                models from the text of a dump, or from a live source
    bounds                              a table's keys, divided into chunks that only the server compares
    cell_format                         the format of a model's cells
    updated_names                       the tables that a statement updates, for filters

A *model* is the MySQL definition of a table; a *catalog* has the models of all tables. This package knows no kind of
target: a package below `target` converts a plan to the target's DDL.
"""

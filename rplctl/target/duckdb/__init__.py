"""DuckDB as a target: one file for rows and position, held by one process (man 7 rplctl-duckdb).

connection       the file, attached under one name; who holds it
driver           DuckDB's connection: it takes nothing but `Sql`
sqlalchemy_dialect   what our own tables need of SQLAlchemy, over DuckDB's driver
dialect          what the kind says of itself            errors        what DuckDB says, as MySQL's errors
target           one transaction, net changes, single changes
relation         rows as a relation of typed columns     foreign_keys  which there are, and what they do to rows
ddl, ddl_type    statements of a plan, the type policy   conversion    values under MODIFY
form             values as tasks decode them             export        copies for readers
compared, undo   rows as verify and repair see them
"""

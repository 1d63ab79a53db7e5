"""The kind of target `duckdb`: one file with rows and position, which one process has open (man 7 rplctl-duckdb).

connection       opens the file, and reports the process that has it open
driver           the interface of DuckDB's connection, which accepts only `Sql`
sqlalchemy_dialect   the part of a SQLAlchemy dialect that rplctl's own tables need
dialect          the properties of the kind              errors        DuckDB's errors as MySQL's errors
target           transactions, net changes, single changes
relation         rows as a table inside a statement      foreign_keys  the stored keys, and their actions on rows
ddl, ddl_type    statements of a plan, stored types      conversion    conversion of values by MODIFY
form             the format of decoded values            export        copies of the file for readers
compared, undo   rows for verify and repair
"""

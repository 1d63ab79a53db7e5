"""The kind of target for DuckDB: one file for rows and position, which one process opens (man 7 rplctl-duckdb).

connection       the attached file, and the process that holds it
driver           the interface of DuckDB's connection, which accepts only `Sql`
sqlalchemy_dialect   the part of SQLAlchemy that rplctl's tables need, over DuckDB's driver
dialect          the properties of the kind              errors        DuckDB's errors as MySQL's errors
target           one transaction, net changes, single changes
relation         rows as a relation of typed columns     foreign_keys  the stored keys, and their actions on rows
ddl, ddl_type    statements of a plan, stored types      conversion    conversion of values by MODIFY
form             the form of decoded values              export        copies for readers
compared, undo   rows for verify and repair
"""

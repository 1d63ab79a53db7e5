"""The kind of target `duckdb`: one file with rows and position, which one process has open (man 7 rplctl-duckdb).

dialect             the properties of the kind, with a schema per database
sqlalchemy_dialect  the parts of a SQLAlchemy dialect that rplctl's tables need
driver              the interface of DuckDB's connection, which accepts only `Sql`
connection          opens the file, and reports the process that has it open
target              applies transactions, net changes and single changes
form                the format in which decoded values are passed
relation            makes rows usable as a table inside a statement
rows                writes row changes as SQL, for these rows
foreign_keys        the stored foreign keys, and their actions on rows
ddl                 translates a DDL plan into DuckDB's statements
ddl_type            the types of stored values, literals and quoted names
conversion          converts stored values after MODIFY
errors              converts DuckDB's errors to MySQL's errors
export              copies the file for readers in other processes
compared            reads the target's rows for `rplctl verify`
undo                writes rows as SQL literals, for the undo of a repair
"""

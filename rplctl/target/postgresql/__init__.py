"""The kind of target for PostgreSQL.

dialect                             the properties of the kind
driver                              the interface of the driver's connection, which accepts only `Sql`
connection, target                  rows and DDL on one connection; `rows`, `bulk`, `large`
form, values                        the form of values, and their text for PostgreSQL
ddl, ddl_alter, ddl_table           plan → statements; ALTER TABLE; the parts of a table
ddl_type, conversion                stored types of values, and their conversion by MODIFY
two_phase, errors, engine_log, doctor
"""

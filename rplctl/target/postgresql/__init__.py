"""Implements the target kind PostgreSQL: it applies rows, DDL and two-phase commit to a PostgreSQL database.

dialect                             the properties of the target kind
driver                              the interface of the driver's connection, which accepts only `Sql`
connection, target                  apply rows and DDL over one connection, with `rows`, `bulk` and `large`
form, values                        the form of decoded values, and their text for PostgreSQL
ddl, ddl_alter, ddl_table           convert a DdlPlan to statements: ALTER TABLE, and the parts of a table
ddl_type, conversion                the stored types of values, and their conversion by MODIFY
two_phase, errors, engine_log, doctor
"""

"""PostgreSQL as a target.

dialect                             what it says of itself
driver                              the driver's connection: it takes nothing but `Sql`
connection, target                  one connection: rows, DDL; `rows`, `bulk`, `large`
form, values                        the values that it takes
ddl, ddl_alter, ddl_table           plan → statements; ALTER TABLE; what a table is made of
ddl_type, conversion                how values are kept, what MODIFY makes of them
two_phase, errors, engine_log, doctor
"""

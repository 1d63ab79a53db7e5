"""SQLite, the embedded target.

dialect                             what it says of itself
driver                              the driver's connection: it takes nothing but `Sql`
target                              the connection: rows, DDL; `multiset`, `large`, `cascades`
form                                the values that it takes
ddl                                 plan → statements
ddl_type, conversion                how values are kept, what MODIFY makes of them
errors, engine_log
"""

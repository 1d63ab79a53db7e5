"""The kind of target for SQLite, the embedded default.

dialect                             the properties of the kind
driver                              the interface of the driver's connection, which accepts only `Sql`
target                              rows and DDL on one connection; `multiset`, `large`, `cascades`
form                                the form of values
ddl                                 plan → statements
ddl_type, conversion                stored types of values, and their conversion by MODIFY
errors, engine_log                  driver errors as MySQL's errors, and the position of the log
"""

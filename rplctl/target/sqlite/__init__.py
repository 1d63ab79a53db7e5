"""Implements the target kind SQLite, which is the default: it applies rows and DDL to one local file.

dialect                             the properties of the target kind
driver                              the interface of the driver's connection, which accepts only `Sql`
target                              applies rows and DDL over one connection, with `multiset`, `large`, `cascades`
form                                the form of decoded values
ddl                                 converts a DdlPlan to statements
ddl_type, conversion                the stored types of values, and their conversion by MODIFY
errors, engine_log                  driver errors as MySQL's errors, and the position of SQLite's log
"""

"""SQLite, the embedded target.

dialect                             what it says of itself
target                              the connection: rows, DDL; `bag`, `large`, `cascades`, `lock`
form, values                        the values that it wants
ddl, rebuild                        plan → statements; where the values of an altered table come from
ddl_type, conversion, partition     how values are kept, what MODIFY makes of them, which rows a partition holds
errors, engine_log, doctor
"""

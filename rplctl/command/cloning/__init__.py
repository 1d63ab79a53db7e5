"""The work of `clone` before and after the copy itself.

choice.py        the choice of tables, notes about them, and the reasons for a refusal
cancel.py        the removal of a cancelled copy
"""

"""Prepare the copy of tables for `clone`, and remove a cancelled copy. The copy itself is in rplctl/clone/.

choice.py        the choice of tables, notes about them, and the reasons for a refusal
cancel.py        the removal of a cancelled copy
"""

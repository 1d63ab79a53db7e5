"""Prepare the copy of tables for `clone`, and remove a cancelled copy. The copy itself is in rplctl/clone/.

choice  the choice of tables, with notes and reasons for a refusal
cancel  the removal of a cancelled copy
"""

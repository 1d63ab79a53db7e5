"""The work of `clone` before and after the copy itself.

choice.py        which tables it takes, what is special of them, and why it refuses
cancel.py        a copy that is given up is taken back
"""

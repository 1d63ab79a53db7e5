"""The kind of target that a new kind is copied from: SQLite under another name (docs/recipes/add-a-target.md).

dialect          the properties of the kind, and its target
form             the form of values
compared, undo   rows as `verify` compares them, and as SQL text for `repair`
"""

"""The kind of target that a new kind is copied from: SQLite under another name (docs/recipes/add-a-target.md).

dialect   the properties of the kind, and its target
form      the format in which decoded values are passed
compared  reads the target's rows for `rplctl verify`
undo      writes rows as SQL text, for `rplctl repair`
"""

"""A kind of target that rplctl does not ship: SQLite under another name. It costs `registry.KINDS` one line."""

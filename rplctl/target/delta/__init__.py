"""The kind of target for Delta Lake: a folder or bucket of Delta tables. They store the source's changes (layer
`changes`), or are a mirror of its tables.
"""

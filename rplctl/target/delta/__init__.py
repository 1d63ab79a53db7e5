"""The kind of target `delta`: a folder or bucket of Delta Lake tables. The tables contain the source's changes (layer
`changes`), or the source's current rows (layer `mirror`).
"""

"""The kind of target for Delta Lake: a folder or a bucket of tables with changes, or of mirror tables."""

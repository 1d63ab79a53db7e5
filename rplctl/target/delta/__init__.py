"""Delta Lake: a folder, or a bucket, of tables that are logs of changes."""

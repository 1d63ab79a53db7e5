"""Plain Parquet: a folder of tables that are logs of changes, each a folder of files without a log of its own."""

"""The kind of target for plain Parquet files: each table is a log of changes, in a folder of files without a log."""

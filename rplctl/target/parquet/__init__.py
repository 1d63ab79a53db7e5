"""The kind of target `parquet`: plain Parquet files with the source's changes, in one folder for each table."""

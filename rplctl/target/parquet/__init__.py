"""The kind of target `parquet`: plain Parquet files with the source's changes, in one folder for each table.

dialect  describes the kind, whose tables have no transaction log
place    reads the URL of a lake, and names its folders
form     the value format, which is the one of Delta Lake
target   applies changes to the lake, in batches
tables   adds each batch to its tables as one complete folder
"""

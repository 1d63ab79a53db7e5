"""The kind of target `parquet`: plain Parquet files that contain the source's changes, with one folder
for each table.
"""

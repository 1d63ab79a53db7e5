"""The binary log format (v4, MySQL and MariaDB): parsing, building and kernels over raw bytes.

No module here opens a socket or a file.
"""

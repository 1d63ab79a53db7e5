"""The binary log format (v4, MySQL and MariaDB): parsing, building and the kernels over raw bytes. No sockets, no
files.
"""

"""The binary log format (v4, MySQL and MariaDB): parsing, building and kernels over raw bytes.

No module here opens a socket. Only kernel_cache and warm_up open files: the cache of compiled kernels, and a recording.
"""

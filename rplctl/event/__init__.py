"""Parse, build and scan events of the binary log (format v4 of MySQL and MariaDB), with kernels over raw bytes.

No module here opens a socket. Only two modules open files: kernel_cache stores compiled kernels, and warm_up reads a
recording.
"""

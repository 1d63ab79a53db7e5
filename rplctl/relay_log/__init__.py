"""The relay log: binary log v4 files and their index, between the receiver (writes) and the applier (reads).

Invariant: what a reader is given is complete transactions, byte for byte as the source sent them, without a hole in the
source's positions. A file only grows, or is cut once at a transaction end; after a cut a new file is begun
(WL#4621, design D7).
"""

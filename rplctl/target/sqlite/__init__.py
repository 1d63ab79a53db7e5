"""SQLite, the embedded target."""

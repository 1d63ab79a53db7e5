"""Bringing one batch into the target: in bulk, in order, or one source transaction at a time (design D2)."""

"""MySQL DDL → table model → DDL of a target that does not speak MySQL (design D10, D18)."""

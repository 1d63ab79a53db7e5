"""Foreign key actions in a SQLite transaction that began without foreign keys: triggers that can be switched.

A source's transaction may change some rows with foreign_key_checks and others without; SQLite takes
`PRAGMA foreign_keys` only outside of transactions. (Manual: CREATE TRIGGER; InnoDB foreign keys.)
Invariant: everything is temporary, made and dropped inside the one transaction. What foreign keys forbid is not
checked here: the source has checked it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from rplctl.schema.model import ForeignKey, TableModel
from rplctl.schema.naming import physical_name
from rplctl.target.ddl_parts import quote

_SWITCH = "rplctl_foreign_keys_act"
_ACTS = f"(SELECT acts FROM temp.{_SWITCH})"


def follow_foreign_keys(driver: sqlite3.Connection, wanted: bool, models: Iterable[TableModel]) -> None:
    """From here on changes of parents do (or do not) what the foreign keys of `models` say."""
    if not _is_made(driver):
        driver.execute(f"CREATE TEMP TABLE {_SWITCH} (acts)")
        driver.execute(f"INSERT INTO temp.{_SWITCH} VALUES (0)")
        driver.execute("PRAGMA recursive_triggers=ON")  # a tree that is its own parent
        there = {name for (name,) in driver.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")}
        for number, sql in enumerate(trigger_bodies(models, there)):
            driver.execute(f"CREATE TEMP TRIGGER rplctl_foreign_key_{number} {sql}")
    driver.execute(f"UPDATE temp.{_SWITCH} SET acts = ?", (wanted,))


def forget_foreign_keys(driver: sqlite3.Connection) -> None:
    """Before COMMIT; after a ROLLBACK there is nothing left to forget."""
    if not _is_made(driver):
        return
    ours = (
        "SELECT name FROM sqlite_temp_master WHERE type = 'trigger' AND name LIKE 'rplctl!_foreign!_key!_%' ESCAPE '!'"
    )
    for (name,) in driver.execute(ours).fetchall():
        driver.execute(f"DROP TRIGGER temp.{name}")
    driver.execute(f"DROP TABLE temp.{_SWITCH}")


def _is_made(driver: sqlite3.Connection) -> bool:
    return driver.execute("SELECT 1 FROM sqlite_temp_master WHERE name = ?", (_SWITCH,)).fetchone() is not None


def trigger_bodies(models: Iterable[TableModel], there: set[str]) -> Iterator[str]:
    """What stands behind CREATE TRIGGER name, for each action of each foreign key between tables that are `there`."""
    for model in models:
        child = physical_name(model.database, model.name)
        for key in model.foreign_keys:
            parent = physical_name(key.ref_database, key.ref_table)
            if key.ref_columns and {child, parent} <= there:
                yield from _of_key(quote(child), quote(parent), key)


def _of_key(child: str, parent: str, key: ForeignKey) -> Iterator[str]:
    pairs = [(quote(column), quote(ref)) for column, ref in zip(key.columns, key.ref_columns, strict=True)]
    where = " AND ".join(f"{column} = OLD.{ref}" for column, ref in pairs)
    nulls = f"UPDATE {child} SET {', '.join(f'{column} = NULL' for column, _ in pairs)} WHERE {where}"
    on_delete = {"CASCADE": f"DELETE FROM {child} WHERE {where}", "SET NULL": nulls}.get(key.on_delete)
    if on_delete:
        yield f"AFTER DELETE ON {parent} WHEN {_ACTS} BEGIN {on_delete}; END"
    moved = f"UPDATE {child} SET {', '.join(f'{column} = NEW.{ref}' for column, ref in pairs)} WHERE {where}"
    on_update = {"CASCADE": moved, "SET NULL": nulls}.get(key.on_update)
    if on_update:
        changed = " OR ".join(f"OLD.{ref} IS NOT NEW.{ref}" for _, ref in pairs)
        yield f"AFTER UPDATE ON {parent} WHEN {_ACTS} AND ({changed}) BEGIN {on_update}; END"

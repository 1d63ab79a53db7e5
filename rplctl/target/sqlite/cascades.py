"""Executes foreign key actions by triggers, which can be turned on and off inside a transaction of SQLite.

A transaction of the source may change some rows with foreign_key_checks=1 and others with 0. But SQLite accepts `PRAGMA
foreign_keys` only outside of transactions. So the transaction begins without foreign keys, and triggers execute the
actions of the foreign keys (manuals: CREATE TRIGGER of SQLite, foreign keys of InnoDB).

Invariant: all objects are temporary, and are created and dropped inside the transaction. The triggers do not check
constraints, because the source has checked them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rplctl.schema.model import ForeignKey, TableModel
from rplctl.schema.naming import physical_name
from rplctl.sql_text import Sql, joined, written
from rplctl.target.ddl_parts import quote
from rplctl.target.sqlite.driver import SqliteDriver

_SWITCH = written("rplctl_foreign_keys_act")
_ACTS = written("(SELECT acts FROM temp.{})", _SWITCH)


def follow_foreign_keys(driver: SqliteDriver, wanted: bool, models: Iterable[TableModel]) -> None:
    """Turn the foreign key actions of the tables `models` on or off for the next changes in this transaction.

    `wanted`: True to turn them on. The first call creates the triggers.
    """
    if not _is_made(driver):
        driver.execute(written("CREATE TEMP TABLE {} (acts)", _SWITCH))
        driver.execute(written("INSERT INTO temp.{} VALUES (0)", _SWITCH))
        driver.execute(written("PRAGMA recursive_triggers=ON"))  # for a table that references itself
        there = {
            name for (name,) in driver.execute(written("SELECT name FROM main.sqlite_master WHERE type = 'table'"))
        }
        for number, sql in enumerate(trigger_bodies(models, there)):
            driver.execute(written("CREATE TEMP TRIGGER rplctl_foreign_key_{} {}", number, sql))
    driver.execute(written("UPDATE temp.{} SET acts = ?", _SWITCH), (wanted,))


def forget_foreign_keys(driver: SqliteDriver) -> None:
    """Drop the triggers that `follow_foreign_keys` has created, before COMMIT. A ROLLBACK removes them, too."""
    if not _is_made(driver):
        return
    ours = written(
        "SELECT name FROM sqlite_temp_master WHERE type = 'trigger' AND name LIKE 'rplctl!_foreign!_key!_%' ESCAPE '!'"
    )
    for (name,) in driver.execute(ours).fetchall():
        driver.execute(written("DROP TRIGGER temp.{}", quote(name)))
    driver.execute(written("DROP TABLE temp.{}", _SWITCH))


def _is_made(driver: SqliteDriver) -> bool:
    return driver.execute(written("SELECT 1 FROM sqlite_temp_master WHERE name = ?"), (_SWITCH,)).fetchone() is not None


def trigger_bodies(models: Iterable[TableModel], there: set[str]) -> Iterator[Sql]:
    """Yield the text of a trigger, from AFTER on, for each action of each foreign key of the tables `models`.

    `there`: the names of the tables that exist. Foreign keys to or from other tables are omitted.
    """
    for model in models:
        child = physical_name(model.database, model.name)
        for key in model.foreign_keys:
            parent = physical_name(key.ref_database, key.ref_table)
            if key.ref_columns and {child, parent} <= there:
                yield from _of_key(quote(child), quote(parent), key)


def _of_key(child: Sql, parent: Sql, key: ForeignKey) -> Iterator[Sql]:
    pairs = [(quote(column), quote(ref)) for column, ref in zip(key.columns, key.ref_columns, strict=True)]
    where = joined(" AND ", (written("{} = OLD.{}", column, ref) for column, ref in pairs))
    nulls = written(
        "UPDATE {} SET {} WHERE {}", child, joined(", ", (written("{} = NULL", column) for column, _ in pairs)), where
    )
    on_delete = {"CASCADE": written("DELETE FROM {} WHERE {}", child, where), "SET NULL": nulls}.get(key.on_delete)
    if on_delete:
        yield written("AFTER DELETE ON {} WHEN {} BEGIN {}; END", parent, _ACTS, on_delete)
    moved = written(
        "UPDATE {} SET {} WHERE {}",
        child,
        joined(", ", (written("{} = NEW.{}", column, ref) for column, ref in pairs)),
        where,
    )
    on_update = {"CASCADE": moved, "SET NULL": nulls}.get(key.on_update)
    if on_update:
        changed = joined(" OR ", (written("OLD.{} IS NOT NEW.{}", ref, ref) for _, ref in pairs))
        yield written("AFTER UPDATE ON {} WHEN {} AND ({}) BEGIN {}; END", parent, _ACTS, changed, on_update)

"""Create or upgrade the repository tables, through the alembic migrations (WL#2775 REQ-1: `CREATE TABLE IF NOT
EXISTS`).

Invariant: a second run changes nothing and deletes no row. If two processes create the tables at the same time, there
is only one set of tables.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect

from rplctl.errors import UPGRADE, ConfigError, RplError
from rplctl.repository.layout import NAMES
from rplctl.repository.table import mapped_errors
from rplctl.repository.tables import qualified_name
from rplctl.sql_run import ask
from rplctl.sql_text import written
from rplctl.target.registry import dialect_of

VERSIONS = ("0001", "0002", "0003", "0004", "0005", "0006")  # the revisions in migrations/versions, the newest last
SCHEMA_VERSION = VERSIONS[-1]
VERSION_TABLE = "rplctl_version"
_ENGINE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def create_tables(engine: Engine, rep_engine: str = "") -> None:
    """Create both repository tables, or upgrade them to the newest layout.

    `rep_engine`: the ENGINE of MySQL, or UNLOGGED on PostgreSQL; '' means a transactional engine of the target. An
    older layout is upgraded in place, including tables that were created by hand from WL#2775 or copied from a MySQL
    server. Raises ConfigError if the engine name is invalid, TargetError if the database reports an error, and RplError
    if a newer rplctl created the tables.
    """
    if rep_engine and not _ENGINE_NAME.fullmatch(rep_engine):
        raise ConfigError(
            f"'{rep_engine}' is not the name of a storage engine",
            hint="to name another engine (init changes only this setting), run: rplctl init --rep-engine InnoDB",
        )
    with mapped_errors(qualified_name(engine.dialect.name, VERSION_TABLE), None):
        version = _stored_version(engine)
        if version is not None and version not in VERSIONS:
            raise RplError(
                f"the repository tables have version {version}, this rplctl supports versions up to {SCHEMA_VERSION}",
                hint=UPGRADE,
            )
        inspector, schema = inspect(engine), dialect_of(engine.dialect.name).own_schema
        is_whole = version != SCHEMA_VERSION or all(inspector.has_table(name, schema=schema) for name in NAMES)
        if version != SCHEMA_VERSION or not is_whole:
            with engine.connect() as connection, connection.begin():
                dialect_of(connection.dialect.name).lock_installation(connection)
                if not is_whole:  # somebody dropped a table, so all migrations run again; they keep existing tables
                    ask(connection, written("DELETE FROM {}", dialect_of(engine.dialect.name).own_name(VERSION_TABLE)))
                _upgrade(connection, rep_engine)


def upgrade_if_old(engine: Engine) -> None:
    """Upgrade existing tables of an older layout to the newest one, as every start does first. No table is created."""
    schema = dialect_of(engine.dialect.name).own_schema
    with mapped_errors(qualified_name(engine.dialect.name, VERSION_TABLE), None):
        if _stored_version(engine) == SCHEMA_VERSION:
            return
        inspector = inspect(engine)
        are_there = any(inspector.has_table(name, schema=schema) for name in (*NAMES, VERSION_TABLE))
    if are_there:
        create_tables(engine)


def is_newer(engine: Engine) -> str:
    """Return the version of the tables if a newer rplctl created them, or '' otherwise."""
    version = _stored_version(engine)
    return "" if version is None or version in VERSIONS else version


def _stored_version(engine: Engine) -> str | None:
    """Return the version of the installed tables, or None if no tables are installed. This does not load alembic."""
    dialect = dialect_of(engine.dialect.name)
    with engine.connect() as connection:
        with connection.begin():
            if not engine.dialect.has_table(connection, VERSION_TABLE, schema=dialect.own_schema):
                return None
            return ask(connection, written("SELECT version_num FROM {}", dialect.own_name(VERSION_TABLE))).scalar()


def _upgrade(connection: Connection, rep_engine: str) -> None:
    from alembic import command  # imported only here, because the import takes 0.2 s
    from alembic.config import Config as AlembicConfig

    config = AlembicConfig()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["rep_engine"] = rep_engine
    command.upgrade(config, "head")


def migrations_folder() -> Path:
    """Return the path of the folder with the alembic migrations.

    It is `migrations/` of a source tree, or the copy in an installed package. Raises RplError if both are missing.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise RplError(
        "this installation of rplctl lacks its migrations folder",
        hint="to install rplctl again, run: pip install --force-reinstall rplctl",
    )

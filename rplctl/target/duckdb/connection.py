"""Opens a DuckDB file: all connections of this process share one DuckDB instance, with the file attached as CATALOG.

The file is attached under a fixed catalog name. Otherwise the catalog would have the name of the file, and
`shop.orders` would be ambiguous in the file shop.duckdb. Invariant: DuckDB loads or installs no extension, and a name
in a statement never means a Python variable. A new file and its write-ahead log have mode 0600, because rows are
private. The last connection that closes writes a checkpoint and releases the file.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool

from rplctl import mysql_errors as er
from rplctl.errors import ConfigError, TargetError, target_gone
from rplctl.sql_text import written
from rplctl.target.ddl_parts import quote, text_literal
from rplctl.target.duckdb.ddl_type import CATALOG
from rplctl.target.duckdb.driver import DuckdbDriver
from rplctl.target.duckdb.errors import target_error
from rplctl.target.duckdb.export import Export
from rplctl.target.duckdb.sqlalchemy_dialect import DriverConnection

_PRIVATE: Final = 0o077
_SAFE: Final = {
    "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
    "allow_community_extensions": "false", "python_enable_replacements": "false",
}  # fmt: skip
_SETTINGS: Final = ("memory_limit", "threads", "temp_directory", "checkpoint_threshold")
# with DuckDB's default of 16 MB, a stream of changes would write the same blocks many times
_CHECKPOINT: Final = {"checkpoint_threshold": "128MB"}
_EXPORT: Final = "export_to"
_opening = threading.Lock()
_exports: dict[tuple[Path, Path], Export] = {}  # (file, copy) → the Export, which all channels of this process share


@dataclass(frozen=True, slots=True)
class UrlOptions:
    """The parts of a DuckDB target's URL: the file, and the options after the question mark. `export_to`: the path of
    the copy for readers, or None.
    """

    path: Path
    settings: dict[str, str]  # DuckDB's settings
    export_to: Path | None


def options_of(url: URL) -> UrlOptions:
    """Return the file and the options in the URL of a DuckDB target. Raises ConfigError if the URL is not valid."""
    if not url.database or not Path(url.database).is_absolute() or url.host:
        raise ConfigError("a DuckDB target needs a file", hint="write duckdb:////absolute/path/target.duckdb")
    path = Path(url.database)
    given = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    known = (*_SETTINGS, _EXPORT)
    if unknown := next((name for name in given if name not in known), None):
        raise ConfigError(f"a DuckDB target has no option '{unknown}'", hint=f"use one of {', '.join(known)}")
    export_to = _copy_of(path, given.pop(_EXPORT, None))
    return UrlOptions(path=path, settings=given, export_to=export_to)


def _copy_of(path: Path, name: str | None) -> Path | None:
    if name is None:
        return None
    copy = Path(name)
    if not copy.is_absolute() or copy.is_dir() or copy in (path, path.with_name(f"{path.name}.wal")):
        raise ConfigError(
            f"{_EXPORT}={name} is not a possible file for a copy", hint=f"use {_EXPORT}=/another/path/copy.duckdb"
        )
    return copy


def export_of(engine: Engine) -> Export | None:
    """Return the object that makes copies of the file for readers, or None if the URL has no option export_to."""
    found: Export | None = engine.get_execution_options().get(_EXPORT)
    return found


def open_engine(url: str) -> Engine:
    """Return an SQLAlchemy engine for the file. The first connection creates a missing file. Raises ConfigError if the
    URL is not valid.
    """
    registry.register("duckdb", "rplctl.target.duckdb.sqlalchemy_dialect", "SqlalchemyDuckdb")
    parsed = make_url(url)
    options = options_of(parsed)
    # without a pool, a process releases the file after each query, and not only when the process ends
    engine = create_engine(
        parsed.set(query={}),
        poolclass=NullPool,
        hide_parameters=True,
        execution_options={_EXPORT: _export(options)},
    )
    was_there = options.path.exists()

    @event.listens_for(engine, "do_connect")
    def _connect(*_: object) -> Any:
        nonlocal was_there
        connection = _opened(options, may_make=not was_there)
        was_there = True
        return connection

    return engine


def _export(options: UrlOptions) -> Export | None:
    copy = options.export_to
    if copy is None:
        return None
    return _exports.setdefault((options.path, copy), Export(copy, partial(_opened, options, may_make=False)))


def _opened(options: UrlOptions, *, may_make: bool) -> DriverConnection:
    """Return a connection to the file. `may_make`: True if a missing file may be created. Raises TargetError if the
    file cannot be opened. If another process has the file open, the error 1205 names this process.
    """
    path = options.path
    if not may_make and not path.exists():
        text = f"the target's file {path} does not exist any more"
        raise TargetError(text, errno=er.FILE_NOT_FOUND, transient=True, hint=target_gone(path))
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.R_OK | os.W_OK):
        reason = "Is a directory" if path.is_dir() else "Permission denied"
        reason = reason if path.parent.is_dir() else "No such file or directory"
        text = f"cannot open the target {path}: {reason}"
        raise TargetError(text, errno=er.FILE_NOT_FOUND, transient=True, hint=target_gone(path))
    os.umask(_PRIVATE)  # permanently, because DuckDB creates a new write-ahead log after each checkpoint
    with _opening:
        try:
            driver = duckdb.connect(f":memory:rplctl {path}", config={**_SAFE, **_CHECKPOINT, **options.settings})
            try:
                driver.execute(written("ATTACH IF NOT EXISTS {} AS {}", text_literal(str(path)), quote(CATALOG)))
                driver.execute(written("USE {}", quote(CATALOG)))
                driver.execute("SET TimeZone = 'UTC'")
            except BaseException:
                driver.close()
                raise
        except duckdb.Error as error:
            raise target_error(error) from error
    return DriverConnection(driver)


def driver_of(connection: Any) -> DuckdbDriver:
    """Return DuckDB's own connection, on which the given SQLAlchemy connection is based."""
    found: DriverConnection = connection.connection.driver_connection
    return found.driver

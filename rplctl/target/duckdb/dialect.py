"""The dialect of DuckDB. The target is one file, with a schema for each database of the source, and one for rplctl."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import make_url

from rplctl.errors import ConfigError
from rplctl.sql_run import ask
from rplctl.sql_text import written
from rplctl.target.ddl_parts import quote
from rplctl.target.dialect import OK, OWN_SCHEMA, WARN, Dialect, DoctorLine
from rplctl.target.engine_log import EngineLog
from rplctl.target.own_types import OwnTypes

try:
    from rplctl.target.duckdb.connection import open_engine, options_of
    from rplctl.target.duckdb.ddl import DDL
    from rplctl.target.duckdb.errors import mapped_errors
    from rplctl.target.duckdb.target import DuckdbTarget
except ImportError as missing:
    if missing.name not in ("duckdb", "pyarrow"):
        raise
    raise ConfigError(
        f"a DuckDB target requires the package {missing.name}",
        hint="to install it, run: pip install 'rplctl[duckdb]'",
    ) from missing

_COPY = "copy for readers"
_OLD_S = 900


class DuckdbDialect(Dialect):
    name = "duckdb"
    title = "DuckDB"
    ddl = DDL
    is_held = True
    loads_alone = True
    has_savepoints = False

    open_engine = staticmethod(open_engine)
    mapped_errors = staticmethod(mapped_errors)
    open_target = staticmethod(DuckdbTarget)

    def open_log(self, engine: Engine) -> EngineLog | None:
        """Return None, because no other process can query the file while the applier runs."""
        return None

    def beside(self, url: str) -> Iterable[DoctorLine]:
        """Yield a line of `rplctl doctor` about the age of the copy for readers, if the URL has export_to."""
        options = options_of(make_url(url))
        if (copy := options.export_to) is None or not options.path.exists():
            return
        if not copy.exists():
            yield DoctorLine(
                Check=_COPY, Result=WARN, Detail=f"{copy} does not exist yet", Hint="to create it, run: rplctl start"
            )
            return
        log = options.path.with_name(f"{options.path.name}.wal")
        written = max(path.stat().st_mtime for path in (options.path, log) if path.exists())
        made = copy.stat().st_mtime
        is_old = written - made > _OLD_S
        behind = f", and the target was written {written - made:.0f} s later" if written > made else ""
        hint = "see the applier's log for the reason" if is_old else ""
        yield DoctorLine(
            Check=_COPY,
            Result=WARN if is_old else OK,
            Detail=f"{copy} is {time.time() - made:.0f} s old{behind}",
            Hint=hint,
        )

    def own_types(self, rep_engine: str = "") -> OwnTypes:
        return OwnTypes()

    def is_missing(self, engine: Engine) -> bool:
        return not options_of(make_url(engine.url)).path.exists()

    def make_own_schema(self, connection: Connection) -> None:
        ask(connection, written("CREATE SCHEMA IF NOT EXISTS {}", quote(OWN_SCHEMA)))


DIALECT = DuckdbDialect()

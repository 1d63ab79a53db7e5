"""`demo`: run init, change-master and start --until-synced on recorded binary logs, then compare with the source."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.init import init
from rplctl.command.process.start_request import Progress, StartRequest
from rplctl.command.show_status import SlaveStatus, show_status
from rplctl.command.start import start
from rplctl.config import load_config
from rplctl.demo import BINLOG_FOLDER, source_state
from rplctl.demo.checksum import sqlite_checksum
from rplctl.errors import RplError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTable:
    """The comparison of one table in the source and in the target. The field names are the column names of the output.

    A checksum is the first 12 digits of SHA-256 over all rows in key order.
    """

    Table: str
    Source_Rows: int
    Target_Rows: int
    Source_Checksum: str
    Target_Checksum: str
    Result: str  # OK | FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    datadir: Path
    target_file: Path
    server: str
    transactions: int
    tables: tuple[DemoTable, ...]
    status: SlaveStatus

    @property
    def is_equal(self) -> bool:
        return all(table.Result == "OK" for table in self.tables)


def demo(folder: Path | None, progress: Progress | None = None) -> DemoResult:
    """Run the demo in a new folder, and return the comparison of its tables. None creates a temporary folder.

    Raises UsageError if the folder is not empty, and all errors of replication.
    """
    datadir = Path(tempfile.mkdtemp(prefix="rplctl-demo-")) if folder is None else folder.absolute()
    if datadir.exists() and any(datadir.iterdir()):
        raise UsageError(
            f"{datadir} is not empty", hint="name a new folder, or no folder for one under the temporary folder"
        )
    init(datadir, {})
    config = load_config(datadir)
    change_master(config, "", MasterChanges(master_binlog_dir=os.fspath(BINLOG_FOLDER)))
    start(config, "", StartRequest(until_synced=True, foreground=True), progress)
    source = source_state()
    target = Path(config.target_url.removeprefix("sqlite:///"))
    return DemoResult(
        datadir=datadir,
        target_file=target,
        server=source.server,
        transactions=source.transactions,
        tables=_compare(target),
        status=show_status(config, ""),
    )


def _compare(target: Path) -> tuple[DemoTable, ...]:
    tables = []
    try:
        with closing(sqlite3.connect(f"{target.as_uri()}?mode=ro", uri=True)) as connection:
            for table in source_state().tables:
                name = f"{table.database}__{table.name}"
                rows, sha256 = sqlite_checksum(connection, name, table.columns, table.primary_key)
                result = "OK" if (rows, sha256) == (table.rows, table.sha256) else "FAIL"
                shown = f"{table.database}.{table.name}"
                tables.append(
                    DemoTable(
                        Table=shown,
                        Source_Rows=table.rows,
                        Target_Rows=rows,
                        Source_Checksum=table.sha256[:12],
                        Target_Checksum=sha256[:12],
                        Result=result,
                    )
                )
    except sqlite3.Error as error:
        raise RplError(f"{target}: {error}") from error
    return tuple(tables)

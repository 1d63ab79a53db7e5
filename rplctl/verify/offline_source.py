"""Runs a temporary server on a copy of a stopped source's data folder or backup (`verify --offline-source`).

This module also finds the log position of the rows in the folder. Invariant: nothing is written to the original folder.
The temporary server recovers as after a crash, but it cannot reach the original files:

* The copy contains files in place of symbolic links, and no relay logs.
* The index of the copied binary logs names only files in the copy.
* A folder with a tablespace in another place is refused.

The temporary server listens on a socket that only this user can reach.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import RplError, SourceError, UsageError
from rplctl.event.groups import GroupKind
from rplctl.info import MasterInfo
from rplctl.locks import is_in_use
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.relay_log.log_file import Boundary, mapped_file, walk
from rplctl.source.log_folder import log_names
from rplctl.source.survey import survey
from rplctl.sql_text import written

_OF_BACKUP: Final = ("mariadb_backup_binlog_info", "xtrabackup_binlog_info")
_NOT_PREPARED: Final = ("full-backuped", "incremental")
_OPTIONS_OF_BACKUP: Final = "backup-my.cnf"
_PROGRAMS: Final = "/usr/sbin:/usr/local/sbin:/usr/libexec:/usr/local/mysql/bin"  # searched after $PATH
_USER: Final = "rplctl_offline"
_LEFT_OUT: Final = re.compile(r".*relay.*(?<!\.ibd)|.*master.*\.info|.*\.(sock|pid|err)")  # files that are not copied
_LONGEST: Final = 500  # characters of an error
_POLL_S: Final = 0.1


def place_of(folder: Path, given: BinlogPosition | None) -> BinlogPosition:
    """Return the position in the source's log that the rows in a stopped source's folder have.

    `given`: the position that the operator has specified, or None. Without it, return the position that a backup has
    recorded. If there is no record, either, return the end of the last transaction in the binary logs. Raises
    UsageError if the folder is not a server's data folder, is a backup that is not prepared, or does not show the
    position.
    """
    try:
        (folder / "ibdata1").stat()
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder} is not the data folder of a server: {error}"[:_LONGEST]) from error
    checkpoints = folder / "xtrabackup_checkpoints"
    if checkpoints.is_file() and any(word in checkpoints.read_text(errors="replace") for word in _NOT_PREPARED):
        raise UsageError(
            f"{folder} is a backup that is not prepared", hint="run mariadb-backup --prepare or xtrabackup --prepare"
        )
    if given:
        return given
    for name in _OF_BACKUP:
        if (folder / name).is_file():
            with suppress(UsageError):
                return BinlogPosition.parse(":".join((folder / name).read_text(errors="replace").split()[:2]))
    try:
        for name in reversed(log_names(folder)):
            if found := _last_transaction(folder / name):
                return found
    except (RplError, OSError):
        pass  # for example, the logs are encrypted or truncated
    raise UsageError(
        f"{folder} does not show the position of its rows in the binary log", hint="add --at FILE:POSITION"
    )


def _last_transaction(path: Path) -> BinlogPosition | None:
    """Return the position after the last transaction in a binary log. Return None if the log has no transaction."""
    found = None
    with mapped_file(path) as data:
        for scan, _ in walk(data, Boundary(FIRST_EVENT_POSITION, BinlogPosition(path.name, FIRST_EVENT_POSITION))):
            numbers = np.flatnonzero(scan.kind != GroupKind.CONTROL)
            found = scan.source_position(int(numbers[-1])) if len(numbers) else found
    return found


@contextmanager
def offline_source(folder: Path, work: Path, master: MasterInfo, config: Config) -> Iterator[MasterInfo]:
    """Run a temporary server on a copy of `folder` during the `with` block, and yield the settings to connect to it.

    `work`: the folder for the copy, which is deleted at the end. `master`: the settings of the real source, for its
    server id. Raises UsageError if a server runs in `folder`, SourceError if the temporary server does not answer, and
    OSError if the copy fails.
    """
    if is_in_use(folder / "ibdata1"):
        hint = "to compare with a running server, omit --offline-source"
        raise UsageError(f"a server runs in {folder}", hint=hint)
    shutil.rmtree(work, ignore_errors=True)
    private_folder(work)
    try:
        with tempfile.TemporaryDirectory(prefix="rplctl-") as short:  # a socket's path has at most 107 bytes
            copy, socket = work / "data", Path(short, "s")
            _copy(folder, copy)
            reached = replace(MasterInfo(), host=str(socket), user_name=_USER, get_public_key=True)
            command = _command(copy, work, socket, master)
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=copy, preexec_fn=_ends_with_us)
            try:
                _wait(process, reached, config, work / "log", folder)
                yield reached
            finally:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _copy(folder: Path, copy: Path) -> None:
    """Copy the files of the data folder `folder` to the folder `copy`.

    In the copy, the index of the binary logs names only binary logs that are in the copy. If the file system supports
    it, the copied files share their blocks with the original files. Raises UsageError for a tablespace outside of the
    folder, and SourceError if a file cannot be copied.
    """
    if found := next(folder.rglob("*.isl"), None):
        raise UsageError(
            f"{found} names a tablespace outside of the folder", hint="use a backup, which has all in one folder"
        )

    def left_out(where: str, names: list[str]) -> list[str]:
        if Path(where) != folder:
            return []
        return [name for name in names if _LEFT_OUT.fullmatch(name) and not Path(where, name).is_dir()]

    try:
        shutil.copytree(folder, copy, copy_function=_copy_file, ignore=left_out)
    except shutil.Error as error:
        raise SourceError(
            f"cannot copy the folder {folder}: {error.args[0][0][2]}",
            errno=er.CR_CONN_HOST_ERROR,
            hint=f"to see the free space, which must suffice for a copy of {folder}, run: "
            f"df -h {shlex.quote(str(copy.parent))}\n"
            "After you have freed disk space, run this command again",
        ) from error
    for index in copy.glob("*.index"):
        names = [Path(line).name for line in index.read_text(errors="surrogateescape").splitlines()]
        index.write_text("".join(f"./{name}\n" for name in names if (copy / name).is_file()), errors="surrogateescape")


def _copy_file(source: str, target: str) -> None:
    with open(source, "rb") as read, open(target, "wb") as written:
        try:
            while os.copy_file_range(read.fileno(), written.fileno(), 1 << 30):
                pass
        except OSError:  # between two file systems; the copy continues after the part that is already copied
            shutil.copyfileobj(read, written, 1 << 20)


def _command(copy: Path, work: Path, socket: Path, master: MasterInfo) -> list[str]:
    names = ("mysqld",) if (copy / "mysql.ibd").exists() else ("mariadbd", "mysqld")
    path = f"{os.environ.get('PATH', '')}:{_PROGRAMS}"
    program = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    if program is None:
        raise UsageError(f"{names[0]}, which must read a copy of the data folder, is not installed on this machine")
    own = copy / _OPTIONS_OF_BACKUP
    logs = [name for name in log_names(copy) if (copy / name).is_file()]
    (work / "init").write_text(f"CREATE USER {_USER}@localhost;\nGRANT ALL ON *.* TO {_USER}@localhost;\n")
    options = [
        f"--datadir={copy}",
        f"--socket={socket}",
        f"--pid-file={work / 'pid'}",
        f"--log-error={work / 'log'}",
        f"--init-file={work / 'init'}",
        f"--log-bin={logs[0].rpartition('.')[0] if logs else work / 'own'}",
        f"--server-id={master.master_server_id or 1}",
        "--skip-networking",
        "--event-scheduler=OFF",
        *("--loose-expire-logs-days=0", "--loose-binlog-expire-logs-seconds=0", "--loose-mysqlx=OFF"),
        *("--loose-skip-slave-start", "--loose-skip-replica-start"),
    ]
    if os.geteuid() == 0:
        options.append("--user=root")
    return [program, f"--defaults-file={own}" if own.exists() else "--no-defaults", *options]


def _ends_with_us() -> None:
    """Make the kernel kill the temporary server when rplctl ends. The server's new process calls this function.

    If rplctl was killed, the next verify deletes the copy.
    """
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _wait(process: subprocess.Popen[bytes], reached: MasterInfo, config: Config, log: Path, folder: Path) -> None:
    """Wait until the temporary server answers, however long its recovery takes.

    `log`: the server's error log. `folder`: the original folder, for the message. Raises SourceError if the server ends
    instead.
    """
    while process.poll() is None:
        try:
            with survey(reached, "", config) as query:
                query(written("SELECT 1"))
            return
        except SourceError:
            time.sleep(_POLL_S)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    errors = [line for line in lines if "[ERROR]" in line] or lines
    raise SourceError(
        f"the temporary server on a copy of {folder} does not start: {errors[0] if errors else process.returncode}",
        errno=er.CR_CONN_HOST_ERROR,
        hint="to start again after you have written the original server's options (such as innodb_page_size) below a "
        f"line [mysqld] into {folder / _OPTIONS_OF_BACKUP}, run: rplctl verify --offline-source "
        f"{shlex.quote(str(folder))}",
    )

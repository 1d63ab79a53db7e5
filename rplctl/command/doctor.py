"""`doctor`: is everything there that replication needs? Looks, changes nothing, starts neither Spark nor a thread.

Invariant: what `check` finds in a channel is found here, too, with its repair (design D22).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.channel import Channel
from rplctl.command.channel_context import engine_of, known_channels, open_repositories, running
from rplctl.command.check import LEAST_FREE_BYTES, UNKNOWN, Limits, Scope, check
from rplctl.command.check_findings import Finding as CheckFinding
from rplctl.config import INSTANCE_FILE, Config
from rplctl.durable import is_readable_by_others
from rplctl.errors import RplError, TargetError, file_error
from rplctl.info import MasterInfo
from rplctl.repository.channels import target_key
from rplctl.secret import KEY_FILE
from rplctl.target_url import url_without_password

if TYPE_CHECKING:
    from sqlalchemy import Connection

OK, WARN, FAIL = "OK", "WARN", "FAIL"
MIN_FREE_BYTES = 1 << 30
LAG_WARNING_S, LAG_CRITICAL_S = 60, 300  # as `check` has them without an option
_AS_TOLD = {"never_started": OK, "receiver_stopped": WARN, "applier_stopped": WARN}
_MODULES = ("pyspark", "numba", "sqlalchemy", "alembic", "pymysql", "psycopg", "zstandard", "cryptography")


@dataclass(frozen=True, slots=True)
class Finding:
    Check: str
    Result: str  # OK | WARN | FAIL
    Detail: str
    Hint: str = ""


def doctor(
    config: Config, channel_names: list[str] | None = None, config_of: Callable[[str], Config] | None = None
) -> list[Finding]:
    """Every check, in order; never raises an RplError: a check that fails says so. `config_of` gives a channel's own
    options, without it they are those of `config`.
    """
    options_of = config_of or (lambda _: config)
    findings = [
        *_python(),
        *_guarded("java", lambda: _java(config)),
        *_datadir(config.datadir),
        *_secrets(config.datadir),
    ]
    names: list[str] = []
    channels = _guarded("channels", lambda: _channels(config, channel_names, names))
    targets = {target_key(options): options for options in (config, *map(options_of, names))}
    for options in targets.values():
        findings += _guarded("target", lambda options=options: _target(options))  # type: ignore[misc]
    findings += channels
    for name in names:
        findings += _doctored(options_of(name), name)
    return findings


def _doctored(config: Config, name: str) -> list[Finding]:
    """One channel, and what `check` finds there. The source is asked by `check`, too, when it answers at all."""
    seen = _guarded(f"channel '{name}'", lambda: _channel(config, name))
    is_there = all(finding.Result != FAIL for finding in seen)
    limits = Limits(LAG_WARNING_S, LAG_CRITICAL_S, config.max_sync_age)
    verdict = check(config, name, limits, Scope.ONLINE if is_there else Scope.LOCAL)
    told = [Finding(f"channel '{name}' {f.code}", _result(f), f.text, f.repair) for f in verdict.findings]
    if not verdict.findings or verdict.level == UNKNOWN:
        told.append(Finding(f"channel '{name}' check", FAIL if verdict.level else OK, verdict.text))
    return [*seen, *told]


def _result(finding: CheckFinding) -> str:
    """A channel that nobody started yet, or that was stopped in an orderly way, lacks nothing."""
    if finding.code in _AS_TOLD:
        return _AS_TOLD[finding.code]
    return (OK, WARN, FAIL)[finding.level]


def _guarded(check: str, run: Callable[[], Iterator[Finding]]) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(run())
    except (RplError, OSError) as error:
        told = file_error(error) if isinstance(error, OSError) else error
        found.append(Finding(check, FAIL, told.message, told.hint))
    return found


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", OK if sys.version_info >= (3, 11) else FAIL, f"{version} ({sys.executable})")
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding("packages", FAIL, f"missing: {', '.join(missing)}", "pip install rplctl")
    else:
        yield Finding("packages", OK, ", ".join(_MODULES))


def _java(config: Config) -> Iterator[Finding]:
    from rplctl.applier.spark.java import find_java

    with tempfile.TemporaryDirectory() as shim:
        java = find_java(config.java_home, Path(shim))
    yield Finding("java", OK, str(java.home))


def _datadir(datadir: Path) -> Iterator[Finding]:
    if not datadir.is_dir():
        yield Finding("datadir", FAIL, f"{datadir} does not exist", "rplctl init")
        return
    if not os.access(datadir, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("datadir", FAIL, f"{datadir}: no right to write", f"chown {os.geteuid()} {datadir}")
        return
    mode = datadir.stat().st_mode & 0o777
    result = WARN if mode & 0o077 else OK
    yield Finding("datadir", result, f"{datadir}, mode {mode:04o}", f"chmod 700 {datadir}" if result == WARN else "")
    free = shutil.disk_usage(datadir).free
    result = FAIL if free < LEAST_FREE_BYTES else OK if free >= MIN_FREE_BYTES else WARN
    hint = {FAIL: f"df {datadir}; free some space", WARN: "set relay_log_space_limit"}.get(result, "")
    yield Finding("free space", result, f"{free >> 20} MiB", hint)


def _secrets(datadir: Path) -> Iterator[Finding]:
    for name in (INSTANCE_FILE, KEY_FILE):
        path = datadir / name
        if path.exists():
            is_open = is_readable_by_others(path)
            hint = f"chmod 600 {path}" if is_open else ""
            yield Finding(name, FAIL if is_open else OK, "others can read it" if is_open else "mode 0600", hint)


def _target(config: Config) -> Iterator[Finding]:
    from sqlalchemy import text

    shown = url_without_password(config.target_url)
    file = Path(config.target_url.removeprefix("sqlite:///"))
    if config.target_url.startswith("sqlite:///") and not file.exists():  # asking it would make it
        is_possible = file.parent.is_dir()
        where = "the first start makes it" if is_possible else f"there is no folder {file.parent}"
        yield Finding("target", OK if is_possible else FAIL, f"{shown}: {where}", "" if is_possible else "rplctl init")
        return
    from rplctl.command.power_cut import power_cut
    from rplctl.target import mapped_errors

    engine = engine_of(config)()
    try:
        with mapped_errors(engine.dialect.name), engine.connect() as connection:
            connection.execute(text("SELECT 1"))
            look = {"postgresql": _postgresql, "mysql": _mysql, "mariadb": _mysql}.get(connection.dialect.name)
            more = [*_protection(connection), *(look(connection) if look is not None else ())]
            more += power_cut(connection, config)
    except TargetError as error:
        yield Finding("target", FAIL, f"{shown}: {error.message}", error.hint or "rplctl init --target URL")
        return
    finally:
        engine.dispose()
    yield Finding("target", OK, shown)
    yield from more


def _protection(connection: Connection) -> Iterator[Finding]:
    """Whether one who answers in a remote target's place would be noticed."""
    from rplctl.target import protection

    found = protection(connection)
    if found is None:
        return
    known = "and its certificate is checked" if found.verified else "but its certificate is not checked"
    detail = f"encrypted, {known}" if found.encrypted else "not encrypted, and nothing tells who answers"
    is_exposed = found.is_remote and not found.verified
    word = "sslmode=verify-full" if connection.dialect.name == "postgresql" else "ssl_ca=FILE"
    hint = f"rplctl init --target with ?{word} behind the address" if is_exposed else ""
    where = "" if found.is_remote else "on this machine; "
    yield Finding("target connection", WARN if is_exposed else OK, where + detail, hint)


def _mysql(connection: Connection) -> Iterator[Finding]:
    """Whether rows may be loaded in bulk."""
    from sqlalchemy import text

    may_load = bool(connection.execute(text("SELECT @@local_infile")).scalar())
    hint = "" if may_load else "SET GLOBAL local_infile=1 on the target, and in its option file"
    detail = "on" if may_load else "off: rows go by INSERT and UPDATE instead of in bulk, slower"
    yield Finding("target local_infile", OK if may_load else WARN, detail, hint)


def _postgresql(connection: Connection) -> Iterator[Finding]:
    """Encoding, the rights to make schemas and temporary tables and to let foreign keys rest."""
    from sqlalchemy import text

    def ask(sql: str) -> str:
        return str(connection.execute(text(sql)).scalar())

    encoding = ask("SHOW server_encoding")
    is_utf8 = encoding == "UTF8"
    hint = "" if is_utf8 else "createdb -E UTF8 -T template0 NAME, then rplctl init --target URL"
    yield Finding("target encoding", OK if is_utf8 else FAIL, encoding, hint)
    may_create = ask("SELECT has_database_privilege(current_database(), 'CREATE')") == "True"
    hint = "" if may_create else "GRANT CREATE ON DATABASE to the target's user: each source database is a schema"
    yield Finding("target schemas", OK if may_create else WARN, "" if may_create else "cannot make schemas", hint)
    may_stage = ask("SELECT has_database_privilege(current_database(), 'TEMP')") == "True"
    hint = "" if may_stage else "GRANT TEMPORARY ON DATABASE to the target's user"
    detail = "" if may_stage else "rows go one by one instead of through temporary tables"
    yield Finding("target temporary tables", OK if may_stage else WARN, detail, hint)
    may_rest = ask("SELECT current_setting('is_superuser')") == "on"
    if not may_rest and int(ask("SHOW server_version_num")) >= 150000:
        may_rest = ask("SELECT has_parameter_privilege('session_replication_role', 'SET')") == "True"
    hint = "" if may_rest else "GRANT SET ON PARAMETER session_replication_role TO the target's user"
    detail = "" if may_rest else "checked even where the source ran with foreign_key_checks=0"
    yield Finding("target foreign keys", OK if may_rest else WARN, detail, hint)


def _channels(config: Config, wanted: list[str] | None, names: list[str]) -> Iterator[Finding]:
    names += wanted if wanted is not None else known_channels(config)
    kinds = f"MasterInfo {config.master_info_repository}, RelayLogInfo {config.relay_log_info_repository}"
    yield Finding("repositories", OK, kinds)
    if not names and Channel("", config.datadir).relay_log_info_path.exists():
        names.append("")  # its MasterInfo is lost
    if not names:
        yield Finding("channels", WARN, "none is configured", "rplctl change-master --master-host HOST …")


def _channel(config: Config, name: str) -> Iterator[Finding]:
    check = f"channel '{name}'"
    repositories = open_repositories(config, name)
    if not repositories.master_info.exists():
        yield Finding(check, FAIL, f"no MasterInfo in {repositories.master_info.where}", _make(name))
        return
    master = repositories.master_info.read()
    threads = running(Channel(name, config.datadir))
    yield Finding(check, OK, f"running: {', '.join(threads) or 'nothing'}; position {master.read_position}")
    yield from _guarded(f"{check} source", lambda: _source(config, master, f"{check} source"))
    yield from _guarded(f"{check} binary log", lambda: _binary_log(config, name, f"{check} binary log"))


def _binary_log(config: Config, name: str, check: str) -> Iterator[Finding]:
    """Nothing without one. Raises ConfigError, BinlogFormatError."""
    from rplctl.applied_log.end import find_end
    from rplctl.applied_log.files import binary_log_files

    files = binary_log_files(config, Channel(name, config.datadir))
    if files is None:
        return
    end = find_end(files)
    where = f"{end.name}, up to {end.record.after.exec_position}" if end else "nothing logged yet"
    writable = os.access(files.datadir if files.datadir.exists() else files.datadir.parent, os.W_OK | os.X_OK)
    hint = "" if writable else f"chown {os.geteuid()} {files.datadir}"
    yield Finding(check, OK if writable else FAIL, f"{files.datadir}: {where}", hint)


def _make(channel: str) -> str:
    return f"rplctl change-master --channel {channel} --master-host HOST …" if channel else "rplctl change-master …"


def _source(config: Config, master: MasterInfo, check: str) -> Iterator[Finding]:
    from rplctl.command.source_end import folder_end

    if master.master_binlog_dir:
        yield Finding(check, OK, f"{master.master_binlog_dir} ends at {folder_end(Path(master.master_binlog_dir))}")
        return
    from rplctl.secret import reveal
    from rplctl.source.survey import survey

    with survey(master, reveal(master.user_password, config.datadir), config) as query:
        variables = {str(name): str(value) for name, value in query("SHOW GLOBAL VARIABLES LIKE '%bin%'")}
        ids = {str(name): str(value) for name, value in query("SHOW GLOBAL VARIABLES LIKE 'server\\_id'")}
        ids |= {str(name): str(value) for name, value in query("SHOW GLOBAL VARIABLES LIKE 'lower\\_case\\_table%'")}
    yield Finding(check, OK, f"{master.host}:{master.port} answers")
    yield from judge_source(variables | ids, config.server_id, check, config.lower_case_table_names)


def judge_source(
    variables: dict[str, str], server_id: int, check: str, lower_case_table_names: int = 0
) -> Iterator[Finding]:
    """What the source's variables mean for a replica that applies rows."""
    if variables.get("log_bin") != "ON":
        yield Finding(
            check, FAIL, "log_bin is OFF: it writes no binary log", "set log_bin on the source and restart it"
        )
    binlog_format = variables.get("binlog_format", "ROW")  # gone in servers that know ROW only
    if binlog_format != "ROW":
        yield Finding(check, WARN, f"binlog_format is {binlog_format}", "set binlog_format=ROW on the source (D11)")
    image = variables.get("binlog_row_image", "FULL")
    yield Finding(check, OK, f"binlog_row_image is {image}")
    if variables.get("binlog_checksum", "CRC32") != "CRC32":
        yield Finding(check, WARN, "binlog_checksum is NONE", "set binlog_checksum=CRC32 on the source")
    if server_id and variables.get("server_id") == str(server_id):
        yield Finding(check, FAIL, f"server_id {server_id} is also ours", "rplctl init --server-id N")
    names = variables.get("lower_case_table_names", "0")
    if (names != "0") != bool(lower_case_table_names):
        text = f"lower_case_table_names is {names}, here it is {lower_case_table_names}"
        yield Finding(check, FAIL, text, f"set lower_case_table_names = {int(names != '0')} in rplctl.toml")

"""`doctor`: check that everything replication needs is in place. It changes nothing and starts no thread and no Spark.

Invariant: doctor also reports each finding of `check` about a channel, with its repair (design D22).

The target's settings show what a power cut can destroy (design D3, WL#5125). Rows and position are in one transaction
of the target, except in commit mode `xa`. If the target loses its last commits, it loses the rows and the position.
Then the channel continues from the older position, and fetches these transactions again if the source still has them.
In mode `xa`, the position is durable in a file as soon as the target reports the commit. Rows that the target loses
later are then lost. Another line reports a target that a power cut may damage. The settings are read on a new
connection, which has the server's defaults. PostgreSQL's synchronous_commit is ignored, because rplctl's sessions turn
it on. SQLite's settings are those that rplctl itself sets.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.applied_log.end import find_end
from rplctl.applied_log.files import binary_log_files
from rplctl.applier.spark.java import find_java
from rplctl.channel import Channel
from rplctl.command.channel.context import (
    APPLIER,
    ask_source,
    engine_of,
    known_channels,
    open_repositories,
    running,
)
from rplctl.command.check.findings import Finding
from rplctl.command.check.folder_end import folder_end
from rplctl.command.check.verb import LEAST_FREE_BYTES, UNKNOWN, Scope, check, limits_of
from rplctl.commit.belonging import belonging_of
from rplctl.commit.resolve import two_phases_for, wants_two_phases
from rplctl.config import INSTANCE_FILE, Config
from rplctl.deadline import Deadline
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.durable import is_readable_by_others
from rplctl.errors import RplError, TargetError, TargetInUse, as_rpl_error, for_channel, in_one_line
from rplctl.event.kernel_cache import cache_folder
from rplctl.info import MasterInfo
from rplctl.repository.channels import target_key
from rplctl.secret import KEY_FILE
from rplctl.sql_run import ask
from rplctl.sql_text import text_literal, written
from rplctl.system_zone import LOAD_ZONES, SYSTEM, SystemZone, read_zone, zone_named
from rplctl.target import mapped_errors
from rplctl.target.dialect import FAIL, OK, POWER_CUT, WARN, DoctorLine
from rplctl.target.registry import dialect_of, is_missing_file, target_kind
from rplctl.target_url import url_without_password

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from rplctl.target.dialect import Dialect

__all__ = ["FAIL", "OK", "WARN", "DoctorLine", "doctor"]

MIN_FREE_BYTES = 1 << 30
TWO_PHASES = "two phases"  # the check of two-phase commit
LAG_WARNING_S, LAG_CRITICAL_S = 60, 300  # the defaults of `check`
_RESULTS = {"never_started": OK, "receiver_stopped": WARN, "applier_stopped": WARN}
_LADDER = {  # snapshot method of source.snapshot → its reason
    "exact": "the server reports the position of a consistent snapshot",
    "GTID window": "the server has GTIDs, but reports only a range of positions for a snapshot",
    "share lock": "the server has no GTIDs and reports no position of a snapshot, so a changed row is share-locked",
}
_VARIABLES = ("%bin%", "server\\_id", "lower\\_case\\_table%", "version")  # patterns for the variables of a source
_LOGS_NO_GENERATED = "11.8.9-MariaDB"  # its UPDATE events lack generated columns with every binlog_row_image
_GENERATED = written("""
SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS
WHERE GENERATION_EXPRESSION <> '' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema') ORDER BY 1, 2
""")
_SPARK = {  # option spark → its effect
    "always": "Spark decodes all rows; each start takes some seconds of CPU time, and Java stays in memory",
    "auto": "the applier itself decodes batches of up to 4 MB of log, and all batches until Spark runs",
}
_MODULES = ("pyspark", "numba", "sqlalchemy", "alembic", "pymysql", "psycopg", "zstandard", "cryptography")


def doctor(
    config: Config, channel_names: list[str] | None = None, config_of: Callable[[str], Config] | None = None
) -> list[DoctorLine]:
    """Return the result of every check, in order. A check that fails adds a line with its error and never raises
    RplError.

    `config_of` returns the options of a channel. Without it, all channels have the options in `config`. `channel_names`
    selects channels; None means all.
    """
    options_of, deadline = config_of or (lambda _: config), Deadline()
    findings = [
        *_python(),
        *_guarded("java", lambda: _java(config)),
        DoctorLine(Check="spark", Result=OK, Detail=f"{config.spark}: {_SPARK[config.spark]}"),
        *_datadir(config.datadir),
        _compiled_code(config.datadir),
        *_secrets(config.datadir),
    ]
    names: list[str] = []
    channels = _in_time(deadline, _shown(config), "channels", lambda: _channels(config, channel_names, names))
    targets = {target_key(options): options for options in (config, *map(options_of, names))}
    for options in targets.values():
        mine = [name for name in names if target_key(options_of(name)) == target_key(options)]
        looks = (partial(_target, options, mine), partial(_beside, options))
        findings += [line for look in looks for line in _in_time(deadline, _shown(options), "target", look)]
    findings += channels
    for name in names:
        if (own := options_of(name).spark) != config.spark:
            findings.append(DoctorLine(Check=f"channel '{name}' spark", Result=OK, Detail=f"{own}: {_SPARK[own]}"))
        findings += _doctored(options_of(name), name, deadline)
    return findings


def _doctored(config: Config, name: str, deadline: Deadline) -> list[DoctorLine]:
    """Return the lines about one channel, including the findings of `check`.

    If the source did not answer the first queries, `check` does not query it again.
    """
    what = f"channel '{name}'"
    seen = _in_time(deadline, f"the source of {what}, or its target,", what, lambda: _channel(config, name))
    is_there = all(finding.Result != FAIL for finding in seen)
    limits = limits_of(config, LAG_WARNING_S, LAG_CRITICAL_S)
    verdict = check(config, name, limits, Scope.ONLINE if is_there else Scope.LOCAL, deadline)
    lines = [
        DoctorLine(Check=f"channel '{name}' {f.code}", Result=_result(f), Detail=f.text, Hint=f.repair)
        for f in verdict.findings
    ]
    if not verdict.findings or verdict.level == UNKNOWN:
        lines.append(
            DoctorLine(Check=f"channel '{name}' check", Result=FAIL if verdict.level else OK, Detail=verdict.text)
        )
    return [replace(line, Hint=for_channel(line.Hint, name)) for line in (*seen, *lines)]


def _result(finding: Finding) -> str:
    """Return OK, WARN or FAIL for a finding of `check`.

    `doctor` is milder than `check`: a channel that was never started is OK, and a stopped thread is only a warning.
    """
    if finding.code in _RESULTS:
        return _RESULTS[finding.code]
    return (OK, WARN, FAIL)[finding.level]


def _shown(config: Config) -> str:
    return f"the target {url_without_password(config.target_place)}"


def _in_time(deadline: Deadline, peer: str, check: str, run: Callable[[], Iterator[DoctorLine]]) -> list[DoctorLine]:
    """Run a check and return its lines. An error, or the end of the deadline for all servers, becomes a line that
    fails.

    `peer` names the server in the error.
    """
    try:
        return deadline.ask(peer, TargetError, lambda: _guarded(check, run))
    except TargetError as late:
        return [
            DoctorLine(
                Check=check,
                Result=FAIL,
                Detail=late.message,
                Hint="check that the server runs and that this machine reaches it",
            )
        ]


def _guarded(check: str, run: Callable[[], Iterator[DoctorLine]]) -> list[DoctorLine]:
    found: list[DoctorLine] = []
    try:
        found.extend(run())
    except (RplError, OSError) as error:
        found.append(
            DoctorLine(Check=check, Result=FAIL, Detail=as_rpl_error(error).message, Hint=as_rpl_error(error).hint)
        )
    return found


def _python() -> Iterator[DoctorLine]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorLine(
        Check="python", Result=OK if sys.version_info >= (3, 11) else FAIL, Detail=f"{version} ({sys.executable})"
    )
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        yield DoctorLine(
            Check="packages", Result=FAIL, Detail=f"missing: {', '.join(missing)}", Hint="pip install rplctl"
        )
    else:
        yield DoctorLine(Check="packages", Result=OK, Detail=", ".join(_MODULES))


def _java(config: Config) -> Iterator[DoctorLine]:
    with tempfile.TemporaryDirectory() as shim:
        java = find_java(config.java_home, Path(shim))
    yield DoctorLine(Check="java", Result=OK, Detail=str(java.home))


def _datadir(datadir: Path) -> Iterator[DoctorLine]:
    if not datadir.is_dir():
        yield DoctorLine(Check="datadir", Result=FAIL, Detail=f"{datadir} does not exist", Hint="rplctl init")
        return
    if not os.access(datadir, os.R_OK | os.W_OK | os.X_OK):
        yield DoctorLine(
            Check="datadir", Result=FAIL, Detail=f"{datadir} is not writable", Hint=f"chown {os.geteuid()} {datadir}"
        )
        return
    mode = datadir.stat().st_mode & 0o777
    result = WARN if mode & 0o077 else OK
    yield DoctorLine(
        Check="datadir",
        Result=result,
        Detail=f"{datadir}, mode {mode:04o}",
        Hint=f"chmod 700 {datadir}" if result == WARN else "",
    )
    free = shutil.disk_usage(datadir).free
    result = FAIL if free < LEAST_FREE_BYTES else OK if free >= MIN_FREE_BYTES else WARN
    hint = {FAIL: f"df {datadir}; free some space", WARN: "rplctl init --relay-log-space-limit BYTES"}.get(result, "")
    yield DoctorLine(Check="free space", Result=result, Detail=f"{free >> 20} MiB", Hint=hint)


def _compiled_code(datadir: Path) -> DoctorLine:
    folder = cache_folder()
    if folder is not None:
        return DoctorLine(Check="compiled code", Result=OK, Detail=f"kept in {folder}")
    hint = f"remove the write permission of others on {datadir}, or set NUMBA_CACHE_DIR to a folder of your own"
    return DoctorLine(
        Check="compiled code", Result=WARN, Detail="not cached: each process compiles for some seconds", Hint=hint
    )


def _secrets(datadir: Path) -> Iterator[DoctorLine]:
    for name in (INSTANCE_FILE, KEY_FILE):
        path = datadir / name
        if path.exists():
            is_open = is_readable_by_others(path)
            hint = f"chmod 600 {path}" if is_open else ""
            yield DoctorLine(
                Check=name,
                Result=FAIL if is_open else OK,
                Detail="others can read it" if is_open else "mode 0600",
                Hint=hint,
            )


def _target(config: Config, channels: list[str]) -> Iterator[DoctorLine]:
    shown, engine = url_without_password(config.target_url), engine_of(config)()
    two_phases = partial(_guarded, TWO_PHASES, lambda: _two_phases(config, engine))
    if is_missing_file(config.target_place):
        errors = (belonging_of(config, Channel(name, config.datadir), lambda: engine).error for name in channels)
        if (lost := next(filter(None, errors), None)) is not None:
            yield DoctorLine(Check="target", Result=FAIL, Detail=lost.message, Hint=in_one_line(lost.hint))
            return
    file = Path(config.target_url.removeprefix("sqlite:///"))
    if config.target_url.startswith("sqlite:///") and not file.exists():  # a query would create the file
        is_possible = file.parent.is_dir()
        where = "the first start creates it" if is_possible else f"there is no folder {file.parent}"
        result, hint = (OK, "") if is_possible else (FAIL, "rplctl init")
        yield DoctorLine(Check="target", Result=result, Detail=f"{shown}: {where}", Hint=hint)
        yield from two_phases()
        return
    if dialect_of(engine.dialect.name).is_missing(engine):
        yield DoctorLine(Check="target", Result=OK, Detail=f"{shown}: the first start creates it")
        yield from two_phases()
        return
    try:
        with mapped_errors(engine.dialect.name), engine.connect() as connection:
            ask(connection, written("SELECT 1"))
            dialect = dialect_of(connection.dialect.name)
            more = [*_protection(connection, dialect), *dialect.rights(connection), *_power_cut(connection, config)]
        more += two_phases()
    except TargetError as error:
        if _is_our_applier(config, error):
            yield DoctorLine(Check="target", Result=OK, Detail=f"{shown}: {error.message}")
            return
        yield DoctorLine(
            Check="target",
            Result=FAIL,
            Detail=f"{shown}: {error.message}",
            Hint=error.hint or "rplctl init --target URL",
        )
        return
    finally:
        engine.dispose()
    yield DoctorLine(Check="target", Result=OK, Detail=shown)
    yield from more


def _beside(config: Config) -> Iterator[DoctorLine]:
    yield from dialect_of(target_kind(config.target_url)).beside(config.target_url)


def _is_our_applier(config: Config, error: TargetError) -> bool:
    """True if the error says that the target's file is open in an applier of this instance."""
    if not isinstance(error, TargetInUse):
        return False
    return any(
        running(Channel(name, config.datadir)).get(APPLIER) == error.process_id for name in known_channels(config)
    )


def _protection(connection: Connection, dialect: Dialect) -> Iterator[DoctorLine]:
    """Yield a line that says whether the connection to the target is encrypted and would detect a false server."""
    found = dialect.protection(connection)
    if found is None:
        return
    known = "and its certificate is checked" if found.verified else "but its certificate is not checked"
    detail = f"encrypted, {known}" if found.encrypted else "not encrypted, and the server's identity is not checked"
    is_exposed = found.is_remote and not found.verified
    hint = f"run rplctl init --target with ?{dialect.verified_by} after the address" if is_exposed else ""
    where = "" if found.is_remote else "on this machine; "
    yield DoctorLine(Check="target connection", Result=WARN if is_exposed else OK, Detail=where + detail, Hint=hint)


def _power_cut(connection: Connection, config: Config) -> Iterator[DoctorLine]:
    """Yield a line for each setting of the target with which a power cut loses data.

    If no setting loses data, one line says so. A last line is about the relay log.
    """
    together = "rows and position together: the rows are fetched and applied again"
    separate = "rows without their position (commit_mode=xa): these rows are lost"
    lost = separate if config.commit_mode == "xa" else together
    found = list(dialect_of(connection.dialect.name).power_cut(connection, lost))
    yield from found or [
        DoctorLine(Check=POWER_CUT, Result=OK, Detail="takes no committed row from the target, nor its position")
    ]
    events = config.sync_relay_log
    part = f"up to {events} events" if events else "the events since its last rotation"
    text = f"takes {part}, which are fetched again while the source has them"
    yield DoctorLine(Check=f"{POWER_CUT}, relay log", Result=OK, Detail=text)


def _two_phases(config: Config, engine: Engine) -> Iterator[DoctorLine]:
    """Yield lines that say whether the target can prepare transactions, if an option needs two-phase commit."""
    if wants_two_phases(config):
        weaknesses = two_phases_for(config, engine)
        yield from (DoctorLine(Check=TWO_PHASES, Result=WARN, Detail=text) for text in weaknesses)
        if not weaknesses:
            yield DoctorLine(Check=TWO_PHASES, Result=OK, Detail="the target keeps prepared transactions")


def _channels(config: Config, wanted: list[str] | None, names: list[str]) -> Iterator[DoctorLine]:
    names += wanted if wanted is not None else known_channels(config)
    kinds = f"MasterInfo {config.master_info_repository}, RelayLogInfo {config.relay_log_info_repository}"
    yield DoctorLine(Check="repositories", Result=OK, Detail=kinds)
    if not names and Channel("", config.datadir).relay_log_info_path.exists():
        names.append("")  # the default channel, whose MasterInfo is lost
    if not names:
        yield DoctorLine(
            Check="channels", Result=WARN, Detail="none is configured", Hint="rplctl change-master --master-host HOST …"
        )


def _channel(config: Config, name: str) -> Iterator[DoctorLine]:
    check = f"channel '{name}'"
    repositories = open_repositories(config, name)
    if not repositories.master_info.exists():
        hint = f"rplctl change-master{f' --channel {name} --master-host HOST' if name else ''} …"
        yield DoctorLine(
            Check=check, Result=FAIL, Detail=f"no MasterInfo in {repositories.master_info.where}", Hint=hint
        )
        return
    master = repositories.master_info.read()
    threads = running(Channel(name, config.datadir))
    yield DoctorLine(
        Check=check, Result=OK, Detail=f"running: {', '.join(threads) or 'nothing'}; position {master.read_position}"
    )
    yield from _guarded(f"{check} source", lambda: _source(config, master, f"{check} source"))
    yield from _guarded(f"{check} binary log", lambda: _binary_log(config, name, f"{check} binary log"))


def _binary_log(config: Config, name: str, check: str) -> Iterator[DoctorLine]:
    """Yield a line about the channel's own binary log, in which it logs applied transactions. Without log_bin, yield
    none.

    Raises ConfigError if `log_bin` is not valid, and BinlogFormatError if the log is damaged.
    """
    files = binary_log_files(config, Channel(name, config.datadir))
    if files is None:
        return
    end = find_end(files)
    where = f"{end.name}, up to {end.record.after.exec_position}" if end else "nothing logged yet"
    writable = os.access(files.datadir if files.datadir.exists() else files.datadir.parent, os.W_OK | os.X_OK)
    hint = "" if writable else f"chown {os.geteuid()} {files.datadir}"
    yield DoctorLine(Check=check, Result=OK if writable else FAIL, Detail=f"{files.datadir}: {where}", Hint=hint)


def _source(config: Config, master: MasterInfo, check: str) -> Iterator[DoctorLine]:
    if master.master_binlog_dir:
        yield DoctorLine(
            Check=check,
            Result=OK,
            Detail=f"{master.master_binlog_dir} ends at {folder_end(Path(master.master_binlog_dir))}",
        )
        return
    from rplctl.source.rights import read_rights
    from rplctl.source.snapshot import step_of

    with ask_source(config, master) as query:
        rights, step = read_rights(query), step_of(query)
        rows = [
            row for like in _VARIABLES for row in query(written("SHOW GLOBAL VARIABLES LIKE {}", text_literal(like)))
        ]
        variables = {str(name): str(value) for name, value in rows}
        is_silent = variables.get("version", "").startswith(_LOGS_NO_GENERATED)
        computes = dialect_of(target_kind(config.target_place)).executes_statements
        named = [(str(row[0]), str(row[1])) for row in query(_GENERATED)] if is_silent and not computes else []
        zone = read_zone(query) if computes and not config.source_time_zone else None
    rules = ReplicationFilter.from_config(config)
    tables = [f"{database}.{name}" for database, name in named if rules.accepts_rows(rules.rewritten(database), name)]
    yield DoctorLine(Check=check, Result=OK, Detail=f"{master.host}:{master.port} answers")
    if not rights.may_replicate():
        detail = f"the account {rights.account} lacks REPLICATION SLAVE"
        yield DoctorLine(Check=check, Result=FAIL, Detail=detail, Hint=rights.grant("REPLICATION SLAVE"))
    yield DoctorLine(Check=check, Result=OK, Detail=f"clone reads by {step.value}: {_LADDER[step.value]}")
    yield from judge_source(variables, config.server_id, check, config.lower_case_table_names)
    if config.source_time_zone and computes:
        zone = zone_named(config.source_time_zone)
    if zone is not None:
        yield from _guarded(f"{check} time zone", lambda: _time_zones(config, zone, f"{check} time zone"))
    if tables:
        text = f"UPDATE events of {_LOGS_NO_GENERATED} lack generated columns: {len(tables)} tables, {tables[0]} first"
        hint = (
            "generated columns other than sums of whole numbers stop the channel (man rplctl-types). "
            "To exclude the tables, run: rplctl change-filter --replicate-ignore-table DB.TABLE"
        )
        yield DoctorLine(Check=check, Result=WARN, Detail=text, Hint=hint)


def _time_zones(config: Config, zone: SystemZone, check: str) -> Iterator[DoctorLine]:
    """Yield a line that says whether the target can execute statements in the time zone SYSTEM of the source."""
    engine = engine_of(config)()
    try:
        with mapped_errors(engine.dialect.name), engine.connect() as connection:
            word = dialect_of(engine.dialect.name).time_zone(connection, zone)
    finally:
        engine.dispose()
    if word == SYSTEM:
        yield DoctorLine(Check=check, Result=OK, Detail="SYSTEM is the same time zone on source and target")
    elif word:
        yield DoctorLine(
            Check=check,
            Result=OK,
            Detail=f"SYSTEM differs: statements that depend on it are executed in the zone '{word}'",
        )
    else:
        detail = "the target lacks the source's time zone SYSTEM: DDL that converts stored times fails (1846)"
        yield DoctorLine(Check=check, Result=WARN, Detail=detail, Hint=LOAD_ZONES)


def judge_source(
    variables: dict[str, str], server_id: int, check: str, lower_case_table_names: int = 0
) -> Iterator[DoctorLine]:
    """Yield lines about the source's variables: which of them prevent or hinder a replica that applies rows."""
    if variables.get("log_bin") != "ON":
        yield DoctorLine(
            Check=check,
            Result=FAIL,
            Detail="log_bin is OFF: the source writes no binary log",
            Hint="set log_bin on the source and restart it",
        )
    binlog_format = variables.get("binlog_format", "ROW")  # servers that support only ROW lack the variable
    if binlog_format != "ROW":
        yield DoctorLine(
            Check=check,
            Result=WARN,
            Detail=f"binlog_format is {binlog_format}",
            Hint="set binlog_format=ROW on the source (D11)",
        )
    image = variables.get("binlog_row_image", "FULL")
    yield DoctorLine(Check=check, Result=OK, Detail=f"binlog_row_image is {image}")
    if variables.get("binlog_checksum", "CRC32") != "CRC32":
        yield DoctorLine(
            Check=check, Result=WARN, Detail="binlog_checksum is NONE", Hint="set binlog_checksum=CRC32 on the source"
        )
    if server_id and variables.get("server_id") == str(server_id):
        text = f"server_id {server_id} is also the server_id of this instance"
        yield DoctorLine(Check=check, Result=FAIL, Detail=text, Hint="rplctl init --server-id N")
    names = variables.get("lower_case_table_names", "0")
    if (names != "0") != bool(lower_case_table_names):
        text = f"lower_case_table_names is {names}, here it is {lower_case_table_names}"
        yield DoctorLine(
            Check=check,
            Result=FAIL,
            Detail=text,
            Hint=f"set lower_case_table_names = {int(names != '0')} in rplctl.toml",
        )

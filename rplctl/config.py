"""The options of an instance: names as in mysqld, types, defaults, ranges, and the files that set them.

The first of these sources that has a value wins (man rplctl.toml):
    command line > RPLCTL_* environment > --config file > <datadir>/rplctl.toml > ~/.config/rplctl/rplctl.toml >
    /etc/rplctl/rplctl.toml > default
A `$` in a value has no special meaning.
A file has common options at its top, and the options of one channel in `[channel.NAME]`. The section of the default
channel is `[channel.""]`. Within a file, the channel's options win. A list, such as a filter, is stored as one text:
`a,b`. Invariant: the fields of `Config` are the only table of options. Any other option, or a value out of range,
raises ConfigError (exit code 78), which names the file and the option.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from rplctl import mysql_errors as er
from rplctl.durable import is_readable_by_others
from rplctl.errors import ConfigError, RplError, error_numbers
from rplctl.option_text import integer, is_clean, is_rule, joined
from rplctl.plain_file import UnfitFile, read_plain
from rplctl.secret import reveal
from rplctl.system_zone import zone_named
from rplctl.target_url import authority, has_password, url_with_nul_rule, url_with_password

ENVIRONMENT_PREFIX = "RPLCTL_"
DATADIR_VARIABLE = "RPLCTL_DATADIR"
CONFIG_VARIABLE = "RPLCTL_CONFIG"
INSTANCE_FILE = "rplctl.toml"
SYSTEM_FILE = Path("/etc/rplctl/rplctl.toml")
SYSTEM_DATADIR = Path("/var/lib/rplctl")
UINT_MAX = (1 << 32) - 1

T = TypeVar("T")
Value = str | int | bool
_Options = tuple[dict[str, Value], dict[str, dict[str, Value]], dict[str, dict[str, Value]]]  # result of `_checked`
_LISTS = {
    "databases": "db,...",
    "tables": "db.table,...",
    "patterns": "db.table,...",
    "rewrites": "from->to,...",
    "settings": "spark.NAME=VALUE,...",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One row of the option table: the name, the type, the range and the help of one option."""

    name: str
    type: type[Value]
    default: Value
    help: str
    low: int
    high: int
    choices: tuple[str, ...] = ()
    holds: str = ""  # the kind of the list's elements, a key of `_LISTS`; '' = the option is not a list
    is_error_list: bool = False
    is_zone: bool = False

    @property
    def is_filter(self) -> bool:
        return bool(self.holds) and self.holds != "settings"

    @property
    def environment(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def old_name(self) -> str:
        """The option's name in mysqld before 8.0.26. The value is '' if the name has not changed."""
        return self.name.replace("replica_", "slave_", 1) if "replica_" in self.name else ""

    @property
    def range_text(self) -> str:
        if self.is_zone:
            return "+hh:mm|Area/City"
        if self.is_error_list:
            return "off|all|ddl_exist_errors|number,..."
        if self.choices or self.holds:
            return _LISTS.get(self.holds, "|".join(self.choices))
        return "true|false" if self.type is bool else f"{self.low}..{self.high}" if self.type is int else "text"


def option(default: T, help: str, *, low: int = 0, high: int = UINT_MAX, **rest: Any) -> T:
    """Return a dataclass field of `Config`, whose metadata is the row of the option in the option table.

    `rest`: values for the other fields of Option. The repr omits free texts, because a URL may contain a password.
    """
    row = {"help": help, "low": low, "high": high, **rest}
    made: T = field(default=default, metadata=row, repr=not isinstance(default, str) or bool(rest))
    return made


@dataclass(frozen=True, slots=True)
class Config:
    """The options of one instance, merged for one channel."""

    datadir: Path
    target: str = option("", "target database as an SQLAlchemy URL; empty = sqlite:///<datadir>/target.db")
    target_password: str = option("", "password of the target as stored: env:NAME, file:PATH, or encrypted by init")
    master_info_repository: str = option("FILE", "where MasterInfo is stored", choices=("FILE", "TABLE"))
    relay_log_info_repository: str = option("FILE", "where RelayLogInfo is stored", choices=("FILE", "TABLE"))
    commit_mode: str = option(
        "auto",
        "commit mode; xa = two-phase commit for a position that is outside the target's transactions",
        choices=("auto", "xa"),
    )
    prepared_position: str = option(
        "line",
        "where commit_mode=xa prepares the position: line of relay-log.info, pages of a shadow file, or binlog",
        choices=("line", "pages", "binlog"),
    )
    commit_group_transactions: int = option(
        0, "maximum number of source transactions per commit; 0 = only max_batch_bytes limits it (statements: 100)"
    )
    commit_group_milliseconds: int = option(
        0, "target duration of a commit group, in milliseconds; the group size adapts to it; 0 = no limit"
    )
    rep_engine: str = option("", "storage engine of the repository tables; empty = a transactional one of the target")
    server_id: int = option(0, "server id of this replica, unique at the source; 0 = derived from the datadir")
    sync_master_info: int = option(
        10_000,
        "events between syncs of MasterInfo; 0 = only when a log is rotated, an option changes or the receiver stops",
    )
    sync_relay_log: int = option(10_000, "events between syncs of the relay log; 0 = the operating system decides")
    sync_relay_log_info: int = option(
        10_000, "transactions between syncs of a RelayLogInfo file (with commit_mode=xa: per commit); 0 = no limit"
    )
    relay_log_purge: bool = option(True, "remove relay logs after they are applied")
    relay_log_space_limit: int = option(
        0, "total size of the relay logs in bytes at which the receiver waits; 0 = no limit", high=1 << 62
    )
    max_relay_log_size: int = option(1 << 30, "size in bytes at which a relay log is rotated", low=4096, high=1 << 40)
    log_bin: str = option("", "name or path of the binary log of applied transactions; empty = no binary log")
    log_replica_updates: bool = option(True, "write applied transactions to the binary log; false turns log_bin off")
    max_binlog_size: int = option(1 << 30, "size in bytes at which a binary log is rotated", low=4096, high=1 << 30)
    sync_binlog: int = option(1, "commits between syncs of the binary log; 0 = the operating system decides")
    binlog_expire_logs_seconds: int = option(2_592_000, "age in seconds at which binary logs are removed; 0 = never")
    replica_net_timeout: int = option(
        60, "seconds without data from the source after which the connection counts as lost", low=1, high=31536000
    )
    source_poll: int = option(60, "seconds between polls of the source's clock, end of log and purge state; 0 = never")
    heartbeat_table: str = option("heartbeat.heartbeat", "name of pt-heartbeat's table in the target; empty = no table")
    heartbeat_utc: bool = option(True, "heartbeats are in UTC (pt-heartbeat --utc); false = this host's time zone")
    replica_transaction_retries: int = option(10, "number of retries of a batch after a transient error")
    replica_parallel_workers: int = option(
        0,
        "number of connections that commit a batch in parallel, each its own tables; 0 or 1 = one connection",
        high=16,
    )
    replica_preserve_commit_order: bool = option(False, "commit in the source's order, on one connection")
    run_mode: str = option(
        "auto",
        "how check judges threads that do not run: always = an error; cron = no error while max_sync_age is kept; "
        "auto = as the channel was last started",
        choices=("auto", "always", "cron"),
    )
    max_sync_age: int = option(
        3600, "seconds after the last complete start --until-synced at which check warns; critical after twice the time"
    )
    max_verify_age: int = option(0, "seconds after the last verify at which check warns; 0 = never")
    replica_exec_mode: str = option(
        "STRICT",
        "IDEMPOTENT overwrites rows that already exist and ignores missing rows",
        choices=("STRICT", "IDEMPOTENT"),
    )
    replica_ddl_exec_mode: str = option(
        "IDEMPOTENT",
        "IDEMPOTENT ignores a MariaDB source's DROP of a table or sequence that does not exist",
        choices=("IDEMPOTENT", "STRICT"),
    )
    replica_skip_errors: str = option("off", "errors of the target that the applier ignores", is_error_list=True)
    max_batch_bytes: int = option(512 << 20, "maximum bytes of relay log per Spark job", low=1 << 16, high=1 << 40)
    spark: str = option(
        "always",
        "rows that Spark tasks decode: always = all rows; auto = only the rows of large batches",
        choices=("always", "auto"),
    )
    spark_master: str = option("", "URL of the Spark master; empty = local[number of cores]")
    spark_conf: str = option("", "Spark properties", holds="settings")
    insecure_cluster: bool = option(False, "use a Spark cluster that neither authenticates nor encrypts")
    channel_group: str = option("", "name of a group whose channels share one receiver process and one applier process")
    java_home: str = option("", "folder of the Java installation that starts Spark")
    on_unsupported_ddl: str = option(
        "skip_objects",
        "unsupported DDL to skip: skip_objects = views, triggers, routines, events, users; "
        "skip = also DROP of unknown tables; stop = users only; stop_all = none",
        choices=("skip_objects", "skip", "stop", "stop_all"),
    )
    on_uncomputable_ddl: str = option(
        "stop",
        "DDL that gives stored rows values which only the source knows: stop, or copy the tables again (recopy)",
        choices=("stop", "recopy"),
    )
    nul_in_text: str = option(
        "stop", "NUL in PostgreSQL's text: stop, or replace it by U+FFFD", choices=("stop", "replace")
    )
    on_error: str = option("", "shell command to run for each new error; it reads the error as JSON on standard input")
    on_recovery: str = option("", "shell command to run when a thread works again after an error")
    source_time_zone: str = option(
        "",
        "time zone that SYSTEM means on the source; needed for a folder of logs; empty = ask the server",
        is_zone=True,
    )
    lower_case_table_names: int = option(0, "same as on the source; 1 = table names are in lower case", high=1)
    replicate_do_db: str = option("", "replicate only these databases", holds="databases")
    replicate_ignore_db: str = option("", "do not replicate these databases", holds="databases")
    replicate_do_table: str = option("", "replicate only these tables", holds="tables")
    replicate_ignore_table: str = option("", "do not replicate these tables", holds="tables")
    replicate_wild_do_table: str = option(
        "", "replicate only tables that match these patterns (% and _)", holds="patterns"
    )
    replicate_wild_ignore_table: str = option(
        "", "do not replicate tables that match these (% and _)", holds="patterns"
    )
    replicate_rewrite_db: str = option("", "databases that get another name in the target", holds="rewrites")
    replicate_same_server_id: bool = option(False, "apply events that carry this replica's own server id")
    config_file: Path | None = field(default=None, kw_only=True, compare=False)  # --config, to read the options again

    @property
    def target_place(self) -> str:
        """The target's URL without the stored password. Connections use `target_url` instead."""
        return self.target or f"sqlite:///{self.datadir / 'target.db'}"

    @property
    def target_url(self) -> str:
        """The URL for connections. It may contain the password in clear text, so the caller must never show it."""
        url = self.target_place
        if self.target_password:
            url = url_with_password(url, reveal(self.target_password, self.datadir))
        return url_with_nul_rule(url, self.nul_in_text)


def _option_table() -> dict[str, Option]:
    types = get_type_hints(Config)
    table = {}
    for f in fields(Config):
        if f.metadata and f.default is not MISSING:
            table[f.name] = Option(name=f.name, type=types[f.name], default=f.default, **f.metadata)
    return table


OPTIONS: dict[str, Option] = _option_table()
_OLD_NAMES = {o.old_name: o.name for o in OPTIONS.values() if o.old_name}


def new_name(name: str) -> str:
    """Return the current name of an option, for example `replica_exec_mode` for the old name `slave_exec_mode`."""
    return _OLD_NAMES.get(name, name)


def load_config(
    datadir: Path,
    channel: str | None = "",
    overrides: Mapping[str, Value] | None = None,
    *,
    config_file: Path | None = None,
) -> Config:
    """Return all options of one channel, merged from all their sources.

    `channel`: '' for the default channel; None to ignore the sections of all channels. `overrides`: the options of the
    command line. `config_file`: the file of `--config`; None means $RPLCTL_CONFIG. Raises ConfigError if an option or a
    value is not valid.
    """
    merged: dict[str, Value] = {}
    for path in _files(datadir, config_file):
        top, section = read_options(path, channel)
        merged.update(top)
        own, common = str(section.get("target", "")), str(merged.get("target", ""))
        if own and authority(own) != authority(common):
            merged.pop("target_password", None)  # another server must not receive the password of the common target
        merged.update(section)
    given = {name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)}
    for o in OPTIONS.values() if given else ():
        for variable in (o.environment, ENVIRONMENT_PREFIX + (o.old_name or o.name).upper()):
            if variable in given:
                merged[o.name] = check_value(o.name, os.environ[variable], f"environment variable {variable}")
        if o.environment in given:
            if o.name == "target" and has_password(str(merged["target"])):
                raise ConfigError(f"environment variable {o.environment} holds a password", hint=_PASSWORD_HINT)
    for name, value in (overrides or {}).items():
        merged[name] = check_value(name, value, "command line")
    return Config(datadir, **merged, config_file=config_file)  # type: ignore[arg-type]  # check_value checked the types


def _files(datadir: Path, config_file: Path | None) -> list[Path]:
    """Return the option files in ascending order of precedence, also the file of `--config` if it is missing."""
    named = config_file or _path_from_environment(CONFIG_VARIABLE)
    files = [path for path in (SYSTEM_FILE, user_file(), datadir / INSTANCE_FILE) if path.exists()]
    return [*files, *([named] if named else [])]


def channel_sections(datadir: Path, config_file: Path | None = None) -> dict[str, frozenset[str]]:
    """Return, for each channel that has a section in a file, the names of the options that the section sets.

    Raises ConfigError if a file is not valid.
    """
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for path in _files(datadir, config_file):
        for name, values in _options(path)[1].items():
            spelled, before = found.get(name.lower(), (name, frozenset()))
            found[name.lower()] = (spelled, before | values.keys())
    return dict(found.values())


_PASSWORD_HINT = "remove it from the URL, then run: rplctl init --target-password-file FILE"


def check_value(name: str, value: object, where: str) -> Value:
    """Return the value of an option, converted to the option's type.

    `where`: the origin of the value, for example a file; an error names it. Raises ConfigError if there is no such
    option, or if the value is not valid.
    """
    o = OPTIONS.get(name)
    if o is None:
        raise ConfigError(
            f"{where}: unknown option '{name}'{_did_you_mean(name)}",
            hint="to see the options and their values, run: man 5 rplctl.toml",
        )
    if o.holds or o.is_error_list:
        value = joined(value)
        if o.holds == "patterns" and isinstance(value, str) and not all("." in rule for rule in split_list(value)):
            raise ConfigError(
                f"{where}: {name} = {value!r}: Supplied filter list contains a value which is not in the required "
                "format 'db_pattern.table_pattern'",
                errno=er.INVALID_RPL_WILD_TABLE_FILTER_PATTERN,
                hint="to see the options and their values, run: man 5 rplctl.toml",
            )
    converted = _convert(o, value)
    if converted is None or (isinstance(converted, str) and not is_clean(converted)):
        shown = "(not shown)" if name in ("target", "target_password") else repr(value)
        raise ConfigError(
            f"{where}: {name} = {shown}: expected {o.range_text}",
            hint="to see the options and their values, run: man 5 rplctl.toml",
        )
    return converted


def _convert(o: Option, value: object) -> Value | None:
    """Return the value in the option's type, or None if it is not valid. Text is read as in mysqld (`64M`, `ON`)."""
    if o.type is bool:
        words = {"1": True, "on": True, "true": True, "0": False, "off": False, "false": False}
        return words.get(str(value).lower()) if isinstance(value, str | int) else None
    if o.type is int:
        number = integer(value)
        return number if number is not None and o.low <= number <= o.high else None
    if not isinstance(value, str):
        return None
    if o.holds == "settings":
        return value if all("=" in setting for setting in split_settings(value)) else None
    if o.holds:
        rules = split_list(value)
        return ",".join(rules) if all(is_rule(o.holds, rule) for rule in rules) else None
    if o.is_error_list:
        try:
            error_numbers(value)
        except ValueError:
            return None
    if o.is_zone and value:
        try:
            zone_named(value)
        except (ValueError, KeyError, OSError):
            return None
    if not o.choices:
        return value
    return next((choice for choice in o.choices if choice.lower() == value.lower()), None)


def split_list(value: str) -> list[str]:
    """Return the elements of a list option in order, without duplicates."""
    return list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def split_settings(value: str) -> list[str]:
    """Return the elements of a list of Spark properties, whose values may contain commas."""
    return [part.strip() for part in re.split(r",(?=\s*spark\.)", value) if part.strip()]


def spark_conf_of(value: str) -> dict[str, str]:
    """Return the Spark properties in the option `spark_conf`. The last value of a repeated property wins.

    Raises ConfigError for a name that does not start with `spark.`.
    """
    found = {}
    for setting in split_settings(value):
        name, _, given = setting.partition("=")
        if not name.startswith("spark."):
            raise ConfigError(
                f"spark_conf: '{name}' is not a Spark property: names start with 'spark.'",
                hint="--spark-conf spark.executor.memory=2g, for example; see man 7 rplctl-cluster",
            )
        found[name.strip()] = given.strip()
    return found


def _did_you_mean(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name.replace("-", "_").lower(), [*OPTIONS, "datadir"], n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def read_file(path: Path) -> dict[str, Any]:
    """Return the parsed TOML of one option file. Raises ConfigError if the file cannot be read or parsed."""
    try:
        return tomllib.loads(read_plain(path).decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", hint="name a readable file with --config") from error
    except UnfitFile as error:
        raise ConfigError(error.message, hint=error.hint) from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deep", hint="the file is TOML: name = value, texts in quotes") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}", hint="the file is TOML: name = value, texts in quotes") from error


def read_options(path: Path, channel: str | None) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the options at the top of the file, and the options in the channel's section.

    `channel`: '' for the default channel; None for no section. Raises ConfigError if any option of the file is not
    valid.
    """
    top, _, of = _options(path)
    return top, {} if channel is None else of.get(channel.lower(), {})


def _options(path: Path) -> _Options:
    try:
        data = read_plain(path)
    except (OSError, RplError):
        data = b""  # `read_file` reads the file again and raises the error
    return _checked(path, data)


@lru_cache(maxsize=8)
def _checked(path: Path, _: bytes) -> _Options:
    """Return the checked options of a file: those at its top, those of each section, and those of each channel.

    Sections have their names as written, and channels have names in lower case. The result is cached, because 256
    channels may need it. The file's content is a part of the cache key, so that a changed file is parsed again.
    """
    stored = read_file(path)
    stored.pop("datadir", None)  # read by default_datadir
    sections = stored.pop("channel", {})
    if not isinstance(sections, dict) or not all(isinstance(s, dict) for s in sections.values()):
        raise ConfigError(f"{path}: 'channel' must hold sections", hint='write [channel.NAME] or [channel.""]')
    top = _check_section(path, "", stored)
    checked = {name: _check_section(path, f"[channel.{name}] ", sections[name]) for name in sections}
    of: dict[str, dict[str, Value]] = {}
    for name, values in checked.items():
        of[name.lower()] = of.get(name.lower(), {}) | values
    return top, checked, of


def _check_section(path: Path, section: str, values: Mapping[str, object]) -> dict[str, Value]:
    where = f"{path}: {section}".rstrip(": ")
    checked = {new_name(name): check_value(new_name(name), value, where) for name, value in values.items()}
    if has_password(str(checked.get("target", ""))) and is_readable_by_others(path):
        raise ConfigError(
            f"{path}: {section}target holds a password and others can read it",
            hint=f"to let only its owner read the file, run: chmod 600 {path}",
        )
    return checked


def default_datadir(config_file: Path | None = None) -> Path:
    """Return the default of `--datadir`: $RPLCTL_DATADIR, or `datadir` in an option file, or the user's default.

    Raises ConfigError if an option file is not valid, or if its `datadir` is not an absolute path.
    """
    from_environment = _path_from_environment(DATADIR_VARIABLE)
    if from_environment:
        return from_environment
    for path in (config_file or _path_from_environment(CONFIG_VARIABLE), user_file(), SYSTEM_FILE):
        if path and (path == config_file or path.exists()):
            stored = read_file(path).get("datadir")
            if stored is not None and not (isinstance(stored, str) and stored.startswith("/")):
                raise ConfigError(f"{path}: datadir = {stored!r}: expected an absolute path")
            if stored:
                return Path(stored)
    if os.geteuid() == 0:
        return SYSTEM_DATADIR
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "rplctl"


def user_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rplctl" / INSTANCE_FILE


def _path_from_environment(name: str) -> Path | None:
    return Path(os.environ[name]) if os.environ.get(name) else None

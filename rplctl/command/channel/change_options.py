"""Define the options of CHANGE MASTER TO in one table, with name, type, range and the thread that each option concerns.

rplctl refuses each value that MySQL refuses, with MySQL's error number. Invariant: no option is stored and then
ignored. An option that rplctl does not support has the reason in `refused`. Of such an option, only the value that
turns the option off is accepted. `None` always means that the option was not given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast
from uuid import UUID

from rplctl import mysql_errors as er
from rplctl.config import UINT_MAX
from rplctl.errors import UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import is_log_name

MAX_HEARTBEAT_PERIOD = 4_294_967  # seconds
MAX_DELAY = 2_147_483_647  # seconds
MAX_HOST, MAX_USER, MAX_PASSWORD = 255, 32, 32  # characters
COMPRESSION_ALGORITHMS = ("zlib", "zstd", "uncompressed")
PRIMARY_KEY_CHECKS = ("STREAM", "ON", "OFF", "GENERATE")
ZERO_IS_NOT_GIVEN = ("master_port", "master_connect_retry")
USE_GTID = ("no", "current_pos", "slave_pos")  # index = MasterInfo.using_gtid

T = TypeVar("T")
RECEIVE, EXECUTE, BOTH = "receive", "execute", "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOption:
    """One option of CHANGE MASTER TO, a row of the table.

    `stores` names the field of a record that stores the value: `master.FIELD` or `relay.FIELD`. It is '' if the command
    computes the fields.
    """

    name: str  # field of MasterChanges
    concerns: str  # receive | execute | both: which thread must be stopped
    kind: str  # text, file, folder, number, seconds, switch, ids, choice
    stores: str
    help: str
    low: int = 0
    high: int = UINT_MAX
    choices: tuple[str, ...] = ()
    refused: str = ""  # the reason why only the value that turns the option off is accepted; '' = every value
    instead: str = ""  # the alternative, as a hint

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of the command line for this option, such as `--master-host` and its alias `--source-host`."""
        flag = "--" + self.name.replace("_", "-")
        if "master-" in flag:
            return (flag, flag.replace("master-", "source-", 1))
        return (flag,)

    @property
    def sql_name(self) -> str:
        return self.name.upper()

    @property
    def metavar(self) -> str:
        words = {"number": "N", "seconds": "SECONDS", "switch": "0|1", "ids": "N,N", "file": "FILE", "folder": "DIR"}
        return "|".join(self.choices) or words.get(self.kind, "TEXT")


def _row(kind: str, stores: str, help: str, **rest: Any) -> Any:
    """Return a field of MasterChanges for one option, with the attributes of its ChangeOption as metadata.

    By default, the option concerns the thread whose record stores the value. `rest` can set `concerns` and other
    attributes.
    """
    concerns = RECEIVE if stores.startswith("master.") else EXECUTE
    return field(default=None, metadata={"concerns": concerns, "kind": kind, "stores": stores, "help": help, **rest})


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterChanges:
    """The operator's changes as typed values. None means that the option was not given."""

    master_host: str | None = _row("text", "master.host", "host name or address of the source")
    master_port: int | None = _row(
        "number", "master.port", "TCP port of the source, default 3306; 0 = unchanged", high=65535
    )
    master_user: str | None = _row("text", "master.user_name", "account on the source; it needs REPLICATION SLAVE")
    master_log_file: str | None = _row("text", "master.master_log_name", "binary log of the source to read from")
    master_log_pos: int | None = _row(
        "number", "master.master_log_pos", "position in --master-log-file to read from", high=(1 << 63) - 1
    )
    master_binlog_dir: str | None = _row(
        "folder",
        "master.master_binlog_dir",
        "folder of binary logs to read instead of a server; '' = read from a server",
    )
    master_connect_retry: int | None = _row(
        "number", "master.connect_retry", "seconds between attempts to connect, default 60; 0 = unchanged"
    )
    master_retry_count: int | None = _row(
        "number",
        "master.retry_count",
        "attempts to connect before the receiver stops, default 86400; 0 = no limit",
        high=(1 << 63) - 1,
    )
    master_heartbeat_period: float | None = _row(
        "seconds",
        "master.heartbeat",
        "seconds without an event after which the source sends a heartbeat, default 30; 0 = never",
    )
    ignore_server_ids: tuple[int, ...] | None = _row(
        "ids", "master.ignored_server_ids", "ignore events of these server ids; '' = ignore none"
    )
    master_bind: str | None = _row("text", "master.bind", "local address to connect from")
    master_ssl: bool | None = _row("switch", "master.enabled_ssl", "encrypt the connection with TLS, default 0")
    master_ssl_ca: str | None = _row("file", "master.ssl_ca", "file with the certificates of trusted authorities")
    master_ssl_capath: str | None = _row(
        "folder", "master.ssl_capath", "folder with the certificates of trusted authorities"
    )
    master_ssl_cert: str | None = _row("file", "master.ssl_cert", "file with the certificate of this replica")
    master_ssl_key: str | None = _row("file", "master.ssl_key", "file with the private key of --master-ssl-cert")
    master_ssl_cipher: str | None = _row("text", "master.ssl_cipher", "permitted ciphers for TLS 1.2 and older")
    master_ssl_crl: str | None = _row("file", "master.ssl_crl", "file with revoked certificates")
    master_ssl_crlpath: str | None = _row("folder", "master.ssl_crlpath", "folder with revoked certificates")
    master_ssl_verify_server_cert: bool | None = _row(
        "switch", "master.ssl_verify_server_cert", "check the host name in the source's certificate"
    )
    master_tls_version: str | None = _row(
        "text", "master.tls_version", "permitted TLS versions, for example TLSv1.2,TLSv1.3"
    )
    master_tls_ciphersuites: str | None = _row("text", "master.tls_ciphersuites", "permitted cipher suites for TLS 1.3")
    master_public_key_path: str | None = _row(
        "file", "master.public_key_path", "file with the source's RSA public key, for caching_sha2_password"
    )
    get_master_public_key: bool | None = _row(
        "switch", "master.get_public_key", "request the RSA public key from the source, and trust the answer; default 0"
    )
    master_compression_algorithms: str | None = _row(
        "text",
        "master.master_compression_algorithm",
        "list that must include uncompressed; compressed connections are not supported",
        refused="the connection to the source is not compressed",
        instead="use --master-compression-algorithms uncompressed, and a compressing tunnel for a slow line",
    )
    master_zstd_compression_level: int | None = _row(
        "number",
        "master.master_zstd_compression_level",
        "only 3, the default, is accepted; compressed connections are not supported",
        low=1,
        high=22,
        refused="the connection to the source is not compressed",
        instead="rplctl change-master --master-compression-algorithms uncompressed",
    )
    network_namespace: str | None = _row(
        "text",
        "master.network_namespace",
        "network namespace (/var/run/netns/NAME) to connect in; needs CAP_SYS_ADMIN; '' = none",
    )
    do_domain_ids: tuple[int, ...] | None = _row(
        "ids", "master.do_domain_ids", "MariaDB: replicate only these GTID domains"
    )
    ignore_domain_ids: tuple[int, ...] | None = _row(
        "ids", "master.ignore_domain_ids", "MariaDB: do not replicate these GTID domains"
    )
    relay_log_file: str | None = _row("text", "relay.relay_log_name", "relay log to apply from")
    relay_log_pos: int | None = _row(
        "number", "relay.relay_log_pos", "position in --relay-log-file", low=4, high=(1 << 63) - 1
    )
    master_delay: int | None = _row(
        "number", "relay.sql_delay", "seconds by which the applier stays behind the source, default 0", high=MAX_DELAY
    )
    privilege_checks_user: str | None = _row(
        "text",
        "relay.privilege_checks_username",
        "only '' is accepted; privilege checks for another account are not supported",
        refused="a target checks only the privileges of the connected account",
        instead="To use an account with only those privileges, run: rplctl change-target URL",
    )
    require_row_format: bool | None = _row(
        "switch",
        "relay.require_row_format",
        "stop at changes that are logged as statements, and at temporary tables; default 0",
    )
    require_table_primary_key_check: str | None = _row(
        "choice",
        "relay.require_table_primary_key_check",
        "tables without a primary key: STREAM = as the source, ON = refuse, OFF = accept, GENERATE = add a key",
        choices=PRIMARY_KEY_CHECKS,
    )
    master_auto_position: bool | None = _row(
        "switch", "master.enabled_auto_position", "MySQL: find the position by GTID, default 0", concerns=BOTH
    )
    master_use_gtid: str | None = _row(
        "choice", "master.using_gtid", "MariaDB: find the position by GTID, default no", choices=USE_GTID, concerns=BOTH
    )
    assign_gtids_to_anonymous_transactions: str | None = _row(
        "text",
        "relay.assign_gtids_to_anonymous_transactions_type",
        "GTIDs for transactions that have none: OFF, LOCAL (the replica's UUID) or another UUID",
        concerns=BOTH,
    )
    source_connection_auto_failover: bool | None = _row(
        "switch",
        "master.source_connection_auto_failover",
        "only 0 is accepted; automatic failover of the source is not supported",
        refused="there is no list of other sources",
        instead="To use another source, with GTIDs, run: rplctl change-master --master-host HOST",
        concerns=BOTH,
    )
    gtid_only: bool | None = _row(
        "switch",
        "master.gtid_only",
        "only 0 is accepted; positions are always committed with the rows",
        refused="positions are committed with the rows, and prevent two appliers from writing at the same time",
        instead="To ask the source only by GTID, run: rplctl change-master --master-auto-position 1",
        concerns=BOTH,
    )
    # the password comes from --password-file and the like, never from an option of its own (design D14)
    password: str | None = field(default=None, repr=False, metadata={})
    password_reference: str | None = field(default=None, metadata={})

    def given(self) -> list[ChangeOption]:
        """Return the options that the operator has given, in the table's order."""
        return [row for name, row in CHANGE_OPTIONS.items() if getattr(self, name) is not None]


CHANGE_OPTIONS: dict[str, ChangeOption] = {
    f.name: ChangeOption(name=f.name, **cast(dict[str, Any], f.metadata)) for f in fields(MasterChanges) if f.metadata
}


def parse_changes(texts: dict[str, str], password: str | None = None, reference: str | None = None) -> MasterChanges:
    """Return the changes with typed values. `texts` maps the name of each given option to the text that the operator
    typed.

    Raises UsageError if a text is not a value of its option.
    """
    parsed: dict[str, Any] = {name: parse_value(CHANGE_OPTIONS[name], text) for name, text in texts.items()}
    return MasterChanges(**parsed, password=password, password_reference=reference)


def parse_value(row: ChangeOption, text: str) -> object:
    """Return the text as a value of the option's type. Raises UsageError 1210 if the text does not have this type.

    The range is not checked here. `check_changes` does this later, because some ranges have a MySQL error of their own.
    """
    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in text):
        raise incorrect(row, "control characters are not allowed")
    if row.kind == "number":
        if not (text.isascii() and text.isdecimal() and len(text) <= 20):
            raise incorrect(row, f"'{text}' is not a number")
        return int(text)
    if row.kind == "seconds":
        return _seconds(row, text)
    if row.kind == "switch":
        if text not in ("0", "1"):
            raise incorrect(row, f"'{text}' is not 0 or 1")
        return text == "1"
    if row.kind == "ids":
        return _server_ids(row, text)
    if row.kind == "choice":
        return _choice(row, text)
    return text


def _seconds(row: ChangeOption, text: str) -> float:
    try:
        seconds = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        raise incorrect(row, f"'{text}' is not a number of seconds") from None
    if seconds != seconds:
        raise incorrect(row, f"'{text}' is not a number of seconds")
    return round(seconds, 3) if seconds >= 0.001 or seconds <= 0 else seconds


def _server_ids(row: ChangeOption, text: str) -> tuple[int, ...]:
    inner = text.strip()
    inner = inner[1:-1].strip() if inner[:1] == "(" and inner[-1:] == ")" else inner
    parts = [part.strip() for part in inner.split(",")] if inner else []
    if not all(part.isascii() and part.isdecimal() and int(part) <= UINT_MAX for part in parts):
        raise incorrect(row, f"'{text}' is not a list of ids like 3,7")
    return tuple(sorted({int(part) for part in parts}))


def _choice(row: ChangeOption, text: str) -> str:
    for choice in row.choices:
        if choice.lower() == text.lower():
            return choice
    raise incorrect(row, f"'{text}' is not one of {', '.join(row.choices)}")


def incorrect(row: ChangeOption, why: str) -> UsageError:
    return UsageError(
        f"Incorrect arguments to {row.sql_name}: {why}",
        errno=er.WRONG_ARGUMENTS,
        hint=f"to see the values of the option --{row.name.replace('_', '-')}, run: rplctl change-master --help",
    )


def without_zeros(changes: MasterChanges) -> MasterChanges:
    """Return the changes without a port or connect retry of 0.

    MySQL and MariaDB treat 0 as "not given" for these two options, so that the stored value is kept.
    """
    return replace(changes, **{name: None for name in ZERO_IS_NOT_GIVEN if getattr(changes, name) == 0})


def check_changes(changes: MasterChanges) -> None:
    """Check the range and the form of each given value, independently of the other values.

    Raises UsageError for a value that is not permitted, with MySQL's number if MySQL has one.
    """
    for row in changes.given():
        value = getattr(changes, row.name)
        if isinstance(value, int) and not isinstance(value, bool):
            _check_number(row, value)
        elif isinstance(value, str):
            _check_text(row, value)
        if row.refused and not _is_off(row, value):
            text = f"This version of rplctl doesn't yet support '{row.sql_name}': {row.refused}"
            raise UsageError(text, errno=er.NOT_SUPPORTED_YET, hint=row.instead)
    heartbeat = changes.master_heartbeat_period
    if heartbeat is not None and not 0 <= heartbeat <= MAX_HEARTBEAT_PERIOD:
        raise UsageError(
            "The requested value for the heartbeat period is either negative or exceeds the maximum allowed "
            f"({MAX_HEARTBEAT_PERIOD} seconds).",
            errno=er.SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE,
            hint="to set the period, run: rplctl change-master --master-heartbeat-period SECONDS",
        )
    if changes.password is not None and len(changes.password) > MAX_PASSWORD:
        raise UsageError(
            "The password provided for the replication user exceeds the maximum length of 32 characters",
            errno=er.CHANGE_MASTER_PASSWORD_LENGTH,
            hint="to enter a password after you have set a shorter one for the replication user on the source, run: "
            "rplctl change-master --ask-password",
        )


def ignored_settings(master: MasterInfo, relay: RelayLogInfo) -> Iterator[ChangeOption]:
    """Yield the options that rplctl does not support and whose stored value still turns them on.

    Such values come from the files of a server, or from an older rplctl.
    """
    records = {"master": master, "relay": relay}
    for row in CHANGE_OPTIONS.values():
        record, _, name = row.stores.partition(".")
        if row.refused and not _is_off(row, getattr(records[record], name)):
            yield row


def _is_off(row: ChangeOption, value: Any) -> bool:
    """True if the value turns the option off, so that it requests only the behaviour that rplctl always has."""
    if row.name == "master_compression_algorithms":
        return not value or "uncompressed" in [name.strip().lower() for name in value.split(",")]
    record, _, name = row.stores.partition(".")
    return not value or value == getattr(MasterInfo() if record == "master" else RelayLogInfo(), name)


def _check_number(row: ChangeOption, value: int) -> None:
    if row.low <= value <= row.high:
        return
    if row.name == "master_delay":
        raise UsageError(
            f"The requested value {value} for the master delay exceeds the maximum {MAX_DELAY}",
            errno=er.MASTER_DELAY_VALUE_OUT_OF_RANGE,
            hint="to set the delay, run: rplctl change-master --master-delay SECONDS",
        )
    if row.name == "master_zstd_compression_level":
        raise UsageError(
            f"Invalid zstd compression level {value}; it must be 1 to 22.",
            errno=er.CHANGE_SOURCE_WRONG_COMPRESSION_LEVEL,
            hint="omit the option --master-zstd-compression-level: rplctl does not compress connections",
        )
    raise incorrect(row, f"{value} is not in {row.low}..{row.high}")


def _check_text(row: ChangeOption, value: str) -> None:
    if row.name == "master_host" and not value:
        raise UsageError(
            "Incorrect arguments to MASTER_HOST",
            errno=er.WRONG_ARGUMENTS,
            hint="to remove the channel with its position, relay logs, filters and settings (the target's tables "
            "stay), run: rplctl reset --all",
        )
    if row.name == "master_host" and (not value.isascii() or len(value) > MAX_HOST):
        raise incorrect(row, f"a host name has at most {MAX_HOST} ASCII characters")
    if row.name == "master_user" and len(value) > MAX_USER:
        raise UsageError(
            f"String '{value[:40]}' is too long for user name (should be no longer than {MAX_USER})",
            errno=er.WRONG_STRING_LENGTH,
            hint="to name an existing user of the source, run: rplctl change-master --master-user USER",
        )
    if row.name in ("master_log_file", "relay_log_file") and value and not is_log_name(value):
        raise incorrect(row, f"'{value}' is not the name of a log, like binlog.000003")
    if row.name == "master_compression_algorithms":
        _check_compression(value)
    if row.name == "assign_gtids_to_anonymous_transactions" and value.upper() not in ("OFF", "LOCAL"):
        _check_uuid(value)
    if row.kind in ("file", "folder") and value and not value.startswith("/"):
        raise incorrect(row, f"'{value}' is not an absolute path")
    if len(value) > 4096:
        raise incorrect(row, "the value is too long")


def _check_uuid(value: str) -> None:
    try:
        UUID(value)
    except ValueError:
        raise UsageError(
            f"Incorrect UUID value: '{value}'",
            errno=er.WRONG_VALUE,
            hint="the value is LOCAL, OFF or a UUID; to use the source's UUID, run: "
            "rplctl change-master --assign-gtids-to-anonymous-transactions LOCAL",
        ) from None


_UNCOMPRESSED = "to connect without compression, run: rplctl change-master --master-compression-algorithms uncompressed"


def _check_compression(value: str) -> None:
    names = value.split(",")
    if len(names) > len(COMPRESSION_ALGORITHMS):
        raise UsageError(
            f"Too many compression algorithms in '{value}'.",
            errno=er.CHANGE_SOURCE_WRONG_COMPRESSION_ALGORITHM_LIST,
            hint=_UNCOMPRESSED,
        )
    if not all(name.strip() in COMPRESSION_ALGORITHMS for name in names):
        raise UsageError(
            f"Invalid compression algorithm in '{value}'.",
            errno=er.CHANGE_SOURCE_WRONG_COMPRESSION_ALGORITHM,
            hint=_UNCOMPRESSED,
        )

"""Compute the new records of CHANGE MASTER TO from the stored records and the given options, as a pure function.

The semantics are those of the MySQL manual, except for options that move a position (design D22). Invariant: a change
moves the executed position or the position to fetch from only if one of these is given:

* a position
* another source
* another way to find the position (GTID on or off)

Only these changes remove the relay logs. A stopped MySQL removes its relay logs at every CHANGE MASTER and fetches the
events again, but its source may have purged them by then. If the given host, port and folder equal the stored ones, the
source is the same. Then the stored server id, the stored UUID and the heartbeat period are reset, and the position is
kept.
"""

from __future__ import annotations

import os
import re
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.command.channel.change_options import MAX_HEARTBEAT_PERIOD, USE_GTID, MasterChanges
from rplctl.command.channel.context import Note
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.info import SET_BY_COMMAND, MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition, numbered_log_name
from rplctl.relay_log.index import RelayLogIndex
from rplctl.secret import protect
from rplctl.source.network_namespace import check_network_namespace
from rplctl.source.replica_id import replica_identity
from rplctl.sql_text import text_literal

_POSITION_OPTIONS = ("master_log_file", "master_log_pos", "relay_log_file", "relay_log_pos")
_SOURCE_OPTIONS = ("master_host", "master_port", "master_binlog_dir")
_RECEIVED_BY = ("ignore_server_ids", "do_domain_ids", "ignore_domain_ids")  # events that the receiver ignores


def first_place(channel: Channel) -> RelayLogPosition:
    """Return the position at which the channel's first relay log begins."""
    return RelayLogPosition(numbered_log_name(channel.relay_log_base, 1), FIRST_EVENT_POSITION)


def default_heartbeat(config: Config) -> float:
    return float(min(MAX_HEARTBEAT_PERIOD, config.replica_net_timeout / 2))


def check_dependencies(changes: MasterChanges, master: MasterInfo, relay: RelayLogInfo) -> None:
    """Check the given options against each other and against the stored ones, in MySQL's order.

    Raises UsageError if two options contradict each other, or if the channel would have no source.
    """
    _check_gtid_options(changes, master, relay)
    do, ignore = changes.do_domain_ids, changes.ignore_domain_ids
    do, ignore = master.do_domain_ids if do is None else do, master.ignore_domain_ids if ignore is None else ignore
    if do and ignore:
        raise UsageError(
            "DO_DOMAIN_IDS and IGNORE_DOMAIN_IDS can not both be set",
            errno=er.MASTER_INFO,
            hint="to replicate only some domains, run: rplctl change-master --do-domain-ids "
            f"{','.join(map(str, do))} --ignore-domain-ids ''\n"
            "To ignore some domains, run: rplctl change-master --ignore-domain-ids "
            f"{','.join(map(str, ignore))} --do-domain-ids ''",
        )
    if changes.master_binlog_dir and changes.master_host:
        raise UsageError(
            "MASTER_HOST and MASTER_BINLOG_DIR are mutually exclusive: a channel has one source",
            errno=er.WRONG_ARGUMENTS,
            hint="to read from a server, run: rplctl change-master --master-host HOST --master-user USER "
            "--ask-password\n"
            "To read from a folder of binary logs, run: rplctl change-master --master-binlog-dir DIR",
        )
    if changes.master_binlog_dir and not os.path.isdir(changes.master_binlog_dir):
        raise UsageError(
            f"Incorrect arguments to MASTER_BINLOG_DIR: {changes.master_binlog_dir} is not a folder",
            errno=er.WRONG_ARGUMENTS,
            hint="to name the folder with the files binlog.000001, binlog.000002 and so on, run: "
            "rplctl change-master --master-binlog-dir DIR",
        )
    if changes.network_namespace:
        check_network_namespace(changes.network_namespace)
    host = master.host if changes.master_host is None else changes.master_host
    folder = master.master_binlog_dir if changes.master_binlog_dir is None else changes.master_binlog_dir
    if not (host or folder):
        raise UsageError(
            "Incorrect arguments to MASTER_HOST",
            errno=er.WRONG_ARGUMENTS,
            hint="to read from a server, run: rplctl change-master --master-host HOST --master-user USER "
            "--ask-password\n"
            "To read from a folder of binary logs, run: rplctl change-master --master-binlog-dir DIR",
        )


def _check_gtid_options(changes: MasterChanges, master: MasterInfo, relay: RelayLogInfo) -> None:
    given, use_gtid = changes.master_auto_position, _use_gtid(changes, master)
    auto = master.enabled_auto_position if given is None else given
    if auto and any(getattr(changes, name) is not None for name in _POSITION_OPTIONS):
        raise UsageError(
            "Parameters MASTER_LOG_FILE, MASTER_LOG_POS, RELAY_LOG_FILE and RELAY_LOG_POS cannot be set when "
            "MASTER_AUTO_POSITION is active.",
            errno=er.BAD_SLAVE_AUTO_POSITION,
            hint="to replicate from a position instead of by GTID, run: rplctl change-master --master-auto-position 0 "
            f"--master-log-file {changes.master_log_file or 'FILE'} --master-log-pos "
            f"{changes.master_log_pos or 'POSITION'}\n"
            "To continue to replicate by GTID, run this command again without these four parameters",
        )
    if auto and use_gtid:
        raise UsageError(
            "MASTER_AUTO_POSITION (for MySQL) and MASTER_USE_GTID (for MariaDB) cannot be used together",
            errno=er.WRONG_ARGUMENTS,
            hint="to use the GTIDs of a MySQL source, run: rplctl change-master --master-auto-position 1 "
            "--master-use-gtid no\n"
            "To use the GTIDs of a MariaDB source, run: rplctl change-master --master-auto-position 0 "
            f"--master-use-gtid {USE_GTID[use_gtid]}",
        )
    assigned = changes.assign_gtids_to_anonymous_transactions
    if (assigned or relay.assign_gtids_to_anonymous_transactions_type).upper() == "OFF" or not (auto or use_gtid):
        return
    by_gtid = "MASTER_AUTO_POSITION = 1" if auto else f"MASTER_USE_GTID = {USE_GTID[use_gtid]}"
    option, off = ("--master-auto-position", "0") if auto else ("--master-use-gtid", "no")
    on = "1" if auto else USE_GTID[use_gtid]
    assigns = assigned or relay.assign_gtids_to_anonymous_transactions_value or "LOCAL"
    raise UsageError(
        f"The options ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL|<UUID> and {by_gtid} cannot be used together.",
        errno=er.CANT_COMBINE_ANONYMOUS_TO_GTID_AND_AUTOPOSITION,
        hint=f"to replicate by GTID, run: rplctl change-master {option} {on} "
        "--assign-gtids-to-anonymous-transactions off\n"
        f"To assign GTIDs, run: rplctl change-master {option} {off} "
        f"--assign-gtids-to-anonymous-transactions {assigns}",
    )


def _use_gtid(changes: MasterChanges, master: MasterInfo) -> int:
    """Return the value of MasterInfo.using_gtid after the change.

    If a position is given without MASTER_USE_GTID, the channel stops using GTIDs, as in MariaDB (warning 4190).
    """
    if changes.master_use_gtid is not None:
        return USE_GTID.index(str(changes.master_use_gtid))
    return 0 if any(getattr(changes, name) is not None for name in _POSITION_OPTIONS) else master.using_gtid


def check_way(changes: MasterChanges, master: MasterInfo, relay: RelayLogInfo) -> None:
    """Check that the channel can continue at the same position if it starts or stops using GTIDs.

    Raises UsageError if the channel does not know the GTIDs or the file position that it then needs. Also raises
    UsageError if the channel's GTIDs are of the other vendor.
    """
    before, after = _ways(MasterChanges(), master), _ways(changes, master)
    if any(after):
        _refuse_other_vendors(relay.gtid_executed, by_mysql=after[0])
    executed = relay.exec_position
    has_begun = bool(executed.log_name) and executed.order_key() != (1, FIRST_EVENT_POSITION)
    if any(after) and not any(before) and has_begun:
        _refuse_unknown_gtids(relay, by_mysql=after[0])
    named = names_position(changes) or names_other_source(changes, master) or changes.relay_log_pos is not None
    if any(before) and not any(after) and relay.gtid_executed and not executed.log_name and not named:
        raise UsageError(
            "cannot change from GTIDs to a position: the position of the applied GTIDs in the source's binary logs is "
            f"unknown ({relay.gtid_executed})",
            errno=er.BAD_SLAVE_AUTO_POSITION,
            hint="to let the channel learn the position from its next transaction, run: rplctl start\n"
            "To stop it after this transaction, before you run this change-master command again, run: rplctl stop\n"
            "To set the position directly after the applied GTIDs (a wrong one loses or repeats transactions), add to "
            "this command: --master-log-file FILE --master-log-pos POSITION",
        )


def _refuse_other_vendors(executed: str, *, by_mysql: bool) -> None:
    """Raise UsageError if the applied GTIDs are of the other vendor, because MySQL and MariaDB cannot use each other's
    GTIDs.

    `executed` contains the applied GTIDs; '' means none. `by_mysql` is True if the new source uses MySQL's GTIDs.
    """
    if executed and (":" in executed) is not by_mysql:
        wanted, known = ("MySQL", "MariaDB") if by_mysql else ("MariaDB", "MySQL")
        raise UsageError(
            f"cannot change to a {wanted} source: the applied GTIDs are {known}'s ({executed})",
            errno=er.BAD_SLAVE_AUTO_POSITION,
            hint="to delete the applied GTIDs, position and relay logs, run: rplctl reset --forget-gtids --yes\n"
            "Then run this change-master command again\n"
            "Then, to copy all tables from the new source, which replaces all their rows in the target, run: "
            "rplctl clone --replace --yes; rplctl start",
        )


def _refuse_unknown_gtids(relay: RelayLogInfo, *, by_mysql: bool) -> None:
    executed, missing = relay.exec_position, _unknown_gtids(relay.gtid_executed)
    if missing:
        log, channel = text_literal(executed.log_name), ""
        if relay.channel_name:
            channel = f" --channel {shlex.quote(relay.channel_name)}"
        server, query = "mysql-8.0", f"SHOW BINLOG EVENTS IN {log}"
        result = f"the set in row Previous_gtids and all GTIDs in the rows before Pos {executed.log_pos}"
        if not by_mysql:
            server, query, result = "mariadb", f"SELECT BINLOG_GTID_POS({log}, {executed.log_pos})", "the result"
        raise UsageError(
            f"cannot change to GTIDs: {missing}, so the source would send applied transactions again",
            errno=er.BAD_SLAVE_AUTO_POSITION,
            position=str(executed),
            hint=f"to find the applied GTIDs, run on the source: {query}\n"
            f"To store them, replace GTIDS by {result}, and run: "
            f"DIR=$(mktemp -d) && rplctl export-info --server {server} $DIR && "
            f"rplctl import-info{channel} $DIR --gtid GTIDS --yes && rm -r $DIR\n"
            "If nothing is applied yet, delete the position and the relay logs instead: rplctl reset\n"
            "After one of these, run this change-master command again",
        )


def _unknown_gtids(executed: str) -> str:
    """Return a text about GTIDs that are missing in `executed`. Return '' if no GTIDs seem to be missing.

    `executed` should contain all GTIDs before the channel's position. If the numbers of a server do not begin with 1,
    the first GTIDs of this server are missing.
    """
    if not executed:
        return "the applied GTIDs are unknown"
    begun = [part for part in executed.split(",") if ":" in part and not re.search(r":1(-|:|$)", part.strip())]
    return f"only {', '.join(begun)} of the applied GTIDs are known" if begun else ""


def check_own_id(config: Config, channel: Channel, changes: MasterChanges) -> None:
    """Raise UsageError 1650 if IGNORE_SERVER_IDS contains the own server id, and replicate_same_server_id is on.

    The two settings contradict each other: the first ignores the events with this id, and the second asks for them.
    """
    if not (config.replicate_same_server_id and changes.ignore_server_ids):
        return
    own = replica_identity(config, channel).server_id
    if own in changes.ignore_server_ids:
        raise UsageError(
            f"The requested server id {own} clashes with the slave startup option --replicate-same-server-id",
            errno=er.SLAVE_IGNORE_SERVER_IDS,
            hint=f"omit {own}, the server id of this channel, from the option --ignore-server-ids",
        )


def names_position(changes: MasterChanges) -> bool:
    """True if the changes name a file or an offset in the source's log."""
    return changes.master_log_file is not None or changes.master_log_pos is not None


def names_other_source(changes: MasterChanges, master: MasterInfo) -> bool:
    """True if the given host, port or folder differs from the stored one."""
    folder = changes.master_binlog_dir
    return (
        (changes.master_host is not None and (changes.master_host != master.host or bool(master.master_binlog_dir)))
        or (changes.master_port is not None and changes.master_port != master.port)
        or (folder is not None and (os.path.realpath(folder) if folder else "") != master.master_binlog_dir)
    )


def with_given_source(changes: MasterChanges, master: MasterInfo) -> MasterInfo:
    """Return the empty record `master` with the host, port and folder of the changes.

    This is for a channel that lost MasterInfo but still has RelayLogInfo with a position. The given source then counts
    as the channel's old source, so that the position stays valid.
    """
    folder = os.path.realpath(changes.master_binlog_dir) if changes.master_binlog_dir else ""
    return replace(
        master, host=changes.master_host or "", port=changes.master_port or master.port, master_binlog_dir=folder
    )


def purges_relay_logs(changes: MasterChanges, master: MasterInfo) -> bool:
    """True if the change makes the relay logs useless. The caller then removes them, if both threads are stopped."""
    if changes.relay_log_file is not None or changes.relay_log_pos is not None:
        return False
    before, after = _ways(MasterChanges(), master), _ways(changes, master)
    return names_position(changes) or names_other_source(changes, master) or before != after


def _ways(changes: MasterChanges, master: MasterInfo) -> tuple[bool, bool]:
    """Return how the channel will find its position: (True, False) by MySQL's GTIDs, (False, True) by MariaDB's GTIDs.

    (False, False) means by file and offset.
    """
    auto = changes.master_auto_position
    return master.enabled_auto_position if auto is None else auto, bool(_use_gtid(changes, master))


def _moves(changes: MasterChanges, record: str) -> dict[str, Any]:
    """Return the fields of one record that the given options set, with their new values. `record` is 'master' or
    'relay'.
    """
    stores = ((row.name, *row.stores.split(".")) for row in changes.given())
    return {field: getattr(changes, name) for name, owner, field in stores if owner == record}


def new_master_info(
    config: Config, changes: MasterChanges, master: MasterInfo, executed: BinlogPosition, purges: bool
) -> MasterInfo:
    """Return MasterInfo after the change.

    `purges` is True if the relay logs will be removed. Then, if no option names a position, the receiver fetches from
    `executed`.
    """
    moves = _moves(changes, "master")
    moves["using_gtid"] = _use_gtid(changes, master)
    if changes.master_log_pos is not None:
        moves["master_log_pos"] = max(FIRST_EVENT_POSITION, changes.master_log_pos)
    if changes.master_host is not None:
        moves["master_binlog_dir"] = ""
    if changes.master_binlog_dir:
        moves |= {"host": "", "master_binlog_dir": os.path.realpath(changes.master_binlog_dir)}
    if any(getattr(changes, name) is not None for name in _SOURCE_OPTIONS):
        moves |= {"uuid": "", "master_server_id": 0}
        moves.setdefault("heartbeat", default_heartbeat(config))
    is_other = names_other_source(changes, master)
    if is_other or names_position(changes):
        # The read position no longer matches the end of the relay logs. If they are kept, SET_BY_COMMAND records this.
        moves |= {"flushed_relay_log_name": "", "flushed_relay_log_pos": 0 if purges else SET_BY_COMMAND}
        if not names_position(changes):
            moves |= {"master_log_name": "", "master_log_pos": FIRST_EVENT_POSITION}
    elif purges:
        # The removed relay logs contain transactions that are not applied yet, so the receiver fetches them again.
        moves |= {"master_log_name": executed.log_name, "master_log_pos": executed.log_pos}
        moves |= {"flushed_relay_log_name": "", "flushed_relay_log_pos": 0}
    if any(_ways(changes, master)) and (purges or not master.uses_gtid):
        moves |= {"master_log_name": "", "master_log_pos": FIRST_EVENT_POSITION}
    if 0 < moves.get("heartbeat", 1) < 0.001:
        moves["heartbeat"] = 0.0
    if changes.password_reference is not None:
        moves["user_password"] = changes.password_reference
    elif changes.password is not None:
        moves["user_password"] = protect(changes.password, config.datadir)
    return replace(master, **moves)


def new_relay_log_info(
    channel: Channel, changes: MasterChanges, relay: RelayLogInfo, masters: tuple[MasterInfo, MasterInfo], purges: bool
) -> RelayLogInfo:
    """Return RelayLogInfo after the change. `masters` contains MasterInfo before and after the change."""
    before, master = masters
    moves = _moves(changes, "relay")
    if changes.privilege_checks_user is not None:
        user, _, host = changes.privilege_checks_user.partition("@")
        moves |= {"privilege_checks_username": user or None, "privilege_checks_hostname": host or None}
    if changes.assign_gtids_to_anonymous_transactions is not None:
        moves |= _assigned_gtids(changes.assign_gtids_to_anonymous_transactions)
    first = first_place(channel)
    if purges and master.uses_gtid and not names_other_source(changes, before):
        relay = relay.at(first, relay.exec_position)  # used only if the channel stops using GTIDs
    elif purges:
        # Store the read position in RelayLogInfo, too, for a second CHANGE MASTER before the next start.
        relay = relay.at(first, master.read_position)
    elif changes.relay_log_file is not None or changes.relay_log_pos is not None:
        rest = {name: value for name, value in moves.items() if name not in ("relay_log_name", "relay_log_pos")}
        return replace(_given_relay_position(channel, changes, relay), **rest)
    elif not relay.relay_log_name:
        relay = relay.at(first, master.read_position)
    return replace(relay, **moves)


def _given_relay_position(channel: Channel, changes: MasterChanges, relay: RelayLogInfo) -> RelayLogInfo:
    """Return `relay` at the position RELAY_LOG_FILE and RELAY_LOG_POS, with the corresponding position in the source's
    log.

    Raises UsageError if the relay log does not exist, or if no transaction ends at this position.
    """
    from rplctl.relay_log.locate import boundary_at

    index = RelayLogIndex(channel)
    name = changes.relay_log_file or relay.relay_log_name
    offset = FIRST_EVENT_POSITION if changes.relay_log_pos is None else changes.relay_log_pos
    boundary = boundary_at(index.path(name), offset) if name in index.names() else None
    if boundary is None:
        is_known = name in index.names()
        why = "that position is not a transaction end" if is_known else "Could not find target log"
        logs = "this relay log" if is_known else f"one of the relay logs ({', '.join(index.names()) or 'none'})"
        log, option = (shlex.quote(name), "") if is_known else ("FILE", "--relay-log-file to FILE and ")
        raise UsageError(
            f"Failed initializing relay log position: {why} during relay log initialization",
            errno=er.RELAY_LOG_INIT,
            hint=f"to list the events of {logs}, run: rplctl show-relaylog-events --in {log}\n"
            f"Then set {option}--relay-log-pos to the Pos of a transaction's first event",
        )
    return relay.at(RelayLogPosition(name, offset), boundary.source)


def _assigned_gtids(value: str) -> dict[str, str]:
    kind, text = (value.upper(), "") if value.upper() in ("OFF", "LOCAL") else ("UUID", str(uuid.UUID(value)))
    option = "assign_gtids_to_anonymous_transactions"
    return {f"{option}_type": kind, f"{option}_value": text}


def repeats(changes: MasterChanges, previous: MasterInfo, relay: RelayLogInfo) -> bool:
    """True if the applier would apply transactions a second time, because the given position is before the executed
    one.

    With MySQL's GTIDs the result is False: the applier skips executed transactions, as in MySQL (applier/feed/skip.py).
    """
    executed = relay.exec_position
    if not executed.log_name or ":" in relay.gtid_executed or names_other_source(changes, previous):
        return False
    if names_position(changes):
        log_name = changes.master_log_file or previous.master_log_name or executed.log_name
        return BinlogPosition(log_name, max(FIRST_EVENT_POSITION, changes.master_log_pos or 0)).is_before(executed)
    applied = RelayLogPosition(relay.relay_log_name, relay.relay_log_pos)
    if not applied.log_name or (changes.relay_log_file is None and changes.relay_log_pos is None):
        return False
    log_name = changes.relay_log_file or applied.log_name
    return RelayLogPosition(log_name, max(FIRST_EVENT_POSITION, changes.relay_log_pos or 0)).is_before(applied)


def position_notes(changes: MasterChanges, previous: MasterInfo, relay: RelayLogInfo, purges: bool) -> Iterator[Note]:
    """Yield notes about a change of the position that may surprise the operator. `relay` is RelayLogInfo before the
    change.
    """
    after, executed = any(_ways(changes, previous)), relay.exec_position
    if names_other_source(changes, previous) and not (after or names_position(changes)) and executed.log_name:
        yield Note(
            f"the position {executed} belongs to the old source and is removed: everything in the new source's logs is "
            "fetched and applied. If the new source is the same server, or a copy, at another address, run: rplctl "
            f"change-master --master-log-file {executed.log_name} --master-log-pos {executed.log_pos}"
        )
    if repeats(changes, previous, relay):
        yield Note(f"the new position is before the executed position {executed}: transactions are applied again")
    given = [name.upper() for name in _RECEIVED_BY if getattr(changes, name) is not None]
    if given and not purges and relay.relay_log_name:
        text = f"{', '.join(given)}: events that are already in the relay logs are still applied; to fetch them again, "
        text += "run: rplctl recover --refetch"
        yield Note(text)


def change_notes(config: Config, changes: MasterChanges, previous: MasterInfo, master: MasterInfo) -> Iterator[Note]:
    """Yield MySQL's warnings about the given options. `previous` and `master` are MasterInfo before and after the
    change.
    """
    if changes.master_log_file is not None and changes.master_log_pos is None:
        yield Note(
            "CHANGE MASTER TO with a MASTER_LOG_FILE clause but no MASTER_LOG_POS clause may not be safe. "
            "The old position value may not be valid for the new binary log file.",
            er.WARN_ONLY_MASTER_LOG_FILE_NO_POS,
        )
    period = changes.master_heartbeat_period
    if period is not None and period > config.replica_net_timeout:
        yield Note(
            "The requested value for the heartbeat period exceeds the value of `slave_net_timeout' seconds. "
            "A sensible value for the period should be less than the timeout.",
            er.SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE_MAX,
        )
    if period is not None and 0 < period < 0.001:
        yield Note(
            "The requested value for the heartbeat period is less than 1 millisecond. The value is reset to 0, "
            "meaning that heartbeating will effectively be disabled.",
            er.SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE_MIN,
        )
    if changes.master_use_gtid in ("current_pos", "slave_pos"):
        given = [n for n in ("master_log_file", "master_log_pos") if getattr(changes, n) is not None]
        yield from (Note(f"<{name.upper()}> option ignored", er.WARN_OPTION_IGNORED) for name in given)
    if previous.using_gtid and not master.using_gtid and changes.master_use_gtid is None:
        word = USE_GTID[previous.using_gtid].title()
        yield Note(
            f"CHANGE MASTER TO is implicitly changing the value of 'Using_Gtid' from '{word}' to 'No'",
            er.WARN_OPTION_CHANGING,
        )
    if (changes.assign_gtids_to_anonymous_transactions or "OFF").upper() != "OFF":
        yield Note(
            "Using ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS creates limitations on the replication topology - you "
            "cannot fail over between downstream and upstream servers. Only use this option if it is not possible "
            "to enable GTIDs on the source, for instance, because of lack of permissions. If possible, use the "
            "procedure for enabling GTID transactions online instead, as described in the documentation.",
            er.USING_ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS,
        )
    if (changes.password or changes.password_reference) and not master.enabled_ssl and not master.master_binlog_dir:
        yield Note("Sending passwords in plain text without SSL/TLS is extremely insecure.", er.INSECURE_PLAIN_TEXT)
    unused = [row.sql_name for row in changes.given() if row.sql_name.startswith(("MASTER_SSL_", "MASTER_TLS_"))]
    if unused and not master.enabled_ssl and not master.master_binlog_dir:
        yield Note(f"{', '.join(unused)}: not used, and the connection is not encrypted, until --master-ssl 1")

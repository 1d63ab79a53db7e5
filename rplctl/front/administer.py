"""Executes the statements that change replication, with the functions that rplctl's commands also call.

These are CHANGE MASTER, CHANGE REPLICATION FILTER, START, STOP, RESET, FLUSH RELAY LOGS, PURGE, and the statements that
skip transactions.
"""

from __future__ import annotations

from typing import Final

from rplctl import mysql_errors as er
from rplctl.command import change_filter as filters
from rplctl.command.change_filter import FILTERS
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import CHANGE_OPTIONS, parse_changes
from rplctl.command.channel.context import APPLIER, RECEIVER, ROLES, Note, one_engine
from rplctl.command.flush_relay_logs import flush_relay_logs
from rplctl.command.process.start_request import StartRequest, UntilOptions
from rplctl.command.purge_binary_logs import purge_binary_logs
from rplctl.command.reset import reset
from rplctl.command.skip import skip
from rplctl.command.start import start
from rplctl.command.stop import stop
from rplctl.errors import UsageError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.front.front import ClientSession, Front
from rplctl.front.result import Done
from rplctl.front.statement import ClientStatement
from rplctl.front.vendor import mysql_gtid_errors

_THREADS: Final = {"IO_THREAD": RECEIVER, "RELAY_THREAD": RECEIVER, "SQL_THREAD": APPLIER}
_UNTIL: Final = {
    "MASTER_LOG_FILE": "master_log_file",
    "MASTER_LOG_POS": "master_log_pos",
    "RELAY_LOG_FILE": "relay_log_file",
    "RELAY_LOG_POS": "relay_log_pos",
    "SQL_BEFORE_GTIDS": "sql_before_gtids",
    "SQL_AFTER_GTIDS": "sql_after_gtids",
    "MASTER_GTID_POS": "master_gtid_pos",
}

_NUMBERS: Final = ("MASTER_LOG_POS", "RELAY_LOG_POS")


def channel_after(words: ClientStatement, front: Front, *, named: str | None = None) -> str | None:
    """Read FOR CHANNEL 'c' at the end of the statement, and return the name of the channel.

    Without FOR CHANNEL, return `named`: the name that `connection_name` has read before, or None.
    """
    given = named
    if words.accept("FOR CHANNEL"):
        given = words.string() if words.token.kind == "string" else words.name()
    words.expect_end()
    return front.looks.spelled(given) if given else given


def connection_name(words: ClientStatement, front: Front) -> str | None:
    """Read the name of a channel in MariaDB's syntax, for example `'c'` in `STOP SLAVE 'c'`.

    Return None if the statement names no channel in this way.
    """
    return words.string() if front.is_mariadb and words.token.kind == "string" else None


def _channels(front: Front, given: str | None, *, every: bool = False) -> list[str]:
    """Return the names of the channels to which a statement applies.

    `given`: the channel that the statement names, or None. A statement without a name applies to all channels in MySQL,
    but to the default channel in MariaDB. `every`: True if a statement without a name applies to all channels in
    MariaDB, too.
    """
    if given is not None:
        return [given]
    if front.is_mariadb and not every:
        return [""]
    return front.looks.names() or [""]


def one_channel(front: Front, given: str | None) -> str:
    """Return the name of the channel to which a statement applies, if it can apply to only one channel.

    `given`: the channel that the statement names, or None. Raises UsageError 3079 if several channels are possible.
    """
    names = _channels(front, given)
    if len(names) > 1:
        raise UsageError(er.SLAVE_MULTIPLE_CHANNELS_CMD_TEXT, errno=er.SLAVE_MULTIPLE_CHANNELS_CMD)
    return names[0]


def _threads(words: ClientStatement) -> tuple[str, ...]:
    found = []
    while words.token.value in _THREADS:
        found.append(_THREADS[words.next().value])
        if not words.accept(","):
            break
    return tuple(role for role in ROLES if role in found) or ROLES


def _until(words: ClientStatement, front: Front) -> UntilOptions:
    given: dict[str, str | int] = {}
    if words.accept("UNTIL"):
        while True:
            name = words.name().upper().replace("SOURCE_", "MASTER_")
            if name not in _UNTIL or (name == "MASTER_GTID_POS" and not front.is_mariadb):
                raise words.refuse()
            words.expect("=")
            given[_UNTIL[name]] = words.number() if name in _NUMBERS else words.value()
            if not words.accept(","):
                break
    return UntilOptions(**given)  # type: ignore[arg-type]  # names and types are those of _UNTIL


def _threads_of_channels(
    words: ClientStatement, front: Front, *, takes_until: bool
) -> tuple[tuple[str, ...], UntilOptions, list[str]]:
    """Read the words after START or STOP, and return the threads, the UNTIL condition and the channels.

    `takes_until`: True for START, which may have UNTIL.
    """
    every = words.accept("ALL SLAVES|REPLICAS") if front.is_mariadb else False
    named = None
    if not every:
        words.expect("SLAVE|REPLICA")
        named = connection_name(words, front)
    begin = words.index
    roles = _threads(words)
    names_threads = words.index > begin
    until = _until(words, front) if takes_until else UntilOptions()
    if until.master_gtid_pos is not None and names_threads:
        raise UsageError(er.BAD_SLAVE_UNTIL_COND_TEXT, errno=er.BAD_SLAVE_UNTIL_COND)
    given = channel_after(words, front, named=named)
    return (
        roles,
        until,
        [one_channel(front, given)] if until != UntilOptions() else _channels(front, given, every=every),
    )


def start_replica(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    roles, until, names = _threads_of_channels(words, front, takes_until=True)
    notes: list[Note] = []
    for name in names:
        if until.master_gtid_pos is not None:
            _check_gtid_channel(front, name)
        with mysql_gtid_errors(until.sql_after_gtids or until.sql_before_gtids or "", front):
            notes += start(front.looks.config_of(name), name, StartRequest(roles=roles, until=until)).notes
    return Done(tuple(notes))


def _check_gtid_channel(front: Front, name: str) -> None:
    """Raise the error with which MariaDB refuses UNTIL master_gtid_pos for this channel.

    The error is UsageError 1254 if a thread of the channel runs, and 1949 if the channel does not use GTIDs.
    """
    status = front.looks.channel(name).status
    if (status.Slave_IO_Running, status.Slave_SQL_Running) != ("No", "No"):
        raise UsageError("Slave is already running", errno=er.SLAVE_WAS_RUNNING)
    if status.Using_Gtid == "No":
        text = "START SLAVE UNTIL master_gtid_pos requires that slave is using GTID"
        raise UsageError(text, errno=er.UNTIL_REQUIRES_USING_GTID, hint="CHANGE MASTER TO MASTER_USE_GTID = slave_pos")


def stop_replica(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    roles, _, names = _threads_of_channels(words, front, takes_until=False)
    notes: list[Note] = []
    for name in names:
        notes += stop(front.looks.config_of(name), name, roles).notes
    return Done(tuple(notes))


def reset_replica(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    named = connection_name(words, front)
    everything = words.accept("ALL")
    names = _channels(front, channel_after(words, front, named=named))
    notes: list[Note] = []
    with one_engine():
        for name in names:
            notes += reset(front.looks.config_of(name), name, everything=everything).notes
    return Done(tuple(notes))


def flush_logs(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    for name in _channels(front, channel_after(words, front)):
        flush_relay_logs(front.looks.config_of(name), name)
    return Done()


def skip_count(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    words.expect("=|:=")
    count = words.number()
    words.expect_end()
    name = one_channel(front, None)
    skip(front.looks.config_of(name), name, count)
    return Done()


def change_source(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    named = connection_name(words, front)
    words.expect("TO")
    texts: dict[str, str] = {}
    password: str | None = None
    while True:
        name = words.name().lower()
        if name != "source_connection_auto_failover":
            name = name.replace("source_", "master_")
        if name != "master_password" and name not in CHANGE_OPTIONS:
            words.index -= 1
            raise words.refuse()
        words.expect("=")
        if name == "master_password":
            password = words.string()
        else:
            texts[name] = _list(words) if words.accept("(") else "" if words.accept("NULL") else words.value()
        if not words.accept(","):
            break
    channel = one_channel(front, channel_after(words, front, named=named))
    changed = change_master(front.looks.config_of(channel), channel, parse_changes(texts, password))
    return Done(changed.notes)


def _list(words: ClientStatement) -> str:
    found: list[str] = []
    while not words.accept(")"):
        found.append(words.value())
        words.accept(",")
    return ",".join(found)


def skip_gtid(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    """Execute SET GTID_NEXT: store the GTID of the transaction that the next COMMIT skips.

    The value AUTOMATIC removes the stored GTID. Raises UsageError if the GTID is malformed.
    """
    words.expect("=|:=")
    gtid = words.value()
    words.expect_end()
    is_automatic = gtid.upper() == "AUTOMATIC"
    if not is_automatic:
        try:
            MysqlGtidSet.parse(gtid)
        except UsageError as error:
            text = f"Malformed GTID specification '{gtid[:200]}'."
            raise UsageError(text, errno=er.MALFORMED_GTID_SPECIFICATION, hint=error.hint) from None
    session.gtid_next = "" if is_automatic else gtid
    return Done()


def commit(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    """Execute COMMIT: if GTID_NEXT is set, make the applier skip the transaction with this GTID.

    On a MySQL server, an administrator skips a transaction in this way: an empty transaction gets its GTID.
    """
    if session.gtid_next:
        name = one_channel(front, None)
        return Done(skip(front.looks.config_of(name), name, None, session.gtid_next).notes)
    return Done()


def purge_logs(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    to, before = "", ""
    if words.accept("TO"):
        to = words.string()
    else:
        words.expect("BEFORE")
        before = words.string()
    words.expect_end()
    name = front.logs.channel()
    return Done(purge_binary_logs(front.looks.config_of(name), name, to=to, before=before).notes)


def change_filter(front: Front, session: ClientSession, words: ClientStatement) -> Done:
    """Execute CHANGE REPLICATION FILTER REPLICATE_DO_DB = (a, b), … [FOR CHANNEL 'c']."""
    rules: dict[str, object] = {}
    while True:
        name = words.name().lower()
        if name not in FILTERS:
            raise words.refuse()
        words.expect("= (")
        rules[name] = _rules(words)
        if not words.accept(","):
            break
    channel = one_channel(front, channel_after(words, front))
    filters.change_filter(front.looks.config_of(channel), channel, rules)
    return Done()


def _rules(words: ClientStatement) -> str:
    """Read the values of a filter up to the closing parenthesis, and return them as the value of an option: `a,b`.

    A value is a name, `database.table`, a pattern in quotes, or a pair (from, to), which becomes `from->to`. Raises
    UsageError if a value contains a comma.
    """
    found: list[str] = []
    while not words.accept(")"):
        if words.accept("("):
            source = words.value()
            words.expect(",")
            found.append(f"{source}->{words.value()}")
            words.expect(")")
        else:
            name = words.value()
            found.append(f"{name}.{words.value()}" if words.accept(".") else name)
        if "," in found[-1]:
            raise UsageError(f"a name in a filter cannot contain a comma: '{found[-1]}'", errno=er.WRONG_ARGUMENTS)
        words.accept(",")
    return ",".join(found)

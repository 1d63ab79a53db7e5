"""Find problems of the relay log: the index, the files and both stored positions must agree. Nothing is changed.

The next start repairs nearly all of these problems (WL#4621). Each finding has the command that repairs the problem.
The log of a running thread is not read, because the thread checked it at its start and is using it. So the check of a
running channel loads none of the modules that read relay logs.
"""

from __future__ import annotations

from collections.abc import Iterator

from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, RECEIVER, running
from rplctl.command.check.findings import Finding, found
from rplctl.errors import BinlogFormatError, RelayLogError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition, log_number
from rplctl.relay_log.index import RelayLogIndex, files_by_base
from rplctl.target.asked_once import answer

_FETCHES = "rplctl start (fetches it again)"


def check_relay_log(
    channel: Channel, master: MasterInfo, relay: RelayLogInfo | None, *, deep: bool
) -> Iterator[Finding]:
    """Yield the findings about a channel's relay logs. `deep` also checks the checksum of every event and reads every
    byte.
    """
    index = RelayLogIndex(channel)
    names, files = index.names(), _files(index)
    if names != files:  # a log of this channel was created or removed since the folder was read
        names, files = index.names(), index.files()
    threads = running(channel)
    yield from _index(index, names, files)
    if relay is not None and relay.relay_log_name and (deep or APPLIER not in threads):
        yield from _position(index, names, relay, by_gtid=master.uses_gtid)
    if relay is not None and not master.uses_gtid:  # with GTIDs the positions may be of two sources
        read, executed = master.read_position, relay.exec_position
        if read.log_name and executed.log_name and read.is_before(executed):
            text = f"Read_Master_Log_Pos {read} is before Exec_Master_Log_Pos {executed}"
            yield found("read_behind_executed", text, "rplctl start (reads on from the executed position)")
    if RECEIVER not in threads:
        yield from _tail(channel, master, relay or RelayLogInfo(channel_name=channel.name), thorough=deep)
    if deep:
        for name in [name for name in names if name in files][:-1]:
            yield from _intact(index, name, relay)


def _files(index: RelayLogIndex) -> list[str]:
    """Return the names of the channel's relay log files. The folder is read only once for all channels."""
    folder = index.channel.datadir
    found = answer(folder, "relay logs", lambda: files_by_base(folder))
    return found.get(index.channel.relay_log_base, [])


def _index(index: RelayLogIndex, names: list[str], files: list[str]) -> Iterator[Finding]:
    for name in names:
        if name not in files:
            yield found(
                "relay_log_missing", f"{name} is in {index.channel.relay_log_index_path}, not on disk", _FETCHES
            )
    for name in files:
        if name not in names:
            text = f"{name} is on disk and not in {index.channel.relay_log_index_path}"
            yield found("relay_log_not_listed", text, "rplctl recover")
    if names and not index.is_canonical():
        text = f"{index.channel.relay_log_index_path} holds lines that rplctl did not write, or not in this order"
        yield found("relay_index_edited", text, "rplctl recover")


def _position(index: RelayLogIndex, names: list[str], relay: RelayLogInfo, *, by_gtid: bool) -> Iterator[Finding]:
    from rplctl.relay_log.locate import boundary_at
    from rplctl.relay_log.log_file import start_of

    position, executed = relay.relay_log_position, relay.exec_position
    if relay.relay_log_name not in names:
        if names:
            begins = start_of(index.path(names[0]))
            if by_gtid or (begins and begins.log_name and executed.log_name and executed.is_before(begins)):
                text = f"the relay logs begin at {begins}, executed is {executed}"
                yield found("relay_logs_begin_later", text, _FETCHES)
        return
    path = index.path(relay.relay_log_name)
    if not path.exists():
        return
    goes_by = f"rplctl start (uses Exec_Master_Log_Pos {executed})"
    if relay.relay_log_pos > path.stat().st_size:
        yield found("relay_position_past_end", f"Relay_Log_Pos {position} is past the end of the file", goes_by)
        return
    boundary = boundary_at(path, relay.relay_log_pos)
    if boundary is None:
        text = f"Relay_Log_Pos {position} is inside an event or a transaction"
        yield found("relay_position_inside_event", text, goes_by)
    elif executed.log_name and boundary.source.log_name and boundary.source != executed:
        text = f"Relay_Log_Pos {position} is {boundary.source} of the source, but Exec_Master_Log_Pos is {executed}"
        yield found("positions_disagree", text, _set_position(executed))


def _tail(channel: Channel, master: MasterInfo, relay: RelayLogInfo, *, thorough: bool) -> Iterator[Finding]:
    from rplctl.recovery import plan_recovery

    flushed = RelayLogPosition(master.flushed_relay_log_name, master.flushed_relay_log_pos)
    try:
        plan = plan_recovery(channel, master, relay, thorough=thorough)
    except RelayLogError as error:
        yield found("relay_log_damaged", error.message, error.hint)
        return
    if plan.truncated_bytes:
        text = f"{plan.truncated_bytes} bytes follow the last complete transaction, {plan.relay_end}"
        yield found("relay_log_torn", text, "rplctl start (cuts them and fetches them again), or rplctl recover")
        return
    index = RelayLogIndex(channel)
    listed = set(index.names())
    if not listed <= set(index.files()):
        return  # another finding names each missing file
    if set(plan.removed_relay_logs) & listed:
        yield found("relay_log_torn", "; ".join(plan.notes), _FETCHES)
    elif flushed.log_name and _is_before(plan.relay_end, flushed):
        text = f"the relay logs end at {plan.relay_end.or_else('nothing')}, and were written up to {flushed}"
        yield found("relay_log_torn", text, _FETCHES)


def _is_before(end: RelayLogPosition, flushed: RelayLogPosition) -> bool:
    return (log_number(end.log_name), end.log_pos) < (log_number(flushed.log_name), flushed.log_pos)


def _intact(index: RelayLogIndex, name: str, relay: RelayLogInfo | None) -> Iterator[Finding]:
    from rplctl.relay_log.log_file import intact_end, mapped_file, read_start

    with mapped_file(index.path(name)) as data:
        try:
            start = read_start(data)
            end = intact_end(data, start.boundary.offset, start.checksum_algorithm)
        except BinlogFormatError:
            end = 0
        if end < len(data):
            repair = "rplctl stop; rplctl recover --refetch; rplctl start"
            if relay is None or not (relay.master_log_name or relay.gtid_executed):
                repair = _set_position(start.source)
            yield found("relay_log_damaged", f"{name} is damaged at offset {end}", repair)


def _set_position(position: BinlogPosition) -> str:
    """Return the command that removes the relay logs and fetches all events from `position` on again."""
    return f"rplctl change-master --master-log-file {position.log_name} --master-log-pos {position.log_pos}"

"""`crash-test --clone`: copy tables of a channel's running source, and kill the copy at each crash point.

Each crash point has its own instance, with a SQLite file as its target. The folder of the instance is removed
afterwards. The threads are processes as usual. Commands run in child processes, so that they can be killed, too.
Invariant: only MasterInfo is read from the operator's instance, and only the chosen tables from the source. The scratch
instance has its own server id, and replicates no other tables.

    copied once     the expected outcome: the copy continued by itself after the restart, all rows equal the source's,
                    and later events were applied
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from rplctl.attempts import attempts
from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import CHANGE_OPTIONS, USE_GTID, MasterChanges
from rplctl.command.channel.context import ROLES, open_repositories, running
from rplctl.command.clone import CloneRequest, clone
from rplctl.command.cloning.cancel import cancel
from rplctl.command.cloning.choice import Choice
from rplctl.command.init import init
from rplctl.command.process.start_request import StartRequest
from rplctl.command.selftest.crash_run import ChildOutcome, Say, in_child
from rplctl.command.show_clone import show_clone
from rplctl.command.start import start
from rplctl.command.stop import stop
from rplctl.command.verify import VerifyRequest, verify
from rplctl.config import Config, load_config
from rplctl.errors import RplError
from rplctl.info import MasterInfo
from rplctl.own_tables.clones import CopyState
from rplctl.secret import reveal

COPIED: Final = "copied once"
IN_VERB: Final = ("crash_clone_after_ledger", "crash_clone_cancel_before_ledger")
IN_RECEIVER: Final = ("crash_clone_after_chunk", "crash_clone_before_claim", "crash_clone_after_claim")
IN_APPLIER: Final = (
    "crash_clone_before_begin", "crash_clone_after_begin", "crash_clone_before_load", "crash_clone_after_load",
    "crash_clone_before_end", "crash_clone_after_end",
)  # fmt: skip
POINTS: Final = (*IN_VERB, *IN_RECEIVER, *IN_APPLIER)
_PATIENCE_S: Final = 300.0  # seconds to wait until a copy ends, or reaches its crash point
_POLL_S: Final = 0.1
_SLOWLY: Final = 0.001  # MB/s, so slow that no table is copied before the copy is cancelled
_HERE: Final = ("master_log_file", "master_log_pos", "master_binlog_dir")  # a copy begins at the source's end


def walk_clone(
    config: Config, channel_name: str, tables: str, points: Sequence[str], folder: Path
) -> Iterator[tuple[str, str]]:
    """Yield each crash point with the observed outcome. `tables` is a list in the format of `clone --tables`.

    Raises UsageError if `tables` is not valid, and NotConfigured if the channel does not exist.
    """
    choice = Choice.of("", tables, replace=False)
    changes = _changes(config, open_repositories(config, channel_name).master())
    for point in points:
        datadir = folder / point
        try:
            yield point, _copied(datadir, changes, choice, point)
        except RplError as error:
            yield point, error.message
        finally:
            in_child(partial(_stop, datadir))


def _changes(config: Config, master: MasterInfo) -> MasterChanges:
    """Return the options with which CHANGE MASTER TO sets the operator's source for the scratch instance."""
    given: dict[str, Any] = {}
    for name, row in CHANGE_OPTIONS.items():
        thread, _, stored = row.stores.partition(".")
        if thread == "master" and not row.refused and name not in _HERE:
            given[name] = getattr(master, stored)
    given["master_use_gtid"] = USE_GTID[master.using_gtid] if master.using_gtid else None
    given = {name: value for name, value in given.items() if value != getattr(MasterInfo(), _stored(name))}
    return replace(MasterChanges(**given), password=reveal(master.user_password, config.datadir))


def _stored(name: str) -> str:
    return CHANGE_OPTIONS[name].stores.partition(".")[2]


def _copied(datadir: Path, changes: MasterChanges, choice: Choice, point: str) -> str:
    channel, armed = Channel("", datadir), f"{point}=kill"
    is_cancel = point == IN_VERB[1]
    _done(in_child(partial(_make, datadir, changes, choice)))
    request = CloneRequest(choice=choice, max_rate=_SLOWLY if is_cancel else 0.0)
    begun = in_child(partial(_clone, datadir, request), "" if is_cancel else armed)
    if is_cancel:
        _done(begun)
        _done(in_child(partial(_stop, datadir)))
        begun = in_child(partial(_cancel, datadir), armed)
    if point in IN_VERB:
        if not begun.killed:
            _done(begun)
            return "not killed"
    else:
        _done(begun)
        role = ROLES[0] if point in IN_RECEIVER else ROLES[1]
        if not _comes(lambda: role not in running(channel)):
            return "not killed"
    _done(
        in_child(
            partial(_clone, datadir, CloneRequest(choice=choice, max_rate=0.0))
            if is_cancel
            else partial(_start, datadir)
        )
    )
    if not _comes(lambda: all(_said(in_child(partial(_states, datadir))))):
        return f"not done after {_PATIENCE_S:g} s"
    return str(_said(in_child(partial(_compare, datadir, choice)))[0])


def _said(outcome: ChildOutcome) -> tuple[Any, ...]:
    return _done(outcome).said


def _done(outcome: ChildOutcome) -> ChildOutcome:
    """Return the outcome of a child that has succeeded. Raises RplError if the child failed or was killed."""
    if outcome.error or outcome.killed:
        raise RplError(outcome.error or "killed, unasked")
    return outcome


def _comes(condition: Callable[[], bool]) -> bool:
    return any(condition() for _ in attempts(_PATIENCE_S, _POLL_S))


def _make(datadir: Path, changes: MasterChanges, choice: Choice, say: Say) -> None:
    init(datadir, {"replicate_do_table": ",".join(".".join(name) for name in choice.tables)})
    change_master(load_config(datadir), "", changes)


def _clone(datadir: Path, request: CloneRequest, say: Say) -> None:
    clone(load_config(datadir), "", request)


def _cancel(datadir: Path, say: Say) -> None:
    cancel(load_config(datadir), "")


def _start(datadir: Path, say: Say) -> None:
    start(load_config(datadir), "", StartRequest())


def _stop(datadir: Path, say: Say) -> None:
    if running(Channel("", datadir)):
        stop(load_config(datadir), "")


def _states(datadir: Path, say: Say) -> None:
    rows = show_clone(load_config(datadir), "")
    say(bool(rows) and all(row.State is CopyState.DONE for row in rows))


def _compare(datadir: Path, choice: Choice, say: Say) -> None:
    result = verify(load_config(datadir), "", VerifyRequest(choice=choice))
    differences = sum(table.differences for table in result.totals)
    say(COPIED if result.is_equal and result.totals else f"{differences} differences")

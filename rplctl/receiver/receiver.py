"""Run the receiver of one channel: recover the relay log, connect, receive, and connect again after an error.

The loop ends with a stop, or with an error that is final. Invariants:
* Only the holder of the channel's receiver lock writes the relay log of the channel.
* Every connection begins with relay log recovery (design D7), so a transaction that a broken connection has cut is
  fetched again completely.
* MasterInfo is never ahead of the relay log: it names the end of the relay log at the time of its flush. A new
  MasterInfo becomes visible only under the channel's data lock (WL#9452 F-2.5).
* Errors have MySQL's number, and are in the status file before they leave `run` (WL#4621, WL#2775). This includes
  unforeseen errors.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel, hold_lock
from rplctl.config import Config
from rplctl.errors import NotConfigured, RelayLogError, RplError, SourceError, TargetError, file_error
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.kernel_cache import is_compiled
from rplctl.failpoint import watch
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.locks import FileLock
from rplctl.own_process import signals_to
from rplctl.receiver.observer import Observer
from rplctl.receiver.pull import Pull
from rplctl.receiver.reporter import QUEUEING, STEADY_S, Reporter
from rplctl.receiver.same_history import refuse_other_history
from rplctl.recovery import RecoveryResult, recover_relay_log
from rplctl.relay_log.origin import note_origin
from rplctl.repository import open_master_info, open_relay_log_info
from rplctl.secret import reveal
from rplctl.source import DumpStart, ReplicaIdentity, SourceStream
from rplctl.source.binlog_folder import FolderStream
from rplctl.source.dump import LiveStream, open_stream
from rplctl.source.interruption import Interruption
from rplctl.source.replica_id import replica_identity
from rplctl.source_zones import SourceZones
from rplctl.status import read_status
from rplctl.target import open_engine

if TYPE_CHECKING:
    from sqlalchemy import Engine

_IDLE: Final = "Slave has read all relay log"  # the applier's state (applier/report.py)
_LOOK_S: Final = 0.5  # seconds after which the applier's status includes all received events
TICK_S: Final = 0.2  # most seconds until a signal takes effect
QUIET_S: Final = 1.0  # between checks while the source sends nothing; STOP ends the wait
TARGET_PAUSE_S: Final = 1.0  # between attempts while the target, which stores the repositories, is unreachable
COPY_POLL_S: Final = 0.5
ENDS_WITHIN_S: Final = 2.0  # if a copy waits longer for an answer of the source, it ends with the process
_MOST_WORDS: Final = 500  # characters of an unforeseen error, which may contain data from a server
log = logging.getLogger("rplctl.receiver")


class _StopWhileConnecting(BaseException):
    """The exception that the signal handler raises if STOP comes during an attempt to connect.

    So STOP waits neither for a silent source nor for a long GTID request.
    """


class Receiver:
    """One run of a channel's receiver.

    `run` returns on SIGTERM or SIGINT. Otherwise, it raises an RplError, and no other error.
    """

    def __init__(self, config: Config, channel: Channel, *, is_alone: bool = True) -> None:
        self._config = config
        self._channel = channel
        self._is_alone = is_alone  # True if its process serves only this channel
        self._stopping = False
        self._ended = threading.Event()
        self._flush_logs = False
        self._beyond_limit = -1  # the number of transactions in relay logs that may exceed the space limit
        self._interruption = Interruption()
        self._connecting = False
        self._connections = 0
        self._worked = False  # the last connection received transactions, or lasted for a while
        self._opened_engine: Engine | None = None
        self._reporter = Reporter(channel, config)
        self._observer = Observer(config, channel, self._ended)
        self.master_info = open_master_info(config, channel, self._engine)
        self.master_info.guard = FileLock(channel.lock_path("data")).held
        self._relay_log_info = open_relay_log_info(config, channel, self._engine)

    def run(self) -> None:
        """Receive events until SIGTERM, SIGINT or `stop`. SIGHUP begins a new relay log."""
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        with hold_lock(self._channel, "receiver"), self._reporter.begin(), signals_to(self._on_signal, *numbers):
            copying = threading.Thread(target=self._copy, name="rplctl-cloner", daemon=True)
            status = self._reporter.status
            observing = threading.Thread(target=self._observer.run, args=(status,), name="rplctl-observer", daemon=True)
            try:
                watch(self._channel.run_folder, beside_others=not self._is_alone)
                if not is_compiled():  # the first process on a machine compiles the kernels for all others
                    from rplctl.event.warm_up import warm_up

                    warm_up()
                copying.start()
                observing.start()
                self._receive()
            except RplError as error:
                self._reporter.failed(error)
                raise
            except Exception as error:  # report every error that ends the receiver
                failure = self._unexpected(error)
                self._reporter.failed(failure)
                raise failure from error
            finally:
                self._ended.set()
                if copying.is_alive():  # the next holder of the lock must find no other writer in the folder
                    copying.join(ENDS_WITHIN_S)
                self._reporter.stopped()

    def _copy(self) -> None:
        """Run the cloner, which reads tables for `rplctl clone`, when there are tables to copy.

        Most channels never copy tables, so the code of the cloner is imported only for a copy.
        """
        while not self._ended.wait(COPY_POLL_S):
            if self._channel.clone_plan.exists():
                from rplctl.clone.cloner import Cloner

                Cloner(self._config, self._channel, self._ended).run()

    def _unexpected(self, error: Exception) -> RplError:
        """Return the error that the operator sees for an unforeseen exception.

        The error has the position and the next command to run.
        """
        if isinstance(error, OSError) and error.filename:
            return file_error(error, self._channel.name)
        status = self._reporter.status
        position = f"{status.read_log_name}:{status.read_log_pos}" if status.read_log_name else ""
        words = f"{type(error).__name__}: {str(error)[:_MOST_WORDS]}"
        return RplError(
            f"the receiver failed unexpectedly{f' after {position}' if position else ''}: {words}",
            errno=er.SLAVE_FATAL_ERROR,
            channel=self._channel.name,
            position=position,
            hint=f"to continue, run: rplctl start\nSee {self._channel.log_path('receiver')}",
        )

    def stop(self) -> None:
        """Make `run` return at its next tick, as SIGTERM does, and end a wait in a socket."""
        self._stopping = True
        self._interruption.now()

    def flush_logs(self) -> None:
        """Request that the receiver begins a new relay log, as FLUSH RELAY LOGS and SIGHUP do."""
        self._flush_logs = True

    def _receive(self) -> None:
        """Serve one connection after another, as CONNECT_RETRY and RETRY_COUNT require.

        Raises an error that is permanent, or the error of the last attempt.
        """
        attempts = 0  # failed attempts since the last working connection
        info = MasterInfo()
        while not self._stopping:
            self._worked = False
            try:
                info = self._read_master_info()  # fails if the target stores it and is unreachable
                self._session(info)
            except RplError as error:
                if not error.transient:
                    raise
                attempts = 0 if self._worked else attempts + 1
                self._reporter.retrying(error)
                log.warning("%s (attempt %d, at most %d)", error.message, attempts, info.retry_count)
                if info.retry_count and attempts >= info.retry_count:
                    raise
                self.pause(self._pause_s(error, info))

    def _pause_s(self, error: RplError, info: MasterInfo) -> float:
        """Return the number of seconds to wait before the next attempt, as in MySQL.

        The wait is TICK_S after a lost connection, TARGET_PAUSE_S after an error of the target, and otherwise
        CONNECT_RETRY.
        """
        if self._worked:
            return TICK_S
        return TARGET_PAUSE_S if isinstance(error, TargetError) else max(TICK_S, info.connect_retry)

    def _session(self, info: MasterInfo) -> None:
        """Serve one connection, from recovery to its end. Return on STOP."""
        has_applied = self._relay_log_info.exists()
        executed = self._relay_log_info.read() if has_applied else RelayLogInfo()
        is_first = self._connections == 0
        recovered = recover_relay_log(self._channel, info, executed, thorough=is_first)
        for note in recovered.notes:
            log.info("%s", note)
        self._reporter.connecting()
        connected = self._connect(info, recovered, executed)
        if connected is None:
            return
        stream, start, replica = connected
        pull = Pull(self._config, self._channel, replica, self._reporter)
        connected_at = time.monotonic()
        intact = True
        try:
            found = stream.identity()
            is_same = self._connections > 0 and (info.uuid, info.master_server_id) == (found.uuid, found.server_id)
            if not recovered.relay_end.log_name:
                note_origin(self._channel, info, executed.gtid_executed if info.uses_gtid else "")
            pull.begin(info, self.master_info, found, recovered, resume=is_same)
            self._connections += 1
            self._reporter.connected(found, recovered.retrieved_gtid_set)
            self._observer.info = info
            log.info("connected to master, replication started at %s", start.position)
            while not self._stopping:
                pull.step(stream, QUIET_S if isinstance(stream, LiveStream) else TICK_S)
                self._between_batches(pull)
        except RelayLogError:
            intact = False
            raise
        except SourceError:
            if not self._stopping:  # STOP itself ends the connection
                raise
        finally:
            self._worked = pull.transactions > 0 or time.monotonic() - connected_at > STEADY_S
            try:
                pull.finish(flush=intact)
            finally:
                stream.close()
                self._interruption.release()

    def _connect(
        self, info: MasterInfo, recovered: RecoveryResult, executed: RelayLogInfo
    ) -> tuple[SourceStream, DumpStart, ReplicaIdentity] | None:
        """Connect to the source, and return the stream, its start and the replica's identity, or None after STOP."""
        try:
            self._connecting = True  # from here on, a signal raises an exception
            try:
                if self._stopping:
                    return None
                start = dump_start(info, recovered, executed)
                replica = replica_identity(self._config, self._channel)
                password = reveal(info.user_password, self._config.datadir)
                with self._interruption.heeded():
                    if start.by_gtid and not info.master_binlog_dir:
                        refuse_other_history(info, password, recovered, replica, self._config)
                    return open_source(info, password, self._asking(start), replica, self._config), start, replica
            finally:
                self._connecting = False
        except _StopWhileConnecting:
            return None
        except SourceError:
            self._interruption.release()
            if self._stopping:
                return None
            raise

    def _asking(self, start: DumpStart) -> DumpStart:
        """Return `start` with a query for the source's SYSTEM time zone, unless the operator has set the zone."""
        zones = None if self._config.source_time_zone else SourceZones(self._channel, self._config)
        return replace(start, zones=zones)

    def _between_batches(self, pull: Pull) -> None:
        if self._flush_logs and pull.can_rotate:
            self._flush_logs = False
            pull.rotate()
        if pull.transactions == self._beyond_limit or not pull.is_over_space_limit():
            return
        self._reporter.state("Waiting for the slave SQL thread to free enough relay log space")
        if pull.can_rotate:
            pull.rotate()  # the applier can purge only relay logs that are complete
        begun, is_idle = time.time(), False
        while not (self._stopping or is_idle) and pull.is_over_space_limit() and not pull.holds_all_space():
            self._reporter.tick()
            time.sleep(TICK_S)
            is_idle = self._is_applier_idle_since(begun)
        if is_idle:  # as on a server: the applier can free nothing before it has the rest of this transaction
            self._beyond_limit = pull.transactions
        self._reporter.state(QUEUEING)

    def _is_applier_idle_since(self, begun: float) -> bool:
        """True if the applier has looked at the relay logs after the time `begun`, and has found no transaction."""
        status = read_status(self._channel.status_path("applier"))
        return status.state.startswith(_IDLE) and status.worked > begun + _LOOK_S

    def pause(self, seconds: float) -> None:
        """Wait before the next attempt to connect. STOP ends the wait."""
        deadline = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < deadline:
            self._reporter.tick()
            time.sleep(min(TICK_S, max(0.0, deadline - time.monotonic())))

    def _read_master_info(self) -> MasterInfo:
        info = self.master_info.read()
        if not info.is_configured:
            raise NotConfigured(
                er.BAD_SLAVE_TEXT,
                errno=er.BAD_SLAVE,
                channel=self._channel.name,
                hint="to set the source, run: rplctl change-master --master-host HOST --master-user USER "
                "--ask-password; rplctl start",
            )
        return info

    def _engine(self) -> Engine:
        """Return the target's engine, which is opened once, and only if a repository is a TABLE (design D16)."""
        if self._opened_engine is None:
            self._opened_engine = open_engine(self._config.target_url)
        return self._opened_engine

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.flush_logs()
        else:
            self.stop()
            if self._connecting:
                self._connecting = False
                raise _StopWhileConnecting


def dump_start(info: MasterInfo, recovered: RecoveryResult, executed: RelayLogInfo) -> DumpStart:
    """Return the start of a dump: a file and position, a MySQL GTID set, or a MariaDB GTID position.

    With a position, the dump starts after the events that recovery has found. With GTIDs (MASTER_AUTO_POSITION,
    MASTER_USE_GTID), it sends all events that are neither fetched nor applied.
    """
    if info.enabled_auto_position:
        fetched = MysqlGtidSet.parse(recovered.retrieved_gtid_set)
        return DumpStart(recovered.next_event, mysql_gtid_set=fetched.union(MysqlGtidSet.parse(executed.gtid_executed)))
    if info.using_gtid:
        done, received = map(MariadbGtidState.parse, (executed.gtid_executed, recovered.retrieved_gtid_set))
        # the number of a domain's last received GTID may be lower than that of its last executed one (GtidHistory)
        has_lost = bool(executed.master_log_name) and recovered.next_event.is_before(executed.exec_position)
        state = done.union(received) if has_lost else done.add_last(received.domains)
        return DumpStart(recovered.next_event, mariadb_gtid=str(state))
    return DumpStart(recovered.next_event)


def open_source(
    info: MasterInfo, password: str, start: DumpStart, replica: ReplicaIdentity, config: Config
) -> SourceStream:
    """Connect to the source, and request all events from `start` on.

    Raises SourceError if the source does not answer, or if it refuses the request. The error is transient if another
    attempt may help.
    """
    if info.master_binlog_dir:
        return FolderStream(Path(info.master_binlog_dir), config.datadir, start)
    return open_stream(info, password, start, replica, config)

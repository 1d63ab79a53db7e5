"""Write the receiver's status file, which `show-status` prints.

The file is written on every change of state and periodically, at most five times a second.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from typing import Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import RplError, for_channel
from rplctl.incident import Incident
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.retrieved_gtids import RetrievedGtids
from rplctl.source import SourceIdentity
from rplctl.status import StatusFile, ThreadStatus, read_status

INTERVAL_S: Final = 0.2
IDLE_S: Final = 5.0  # between two writes while nothing new is read
STARTING: Final = "Starting"
STEADY_S: Final = 5.0  # a connection that lasted this long is not a failed attempt
REQUESTING: Final = "Requesting binlog dump"
QUEUEING: Final = "Queueing master event to the relay log"
WAITING: Final = "Waiting for master to send event"  # the source has sent nothing for a moment
RECONNECTING: Final = "Reconnecting after a failed master event read"
_OTHERWISE = "repair the cause of the error, then run: rplctl start"


def log_error(error: RplError) -> int:
    """Write the error that ended the receiver to the receiver's log, and return the exit code."""
    logging.getLogger("rplctl.receiver").error(
        "%s",
        error.message,
        exc_info=error.__cause__ if type(error) is RplError and not error.transient else None,  # an unforeseen error
    )
    return error.exit_code


class Reporter:
    def __init__(self, channel: Channel, config: Config | None = None) -> None:
        self._channel = channel.name
        self._incident = Incident(channel, "receiver", config)
        self._connected_at = 0.0  # time.monotonic()
        self._has_connected = False  # in this run
        self.has_news = False  # True if the file does not show the last events read
        self._path = channel.status_path("receiver")
        self.status = ThreadStatus()
        self._file = StatusFile(self._path, self.status)

    def begin(self) -> AbstractContextManager[None]:
        """Report a new run, and clear the state of an earlier run that was killed.

        During the `with` block, the status file shows that the process is alive.
        """
        self.status = status = read_status(self._path)
        self._incident.begins(status)
        self._file = StatusFile(self._path, status)
        status.connected, status.is_waiting, status.is_done, status.lost = False, False, False, time.time()
        self.state(STARTING)
        return self._file.pulse()

    def state(self, text: str) -> None:
        self.status.state = text
        self._file.write()
        self.has_news = False

    def connected(self, identity: SourceIdentity, retrieved: str = "") -> None:
        """Report a new connection, which clears the last error, as in MySQL.

        `retrieved` has the GTIDs of complete transactions in the relay logs.
        """
        status = self.status
        status.retrieved_gtid_set, status.transfer_timestamp = retrieved, 0
        status.connected, status.is_waiting, status.lost = True, True, 0.0
        status.last_errno, status.last_error, status.last_hint, status.last_error_timestamp = 0, "", "", 0.0
        status.master_server_id, status.master_uuid = identity.server_id, identity.uuid
        status.clock_difference, status.clock_error = identity.clock_difference, identity.clock_error
        self._connected_at, self._has_connected = time.monotonic(), True
        self.state(REQUESTING)

    def received(
        self, position: BinlogPosition, gtids: RetrievedGtids, timestamp: int, relay_end: RelayLogPosition
    ) -> None:
        """Report received events.

        `timestamp` is the time of the last event by the source's clock, or 0. `relay_end` is the end of the relay log.
        """
        self.status.read_timestamp = float(timestamp) or self.status.read_timestamp
        if position != self.status.read_position:  # a heartbeat alone does not change the state
            self.status.state = QUEUEING
        self.status.read_log_name, self.status.read_log_pos = position.log_name, position.log_pos
        self.status.relay_log_name, self.status.relay_log_pos = relay_end.log_name, relay_end.log_pos
        self.status.retrieved_gtid_set, self.status.transfer_timestamp = gtids.text, gtids.open_since
        self.has_news = True
        self.tick()

    def heartbeat(self) -> None:
        """Report that all events of the source until now are read."""
        self.status.received_heartbeats += 1
        self.status.heartbeat_timestamp = time.time()
        self.status.read_timestamp = self.status.heartbeat_timestamp + self.status.clock_difference

    def connecting(self) -> None:
        """Report an attempt to connect, with the same words as a MySQL replica."""
        self.state(RECONNECTING if self._has_connected else "Connecting to master")

    def retrying(self, error: RplError) -> None:
        self._error(error)
        self._incident.lasts(error, self.status)
        self.status.connected = self.status.is_waiting = False
        self.status.lost = self.status.lost or time.time()
        self.connecting()

    def failed(self, error: RplError) -> None:
        """Report the final error with its hint, in the same form as the applier."""
        self._error(error)
        self.status.connected = False
        self.status.last_hint = for_channel(error.hint or _OTHERWISE, self._channel)
        self._incident.ends(error, self.status, self.status.last_hint)

    def stopped(self) -> None:
        if self.status.connected:
            self._incident.gone()
        self.status.connected = self.status.is_waiting = False
        self.state("")

    def tick(self) -> None:
        if self._incident.is_known and self.status.connected and time.monotonic() - self._connected_at > STEADY_S:
            self._incident.gone()
        if self._file.write_if_older(INTERVAL_S if self.has_news else IDLE_S):
            self.has_news = False

    def silent(self) -> None:
        """Write the status now and not with the next events, because the source sends nothing at the moment."""
        if self.has_news or self.status.state != WAITING:
            self.state(WAITING)
        self.tick()

    def _error(self, error: RplError) -> None:
        self.status.last_errno = error.errno or er.SLAVE_FATAL_ERROR
        self.status.last_error, self.status.last_hint = error.message, for_channel(error.hint, self._channel)
        self.status.last_error_timestamp = time.time()

"""Notify systemd about a channel in the foreground: that it runs, its progress, and that it is alive.

The protocol is sd_notify(3): each message is a datagram to $NOTIFY_SOCKET. Without this variable, nothing is sent.
Invariant: the watchdog receives a message only while each started thread has a fresh status (thread_report.py). So
systemd restarts a frozen receiver or applier like a dead one.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, RECEIVER
from rplctl.command.process.child import Child
from rplctl.command.process.thread_report import report_of
from rplctl.status import read_status

_TELL_S = 5.0


class Service:
    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        limit = os.environ.get("WATCHDOG_USEC", "") if is_ours else ""
        self._every_s = min(_TELL_S, int(limit) / 4e6) if limit.isdecimal() else _TELL_S
        self._notified = float("-inf")  # time.monotonic()

    @property
    def is_asked(self) -> bool:
        return bool(self._address)

    def say(self, **words: str) -> None:
        """Send a message to systemd without waiting, for example `READY="1"`. Do nothing if systemd does not run this
        process.
        """
        if not self._address:
            return
        name = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        text = "\n".join(f"{word}={' '.join(value.split())}" for word, value in words.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
            sending.setblocking(False)
            sending.sendto(text.encode(errors="replace"), name)

    def look(self, channel: Channel, children: Sequence[Child]) -> None:
        """Send the status to systemd if it is due. Send the watchdog message, too, if all threads have reported
        lately.
        """
        if not self._address or time.monotonic() - self._notified < self._every_s:
            return
        self._notified = time.monotonic()
        silent = [
            child.role
            for child in children
            if child.exit_code() is None and report_of(channel, child.role).silent_since is not None
        ]
        if silent:
            self.say(STATUS=f"no report of the {' and the '.join(silent)}")
        else:
            self.say(STATUS=_shown(channel), WATCHDOG="1")


def _shown(channel: Channel) -> str:
    """Return the status text for systemd, such as `applied to b.000001:4, read to b.000001:4`, with the last errors."""
    receiver, applier = (read_status(channel.status_path(role)) for role in (RECEIVER, APPLIER))
    places = {"applied to": applier.exec_position, "read to": receiver.read_position}
    known = ", ".join(f"{word} {place}" for word, place in places.items() if place.log_name)
    return "; ".join(filter(None, [known or "begins", receiver.last_error, applier.last_error]))

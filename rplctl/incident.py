"""An incident of a receiver or applier: the time from its first error until it works again.

rplctl reports each step of an incident only once, even if the thread retries often, or cron or systemd restarts it:

    history       at the first error, when the thread stops, and when it works again
    on_error      called when the thread has retried for LASTS_S, and when it stops
    on_recovery   called when the thread works again, if on_error was called

Invariant: each incident has a file, which only prevents repeated reports. If the file is lost or damaged, the incident
is reported again.
"""

from __future__ import annotations

import json
import logging
import platform
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rplctl import __version__
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import replace_file
from rplctl.errors import RplError
from rplctl.history import note_event, stamp
from rplctl.hook import call
from rplctl.mask import masked
from rplctl.plain_file import parsed_json, read_plain
from rplctl.status import ThreadStatus, was_killed

LASTS_S: Final = 60.0  # seconds; a shorter problem needs no attention at night
log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class _Known:
    """The error of an incident, and the steps that were already reported."""

    since: float  # Unix seconds
    errno: int
    message: str
    has_ended: bool = False  # True if the thread has stopped because of the problem
    is_called: bool = False  # True if on_error was called


class Incident:
    def __init__(self, channel: Channel, role: str, config: Config | None) -> None:
        self._channel, self._role = channel, role
        self._config = config or Config(channel.datadir)
        self._path = channel.incident_path(role)
        self._known: _Known | None = None

    @property
    def is_known(self) -> bool:
        return self._known is not None

    def begins(self, before: ThreadStatus) -> None:
        """Continue the incident of the last run of the thread, at the start of a new run.

        `before`: the last status of that run. If it shows that the thread was killed, the history gets an event.
        """
        self._known = _read(self._path)
        if was_killed(before):
            self._note(
                "killed", f"the thread did not end by itself; its last sign of life was at {stamp(before.updated)}"
            )

    def lasts(self, error: RplError, status: ThreadStatus) -> None:
        """Report an error after which the thread retries by itself. `status` has the number of the error."""
        if self._known is None:
            self._known = _Known(since=time.time(), errno=status.last_errno, message=error.message)
            self._note("error", error.message, error)
            self.write()
        elif not self._known.is_called and time.time() - self._known.since >= LASTS_S:
            self._call("error", "retrying", error.hint, error.position)
            self.write()

    def ends(self, error: RplError, status: ThreadStatus, hint: str) -> None:
        """Report an error that stops the thread. `status` has the number of the error."""
        known = self._known
        now = status.last_errno, _words(error.message)
        if known and known.has_ended and (known.errno, _words(known.message)) == now:
            return
        self._known = _Known(
            since=known.since if known else time.time(), errno=status.last_errno, message=error.message, has_ended=True
        )
        self._call("error", "stopped", hint, error.position)
        self._note("error", f"stopped: {error.message}", error)
        self.write()

    def gone(self) -> None:
        """End the incident, because the thread works again. Do nothing if there is no incident."""
        if self._known is None:
            return
        known = self._known
        if known.is_called:
            self._call("recovery", "running")
        self._known = None
        self._note("well", f"after {time.time() - known.since:.0f} s: {known.message}")
        self._path.unlink(missing_ok=True)

    def _call(self, event: str, state: str, hint: str = "", position: str = "") -> None:
        """Run the operator's command on_error or on_recovery. `event` is `error` or `recovery`."""
        known, now = self._known, time.time()
        command = self._config.on_error if event == "error" else self._config.on_recovery
        assert known is not None
        known.is_called = True
        if not command:
            return
        report = {
            "schema_version": 1,
            "event": event,
            "channel": self._channel.name,
            "thread": self._role,
            "state": state,
            "errno": known.errno,
            "message": masked(known.message),
            "hint": masked(hint),
            "position": position,
            "time": stamp(now),
            "since": stamp(known.since),
            "host": platform.node(),
            "datadir": str(self._channel.datadir),
            "version": __version__,
        }
        try:
            call(command, self._channel.datadir, report)
        except OSError as failure:
            log.warning("cannot call on_%s: %s", event, failure)

    def _note(self, event: str, text: str, error: RplError | None = None) -> None:
        errno, position = (self._known.errno, error.position) if self._known and error else (0, "")
        note_event(
            self._channel.datadir, self._channel.name, event, text, thread=self._role, errno=errno, position=position
        )

    def write(self) -> None:
        """Save the incident in its file, so that a restarted thread does not report it again."""
        assert self._known is not None
        try:
            replace_file(self._path, json.dumps(asdict(self._known)).encode(), durable=False)
        except OSError as failure:
            log.warning("cannot write %s: %s", self._path, failure.strerror)


def _words(message: str) -> str:
    """Return the message without its digits, because numbers in a message differ from attempt to attempt."""
    return re.sub(r"\d+", "", message)


def _read(path: Path) -> _Known | None:
    try:
        stored: Any = parsed_json(read_plain(path, follow=False))
        kinds = {"since": float, "errno": int, "message": str, "has_ended": bool, "is_called": bool}
        if {name: type(value) for name, value in stored.items()} == kinds:
            return _Known(**stored)
    except (OSError, ValueError, AttributeError, RplError):
        pass
    return None

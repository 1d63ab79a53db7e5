"""Run the receivers of several channels in one process (`start --shared-session`), with one thread per channel.

A process for each receiver needs 50 MB, and a thread needs only a few MB. The threads share nothing: each channel has
its own connection, lock, status and log. SIGTERM stops channels, and SIGHUP begins their next relay logs. Before a
command sends a signal for some of the channels, it writes a file for each of them (Channel.asked_path). A signal
without any such file is for all channels. Invariant: if a channel ends, all other channels continue. The process ends
with its last channel.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rplctl.channel import Channel, SignalsOfChannels
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.log_file import log_by_thread, logging_as
from rplctl.own_process import signals_to
from rplctl.receiver.receiver import Receiver
from rplctl.receiver.reporter import Reporter, log_error

_TICK_S: Final = 1.0


class SharedReceivers:
    def __init__(self, datadir: Path, names: Sequence[str]) -> None:
        self._receivers: dict[Channel, Receiver] = {}
        self._exit_codes: list[int] = []
        self._stops, self._flushes = SignalsOfChannels("receiver"), SignalsOfChannels("receiver", "flush")
        channels = [Channel(name, datadir) for name in names]
        log_by_thread("receiver", {channel.name: channel.log_path("receiver") for channel in channels})
        for channel in channels:
            channel.asked_path("receiver").unlink(missing_ok=True)
            with logging_as(channel.name):
                try:
                    receiver = Receiver(load_config(datadir, channel.name), channel, is_alone=False)
                    self._receivers[channel] = receiver
                except RplError as error:
                    self._exit_codes.append(log_error(error))
                    reporter = Reporter(channel)
                    with reporter.begin():
                        reporter.failed(error)
                        reporter.stopped()

    def run(self) -> int:
        """Run the receivers until the last one has ended.

        Return the exit code of the first channel that ended with an error.
        """
        threads = [threading.Thread(target=self._serve, args=(channel,)) for channel in self._receivers]
        with (
            signals_to(lambda *_: self.stop(), signal.SIGTERM, signal.SIGINT),
            signals_to(lambda *_: self.flush_logs(), signal.SIGHUP),
        ):
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(_TICK_S)  # Python runs signal handlers only between two calls
        return next(iter(self._exit_codes), 0)

    def stop(self) -> None:
        for channel in self._stops.meant(self._receivers):
            self._receivers[channel].stop()

    def flush_logs(self) -> None:
        for channel in self._flushes.meant(self._receivers):
            self._receivers[channel].flush_logs()

    def _serve(self, channel: Channel) -> None:
        with logging_as(channel.name):
            try:
                self._receivers[channel].run()
            except RplError as error:
                self._exit_codes.append(log_error(error))

"""Reports exceptions that are bugs of rplctl: the client gets an error, and `run/front.log` gets the traceback.

Invariant: an exception ends neither the connection nor the server. A bug that a client causes every second does not
fill the disk, because each process logs the traceback of a bug only once. The size of the log is limited, like that of
the logs of receivers and appliers.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rplctl import mysql_errors as er
from rplctl.durable import write_all
from rplctl.errors import RplError, file_error, memory_error
from rplctl.front.wire import Closed
from rplctl.log_file import LineFormatter, turn_over
from rplctl.plain_file import closing_descriptor

_FORM: Final = "%(asctime)s ERROR front: %(message)s"


class Bugs:
    """The bugs that one server has found, and the log of these bugs."""

    def __init__(self, datadir: Path) -> None:
        self.path = datadir / "run" / "front.log"
        self._known: set[tuple[str, str, int | None]] = set()
        self._lock = threading.Lock()

    @contextmanager
    def as_rpl_errors(self, statement: Callable[[], str] = str) -> Iterator[None]:
        """Convert each exception of the block to an RplError for the client. Closed and RplError are not changed.

        An exception that is neither an OSError nor a MemoryError is a bug, and is logged with the masked text that
        `statement` returns.
        """
        try:
            yield
        except (Closed, RplError):
            raise
        except OSError as error:
            raise file_error(error) from error
        except MemoryError as error:
            raise memory_error() from error
        except Exception as error:
            raise self._reported(error, statement()) from error

    def _reported(self, error: Exception, statement: str) -> RplError:
        text = f"unexpected {type(error).__name__} in rplctl: this is a bug"
        is_logged = self._log(error, f"{text}; the statement was: {statement}" if statement else text)
        hint = f"to see the traceback, run: tail -n 50 {self.path}" if is_logged else ""
        return RplError(text, errno=er.UNKNOWN_ERROR, hint=hint)

    def _log(self, error: Exception, text: str) -> bool:
        """Write the error to the log, and return True. If the log cannot be written, write to stderr, and return False.

        The first error at each place in the code is logged with its traceback.
        """
        frames = traceback.extract_tb(error.__traceback__)[-1:]
        place = (type(error).__name__, frames[0].filename if frames else "", frames[0].lineno if frames else None)
        with self._lock:
            is_new = place not in self._known
            self._known.add(place)
            trace = (type(error), error, error.__traceback__) if is_new else None
            record = logging.LogRecord("rplctl.front", logging.ERROR, "", 0, text, None, trace)
            line = LineFormatter(_FORM).format(record) + "\n"
            try:
                with closing_descriptor(
                    os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                ) as descriptor:
                    write_all(descriptor, line.encode("utf-8", "replace"))
                turn_over(self.path)
            except OSError:
                sys.stderr.write(line)
                return False
            return True

"""Stores the progress of a verify in the channel's folder, so that an interrupted verify can be resumed.

The progress has the finished tables with their totals and differences. For a large table, it also has the pieces whose
checksums both servers have computed. Invariant: when a table is finished, its differences are stored before its totals.
After a verify was killed, the next verify with the same options skips the finished tables. In an unfinished table whose
definition is unchanged, the next verify continues after the last finished piece.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from rplctl.channel import Channel
from rplctl.durable import private_folder, replace_file
from rplctl.plain_file import stored_json
from rplctl.schema.bounds import Bound
from rplctl.verify.report_file import Difference, Header, Totals, last_verified, line, of_record, write_report


class Progress:
    """The stored progress of one verify. `request`: the options of the verify as text.

    `header`: the header of its report; None if no progress for this request is stored. `done`: the totals of the
    finished tables, by database and name on the target.
    """

    def __init__(self, channel: Channel, request: str) -> None:
        self._folder, self._request, self._lock = channel.verify_folder, request, Lock()
        self._report = channel.verify_report_path
        self.header: Header | None = None
        self.done: dict[tuple[str, str], Totals] = {}
        stored = stored_json(self._path)
        try:
            if stored["request"] == request:
                self.header = of_record(Header, stored["header"])
                found = [of_record(Totals, totals) for totals in stored["done"]]
                self.done = {(totals.database, totals.table): totals for totals in found}
        except (ValueError, KeyError, TypeError):
            self.header, self.done = None, {}

    @property
    def _path(self) -> Path:
        return self._folder / "progress.json"

    def begin(self, header: Header) -> None:
        """Discard the stored progress, and begin a new one. Raises OSError if the progress file cannot be written."""
        shutil.rmtree(self._folder, ignore_errors=True)
        private_folder(self._folder)
        self.header, self.done = header, {}
        self._store()

    @contextmanager
    def table(self, name: tuple[str, str]) -> Iterator[Callable[[Iterable[Difference]], None]]:
        """Yield a function that stores differences of the table `name` (database and name on the target).

        Differences that an earlier, unfinished verify stored for the table are discarded first.
        """
        replace_file(self._differences(name), b"", durable=False)  # 0600: keys are data
        with self._differences(name).open("wb") as file:
            yield lambda found: file.writelines(line(asdict(difference)) for difference in found)

    def add(self, totals: Totals) -> None:
        with self._lock:
            self.done[totals.database, totals.table] = totals
            self._store()

    def pieces(self, name: tuple[str, str], definition: str) -> PiecesDone:
        return PiecesDone(self._of_table(name, "pieces"), hashlib.sha256(definition.encode()).hexdigest())

    def finish(self, paths: Sequence[Path], *, is_whole: bool) -> None:
        """Write the report to these paths, and discard the progress.

        `is_whole`: True if this verify compared all tables of the channel. If it is False, the report keeps the time of
        the last verify that compared all tables. Raises OSError if a report cannot be written.
        """
        assert self.header is not None
        verified = self.header.time if is_whole else last_verified(self._report)
        for path in paths:
            write_report(path, replace(self.header, verified=verified), self._found(), list(self.done.values()))
        shutil.rmtree(self._folder, ignore_errors=True)

    def spool(self, number: int) -> Path:
        return self._folder / f"spool.{number}"

    def _found(self) -> Iterator[Difference]:
        for name, totals in self.done.items():
            if totals.differences and self._differences(name).exists():
                with self._differences(name).open("rb") as lines:
                    yield from (of_record(Difference, json.loads(text)) for text in lines)

    def _differences(self, name: tuple[str, str]) -> Path:
        return self._of_table(name, "differences")

    def _of_table(self, name: tuple[str, str], kind: str) -> Path:
        return self._folder / f"{hashlib.sha256('.'.join(name).encode()).hexdigest()[:16]}.{kind}"

    def _store(self) -> None:
        assert self.header is not None
        done = [asdict(totals) for totals in self.done.values()]
        text = json.dumps({"request": self._request, "header": asdict(self.header), "done": done})
        replace_file(self._path, text.encode(), durable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnequalRows:
    """A selection of rows, some of which differ: rows with keys after `after`, up to `upto`, in one of the `buckets`.

    At the ends of the table, `after` and `upto` are None. () as `buckets` means all buckets. `rows`: the number of
    these rows on both sides together. The record has no SQL, because it is stored in a file, and SQL from a file must
    not be executed.
    """

    after: Bound | None
    upto: Bound | None
    buckets: tuple[int, ...]
    rows: int


class PiecesDone:
    """The part of one table that a verify has finished: the checksums of all rows up to the key `upto`.

    `upto`: None if no part is finished. `rows`: the number of the source's rows in this part. `unlike`: the selections
    of rows with unequal checksums.
    """

    def __init__(self, path: Path, definition: str) -> None:
        self._path, self._definition = path, definition
        self.upto: Bound | None = None
        self.rows = 0
        self.unlike: list[UnequalRows] = []
        stored = stored_json(path)
        with suppress(ValueError, KeyError, TypeError):  # without a valid record, begin with the first row
            if stored["definition"] == definition:
                found = _bound(stored["upto"]), int(stored["rows"]), [*map(_unequal_rows, stored["unlike"])]
                self.upto, self.rows, self.unlike = found

    def forget(self) -> None:
        """Discard the finished part, so that the table is compared from its first row on."""
        self.upto, self.rows, self.unlike = None, 0, []

    def keep(self, upto: Bound, rows: int, unlike: list[UnequalRows]) -> None:
        """Store the key `upto` to which the table is finished, with the results. Raises OSError if this fails.

        `rows`, `unlike`: the results, as in the class.
        """
        state = {"definition": self._definition, "upto": upto, "rows": rows, "unlike": [asdict(one) for one in unlike]}
        replace_file(self._path, json.dumps(state).encode(), durable=False)


def _bound(stored: Any) -> Bound | None:
    return None if stored is None else tuple(map(str, stored))


def _unequal_rows(stored: Any) -> UnequalRows:
    """Return the selection of rows from a parsed JSON object of the progress file.

    Raises ValueError, KeyError or TypeError if the object has another form.
    """
    buckets = tuple(map(int, stored["buckets"]))
    return UnequalRows(
        after=_bound(stored["after"]), upto=_bound(stored["upto"]), buckets=buckets, rows=int(stored["rows"])
    )

"""Delta tables, as delta-rs makes and changes them: one commit of one table at a time.

Invariant: the version of the application in a table's log (`txn`, delta protocol) is the last batch it has. It is read
from the state that the commit is based on, and a commit that another has overtaken fails: so of two that write the same
batch one loses. Columns are only added; a definition that the table's columns cannot take begins a table of its own
next to it (`orders~2`): no value is ever changed or left out.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from rplctl import mysql_errors as er
from rplctl.errors import LockBusy, TargetError
from rplctl.target.delta.place import OWN_FOLDER, Place, file_name
from rplctl.target.lake import PendingTable

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties

CLEANUP: Final = "delta.enableExpiredLogCleanup"
CLAIMS_KEPT: Final = {"delta.logRetentionDuration": "interval 5 minutes", CLEANUP: "true"}
COMMITS_BETWEEN_CLEANUPS: Final = 100
_NO_ROWS: Final = json.dumps(
    {"type": "struct", "fields": [{"name": "nothing", "type": "string", "nullable": True, "metadata": {}}]}
)
_STRUCTS: Final = ("before", "after")
_AWAY: Final = "repair the cause, then run: rplctl doctor; rplctl start"


class DeltaTables:
    """The tables of one Delta Lake, as lake.LakeTables describes them."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def version(self, folder: str, app_id: str) -> int:
        table = self.open_table(folder)
        return 0 if table is None else table.transaction_version(app_id) or 0

    def columns_of(self, schema: Any) -> str:
        return columns_of(schema)

    def fits(self, has: str, wanted: str) -> bool:
        return _fits(_fields(has), _fields(wanted))

    def takes(self, folder: str, columns: str) -> bool | None:
        table = self.open_table(folder)
        return None if table is None else self.fits(table.schema().to_json(), columns)

    def places(self, folder: str) -> list[tuple[str, str, int, int]]:
        table = self.open_table(folder)
        if table is None:
            return []
        with mapped(folder):
            rows = table.to_pyarrow_dataset(filesystem=self._place.files(folder))
            found = rows.to_table(columns=["op", "log", "pos", "row_number"]).to_pylist()
        return [tuple(row.values()) for row in found]

    def claimed(self, app_id: str) -> int:
        return self.version(self._claims(app_id), app_id)

    def claim(self, app_id: str, batch: int, mark: int) -> None:
        """A commit without files in a table of its own: who comes second to a version is kept out, in a bucket, too."""
        commit = PendingTable(self._claims(app_id), _NO_ROWS)
        try:
            self._take(commit, app_id, batch, mark)
        except TargetError:
            if self.claimed(app_id) < batch:
                raise
            self._take(commit, app_id, batch, mark)  # somebody was quicker: it tells whether that was another

    @staticmethod
    def _claims(app_id: str) -> str:
        return f"{OWN_FOLDER}/batches{file_name(app_id.partition('/')[2])}"

    def publish(self, table: PendingTable, app_id: str, batch: int) -> None:
        self._take(table, app_id, batch, checksum(table))

    def _take(self, table: PendingTable, app_id: str, batch: int, mark: int) -> None:
        from deltalake import CommitProperties, Schema, Transaction
        from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

        now = int(time.time() * 1000)
        adds = [AddAction(path, size, {}, now, True, stats) for path, size, stats in table.files]
        removes = [RemoveAction(path, True, now) for path in table.removed]
        once = CommitProperties(
            app_transactions=[Transaction(app_id, batch), Transaction(f"{app_id}/sum", mark)],
            custom_metadata={"rplctl.batch": str(batch)},
            # past OPTIMIZE, unless files go that it may have taken; a claim has none and goes past nobody, for delta-rs
            # lets a commit of the same application in behind the other
            max_commit_retries=5 if table.files and not (table.removed or table.replaces) else 0,
        )
        uri, options = self._place.uri(table.folder), self._place.options or None
        with mapped(uri):
            found = self.open_table(table.folder)
            if found is not None and (found.transaction_version(app_id) or 0) >= batch:
                if (found.transaction_version(app_id), found.transaction_version(f"{app_id}/sum")) != (batch, mark):
                    raise LockBusy(
                        f"table {table.folder} has batch {batch} of {app_id} with other files: another rplctl writes "
                        "this channel into the same lake",
                        hint="stop the other one; for a new replica: another --channel name, or another folder",
                    )
                self._place.sync_log(table.folder, -1)  # who wrote it may have been killed before it was synced
                return
            self._place.refuse_missing(table.folder, table.files)
            before = -1 if found is None else found.version()
            if found is None:
                columns = Schema.from_json(table.columns)
                create_table_with_add_actions(uri, columns, adds, storage_options=options, commit_properties=once)
                self._place.sync_log(table.folder, before)
                return
            if table.replaces:
                self._replace(found, table, once)
            else:
                if not _has(_fields(found.schema().to_json()), _fields(table.columns)):
                    self._widen(found, table.columns)
                    found = self.open_table(table.folder) or found
                _refuse_others_files(found, table)
                found.create_write_transaction(
                    [*adds, *removes],
                    "append",
                    found.schema(),
                    commit_properties=once,
                    post_commithook_properties=_hooks(),
                )
            self._place.sync_log(table.folder, before)
            if before % COMMITS_BETWEEN_CLEANUPS >= COMMITS_BETWEEN_CLEANUPS - 2:  # a batch is one commit or two
                self._forget_old_commits(table, before)

    def _forget_old_commits(self, table: PendingTable, before: int) -> None:
        """Each opening of a table lists its log: what is older than the table's properties say goes. delta-rs would
        delete it as soon as a checkpoint is written; here that is on the disk before. Of claims nobody asks for one of
        some minutes ago. Who commits at the same moment is in the right: it is tried again.
        """
        from deltalake.exceptions import DeltaError

        self._place.sync_log(table.folder, before - COMMITS_BETWEEN_CLEANUPS)  # what somebody else wrote, too
        if (found := self.open_table(table.folder)) is None:
            return
        with suppress(DeltaError):
            has = found.metadata().configuration
            if table.columns == _NO_ROWS and not CLAIMS_KEPT.items() <= has.items():
                found.alter.set_table_properties(dict(CLAIMS_KEPT), post_commithook_properties=_hooks())
            elif has.get(CLEANUP) == "false":
                return
            found.cleanup_metadata()

    def _replace(self, found: DeltaTable, table: PendingTable, once: CommitProperties) -> None:
        """Rows and columns in one commit, which delta-rs makes of files of its own only; ours are a copy then."""
        from deltalake import Schema, write_deltalake
        from pyarrow import dataset, schema

        columns = schema(Schema.from_json(table.columns).to_arrow())
        files = self._place.files(table.folder)
        rows = dataset.dataset([path for path, _, _ in table.files], schema=columns, filesystem=files, format="parquet")
        write_deltalake(
            found,
            rows.scanner().to_reader() if table.files else columns.empty_table(),
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=once,
            post_commithook_properties=_hooks(),
        )
        for path, _, _ in table.files:
            files.delete_file(path)

    def snapshot(self, folder: str) -> tuple[str, dict[str, str]] | None:
        """A table's columns, and its files: path → stats. None: there is no such table."""
        from pyarrow import table as arrow_table

        found = self.open_table(folder)
        if found is None:
            return None
        with mapped(folder):
            actions = arrow_table(found.get_add_actions(flatten=True)).to_pylist()
        return found.schema().to_json(), {action["path"]: _stats(action) for action in actions}

    def _widen(self, table: DeltaTable, columns: str) -> None:
        """Add columns; a crash after it leaves columns without values, which are there already the next time."""
        from deltalake import CommitProperties, Schema, write_deltalake
        from pyarrow import schema as arrow_schema

        wanted = arrow_schema(Schema.from_json(columns).to_arrow())
        write_deltalake(
            table,
            wanted.empty_table(),
            mode="append",
            schema_mode="merge",
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=_hooks(),
        )

    def open_table(self, folder: str) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        uri = self._place.uri(folder)
        with mapped(uri):
            try:
                return DeltaTable(uri, storage_options=self._place.options or None)
            except TableNotFoundError:
                return None


def _hooks() -> PostCommitHookProperties:
    """delta-rs would delete old commits before their checkpoint is on the disk: `_forget_old_commits` does it."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(cleanup_expired_logs=False)


def checksum(table: PendingTable) -> int:
    """Return a number of 56 bits made of the files' names, which no other attempt has."""
    names = "/".join(path for path, _, _ in table.files)
    return int.from_bytes(hashlib.sha256(names.encode()).digest()[:7], "big")


def columns_of(schema: Any) -> str:
    """Arrow's schema as Delta writes it down. Raises TargetError for a type that Delta has not."""
    from deltalake import Schema

    return Schema.from_arrow(schema).to_json()


@contextmanager
def mapped(uri: str) -> Iterator[None]:
    """delta-rs's errors. What another committed meanwhile is no error of the storage."""
    from deltalake.exceptions import CommitFailedError, DeltaError, SchemaMismatchError

    try:
        yield
    except CommitFailedError as error:
        raise LockBusy(
            f"somebody else committed to {uri} at the same moment: {_first_line(error)}",
            hint="stop who else writes this table, then rplctl start, which takes the rest of the batch there",
        ) from error
    except SchemaMismatchError as error:
        raise TargetError(
            f"{uri} has other columns than rplctl gave it: {_first_line(error)}",
            errno=er.SLAVE_CONVERSION_FAILED,
            hint="undo the other change of the table (Delta's RESTORE), then run: rplctl start",
        ) from error
    except (DeltaError, OSError) as error:
        raise TargetError(
            f"{uri}: {_first_line(error)}", errno=er.ERROR_ON_WRITE, hint=_AWAY, transient=_may_pass(error)
        ) from error


def _may_pass(error: Exception) -> bool:
    words = str(error).lower()
    return any(word in words for word in ("timeout", "timed out", "connect", "503", "slowdown"))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _fields(columns: str) -> dict[str, Any]:
    """Struct → (name → type), '' for what is in none."""
    found: dict[str, Any] = {"": {}}
    for entry in json.loads(columns)["fields"]:
        if entry["name"] in _STRUCTS and isinstance(entry["type"], dict):
            found[entry["name"]] = {part["name"]: part["type"] for part in entry["type"]["fields"]}
        else:
            found[""][entry["name"]] = entry["type"]
    return found


def _fits(has: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """No column of another type, and none whose name differs in case only (Delta takes them for one)."""
    for name in wanted:
        folded = {column.lower(): column for column in has[name]}
        for column, kind in wanted[name].items():
            known = folded.get(column.lower())
            if known is not None and (known != column or has[name][known] != kind):
                return False
    return True


def _has(has: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(wanted[name].keys() <= has[name].keys() for name in wanted)


def _stats(action: dict[str, Any]) -> str:
    """Return the statistics of a file as Delta writes them down; delta-rs gives them flattened."""
    numbers = {name: value for name, value in action.items() if type(value) is int}
    low, high = (
        {name.removeprefix(bound): value for name, value in numbers.items() if name.startswith(bound)}
        for bound in ("min.", "max.")
    )
    return json.dumps({"numRecords": action["num_records"], "minValues": low, "maxValues": high})


def _refuse_others_files(found: DeltaTable, table: PendingTable) -> None:
    """Raises LockBusy: a file that was rewritten must still be the table's, else rows of it would be there twice."""
    has = {uri.rpartition("/")[2] for uri in found.file_uris()} if table.removed else set()
    if gone := [path for path in table.removed if path.rpartition("/")[2] not in has]:
        raise LockBusy(
            f"table {table.folder} has its file {gone[0]} no longer: somebody else has changed it (OPTIMIZE, DELETE)",
            hint="delta's RESTORE to the version before that, then rplctl start; a mirror compacts its files itself",
        )

"""Creates and changes Delta tables with delta-rs. One commit changes one table.

Invariants: the log of a table contains the number of the last batch (`txn` in the Delta protocol). rplctl reads this
number from the version of the table on which the commit is based. The commit fails if another writer has committed
since then. So if two writers commit the same batch, one of them fails. Columns are only added. If a definition does not
fit the table's columns, the rows go to a new table next to it (`orders~2`). No value is ever changed or omitted.
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
from rplctl.target.delta.place import OWN_FOLDER, LakePlace, file_name
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
_AWAY: Final = (
    "to check the access to the lake and to continue after you have repaired the cause that the error names, run: "
    "rplctl doctor; rplctl start"
)


class DeltaTables:
    """The tables of one Delta Lake. The class implements `lake.LakeTables`, with one Delta commit for each change."""

    def __init__(self, place: LakePlace) -> None:
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
        """Claim the batch number with a commit without files, in a separate Delta table. A second commit of the same
        version fails, also in a bucket, so only one writer can claim a batch.
        """
        commit = PendingTable(folder=self._claims(app_id), columns=_NO_ROWS)
        try:
            self._take(commit, app_id, batch, mark)
        except TargetError:
            if self.claimed(app_id) < batch:
                raise
            self._take(commit, app_id, batch, mark)  # raises LockBusy if another writer has claimed the batch

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
            # delta-rs may retry after an OPTIMIZE, except if the batch removes files: OPTIMIZE may have removed them.
            # It must not retry a claim, because it would commit the claim after another claim of the same channel.
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
                        hint="stop the other rplctl, or use another --channel name or another folder for a new replica",
                    )
                self._place.sync_log(table.folder, -1)  # the writer of the batch may have been killed before the sync
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
            if before % COMMITS_BETWEEN_CLEANUPS >= COMMITS_BETWEEN_CLEANUPS - 2:  # a batch adds one or two versions
                self._forget_old_commits(table, before)

    def _forget_old_commits(self, table: PendingTable, before: int) -> None:
        """Delete commits in the table's log that are older than the table's properties permit. Old commits cost time,
        because each opening of the table lists the log.

        delta-rs itself would delete the commits directly after it has written a checkpoint. This method first syncs the
        checkpoint to disk. The table of claims keeps its commits for only five minutes. If a commit of another writer
        makes the deletion fail, a later batch tries again.
        """
        from deltalake.exceptions import DeltaError

        self._place.sync_log(table.folder, before - COMMITS_BETWEEN_CLEANUPS)  # also the commits of other writers
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
        """Replace all rows and columns of a table in one commit. delta-rs copies the rows to new files, so this method
        then deletes the files of the batch.
        """
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
        """Return a table's columns in Delta's format, and its files (path → statistics). Return None if the table does
        not exist.
        """
        from pyarrow import table as arrow_table

        found = self.open_table(folder)
        if found is None:
            return None
        with mapped(folder):
            actions = arrow_table(found.get_add_actions(flatten=True)).to_pylist()
        return found.schema().to_json(), {action["path"]: _stats(action) for action in actions}

    def _widen(self, table: DeltaTable, columns: str) -> None:
        """Add columns to a table in a commit without rows. After a crash, the table already has the columns."""
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
    """Return settings that stop delta-rs from deleting old commits. `_forget_old_commits` deletes them, after it has
    synced the checkpoint.
    """
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(cleanup_expired_logs=False)


def checksum(table: PendingTable) -> int:
    """Return a hash (56 bits) over the names of the batch's files, which identifies one attempt to write the batch. The
    names are random, so another attempt has another hash.
    """
    names = "/".join(path for path, _, _ in table.files)
    return int.from_bytes(hashlib.sha256(names.encode()).digest()[:7], "big")


def columns_of(schema: Any) -> str:
    """Return an Arrow schema as JSON in Delta's format. Raises TargetError for a type that Delta does not support."""
    from deltalake import Schema

    return Schema.from_arrow(schema).to_json()


@contextmanager
def mapped(uri: str) -> Iterator[None]:
    """Convert the errors that delta-rs raises in a `with` block. A conflict with another commit becomes LockBusy, and
    other errors become TargetError.
    """
    from deltalake.exceptions import CommitFailedError, DeltaError, SchemaMismatchError

    try:
        yield
    except CommitFailedError as error:
        raise LockBusy(
            f"another writer committed to {uri} at the same time: {_first_line(error)}",
            hint="to continue after you have stopped the other writer of this table, run: rplctl start",
        ) from error
    except SchemaMismatchError as error:
        raise TargetError(
            f"another program changed the columns of {uri}: {_first_line(error)}",
            errno=er.SLAVE_CONVERSION_FAILED,
            hint=_undo(uri, "the other program changed the columns"),
        ) from error
    except (DeltaError, OSError) as error:
        raise TargetError(
            f"cannot read or write {uri}: {_first_line(error)}",
            errno=er.ERROR_ON_WRITE,
            hint=_AWAY,
            transient=_may_pass(error),
        ) from error


def _undo(uri: str, change: str) -> str:
    """Return a hint that explains how to restore the table at `uri`. `change`: words for another program's change."""
    table = f"delta.`{uri}`"
    return (
        f"to find the version N before {change}, run in Spark SQL: DESCRIBE HISTORY {table}\n"
        "To restore this version, which also undoes all later changes, run in Spark SQL: "
        f"RESTORE TABLE {table} TO VERSION AS OF N\n"
        "To continue after that, run: rplctl start"
    )


def _may_pass(error: Exception) -> bool:
    words = str(error).lower()
    return any(word in words for word in ("timeout", "timed out", "connect", "503", "slowdown"))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _fields(columns: str) -> dict[str, Any]:
    """Return the columns of a table as struct → (column → type). `columns`: Delta's JSON. The structs are `before` and
    `after`, the images of a change. Columns outside of both structs have the struct ''.
    """
    found: dict[str, Any] = {"": {}}
    for entry in json.loads(columns)["fields"]:
        if entry["name"] in _STRUCTS and isinstance(entry["type"], dict):
            found[entry["name"]] = {part["name"]: part["type"] for part in entry["type"]["fields"]}
        else:
            found[""][entry["name"]] = entry["type"]
    return found


def _fits(has: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """True if a table with the columns `has` accepts rows with the columns `wanted`. Common columns must have the same
    type. No two names may differ only in case, because Delta regards such names as equal.
    """
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
    """Return the statistics of a file in Delta's format. `action`: the file's entry in the flat form of delta-rs."""
    numbers = {name: value for name, value in action.items() if type(value) is int}
    low, high = (
        {name.removeprefix(bound): value for name, value in numbers.items() if name.startswith(bound)}
        for bound in ("min.", "max.")
    )
    return json.dumps({"numRecords": action["num_records"], "minValues": low, "maxValues": high})


def _refuse_others_files(found: DeltaTable, table: PendingTable) -> None:
    """Raise LockBusy if a file that the batch replaces no longer belongs to the table. Another program has then moved
    the file's rows to another file, and the commit would store these rows twice.
    """
    has = {uri.rpartition("/")[2] for uri in found.file_uris()} if table.removed else set()
    if gone := [path for path in table.removed if path.rpartition("/")[2] not in has]:
        raise LockBusy(
            f"file {gone[0]} is missing in table {table.folder}: another program changed the table",
            hint=_undo(found.table_uri, "the other program's change (such as OPTIMIZE or DELETE)"),
        )

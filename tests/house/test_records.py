"""A record with several fields of one type is built by keyword: by position, a field that is inserted moves all that
come after it, and no type checker sees it. (A folder of binary logs could not be read because of that.)

The rule holds for our own dataclasses and NamedTuples with more than two fields, of which two have one type.
"""

from __future__ import annotations

import ast
from collections import Counter

from tests.house.code import MODULES, nodes

# Records that are still built by position. Names go, none comes: a record that is written anew has kw_only=True.
BY_POSITION = set(
    """
    AlterStep AlterTable AppendedRun Archived BackupLock BackupResult Batch BoundColumns BulkRows ChangeResult
    ChannelLine ChunkHead CloneProgress CloneRequest ClonedTable Column ColumnFormat Conversion CrashCase
    CrashLine CreateDatabase CreateTable CreateTableLike DatabaseModel DemoResult DemoTable Difference
    DoctorLine Event EventIndex EventRange EventRun ExportResult FilledColumn Finding ForeignKey FsyncLine
    Globals Header ImportResult InitResult Java Key KeyColumn LakeBatch Limits Line Link LoadSchemaResult
    Loaded LogResource LogStatus Missing MoveRowsStep Option Origin Outcome Part Partitioning PendingTable
    Piece Place Point Protection Query RecoverResult RenameColumn RepairedTable Request ResetResult RowChange
    ShownChange ShownEnd Snapshot Source SourceTables StartRequest StartResult StopResult SwitchPlan
    SwitchStep TableChanges TableChunk TableFacts TableModel TableToClone TargetPatience ThreadReport Token
    Totals Units Until Variant Verdict VerifyProgress VerifyRequest WrittenFile _Chosen _Known
    """.split()
)


def fields_of(record: ast.ClassDef) -> list[str]:
    """The types of the fields that a caller gives."""
    return [
        ast.unparse(part.annotation)
        for part in record.body
        if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part.annotation)
    ]


def is_record(record: ast.ClassDef) -> bool:
    kinds = [*map(ast.unparse, record.decorator_list), *map(ast.unparse, record.bases)]
    return any(kind.startswith(("dataclass", "dataclasses.dataclass", "NamedTuple")) for kind in kinds)


def test_records_with_fields_of_one_type_are_built_by_keyword() -> None:
    classes = [node for path in MODULES for node in nodes(path) if isinstance(node, ast.ClassDef) and is_record(node)]
    fields = {record.name: fields_of(record) for record in classes}
    alike = {name for name, types in fields.items() if len(types) > 2 and max(Counter(types).values()) > 1}
    called = (
        (ast.unparse(node.func).rpartition(".")[2], node.args)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call)
    )
    found = {name for name, given in called if name in alike and len(given) > 2}
    assert found == BY_POSITION, f"to be built by keyword: {found - BY_POSITION}; no longer: {BY_POSITION - found}"

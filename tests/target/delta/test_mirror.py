"""A mirror's tables are what the changes make of them, strictly, and a file that nothing hits stays the file it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rplctl.errors import ConfigError, LockBusy, TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import plan_ddl
from rplctl.target import open_target
from rplctl.target.base import ChangeKind, CountMismatch, RowChange, RowSet, TableChunk
from rplctl.target.delta.mirror import MirrorTarget
from rplctl.target.delta.rewrite import find
from rplctl.target.delta.tables import DeltaTables
from tests.applier.apply.live_target import catalog_of

pytestmark = pytest.mark.slow

APP = "rplctl/c"
NAME = ("d", "t")


class Mirror:
    """A mirror of one table, changed as the applier does it: a batch is decided, then published."""

    def __init__(self, folder: Path, create: str, *, url: str = "layer=mirror") -> None:
        self.folder = folder
        opened = open_target(f"delta+file://{folder}?{url}")
        assert isinstance(opened, MirrorTarget)
        self.target, self._number = opened, 0
        self.catalog = catalog_of(create)

    @property
    def model(self) -> TableModel:
        return self.catalog.tables[NAME]

    def batch(self, **lists: Any) -> None:
        whole = tuple(range(len(self.model.columns)))
        for name, columns in (("inserts", whole), ("updates", whole[1:])):
            if name in lists:
                lists[name] = [RowSet(columns, lists[name])]
        empty: dict[str, Any] = {name: [] for name in ("absent", "deletes", "updates", "inserts", "ordered")}
        chunk = TableChunk(
            database=NAME[0], table=NAME[1], **{**empty, **lists}, change_count=1, foreign_keys_off=False
        )
        self.target.begin(foreign_keys=True)
        self.target.apply_chunks([chunk], self.catalog.tables)
        self.commit()

    def change(self, kind: ChangeKind, before: RowSet | None, after: RowSet | None) -> None:
        self.target.apply_change(RowChange(kind=kind, before=before, after=after), self.model)

    def ddl(self, text: str, sql_mode: int = DdlContext.sql_mode) -> None:
        plan = plan_ddl(text, "d", DdlContext(sql_mode=sql_mode), self.catalog)
        self.target.begin(foreign_keys=True)
        try:
            self.target.execute_ddl(plan, self.catalog)
        except TargetError:
            self.target.rollback()
            raise
        self.catalog = self.catalog.after(plan)
        self.commit()

    def commit(self) -> None:
        try:
            staged = self.target.take_staged()
        finally:
            self.target.rollback()
        self._number += 1
        for table in staged:
            for _ in range(2):  # the second finds that it is done
                DeltaTables(self.target.writer).publish(table, APP, self._number)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(str(self.folder / "d" / self.model.name))

    def rows(self) -> list[tuple[Any, ...]]:
        found = self.table.to_pyarrow_dataset(filesystem=self.target.writer.files(f"d/{self.model.name}")).to_table()
        return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "lake", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n DECIMAL(8,2))")


def whole(*row: Any) -> RowSet:
    return RowSet(tuple(range(len(row))), [row])


def test_net_changes_hit_only_the_files_that_have_their_keys(mirror: Mirror) -> None:
    mirror.batch(inserts=[(1, "a", "1.50"), (2, "b", None)])
    mirror.batch(inserts=[(100, "c", "-2.25")])
    files = set(mirror.table.file_uris())
    mirror.batch(updates=[("z", "9.00", 1)], deletes=[(2,)], absent=[(3,)], inserts=[(50, "new", "0.00")])
    assert [(i, v, str(n)) for i, v, n in mirror.rows()] == [
        (1, "z", "9.00"), (50, "new", "0.00"), (100, "c", "-2.25")]  # fmt: skip
    assert len(files & set(mirror.table.file_uris())) == 1


@pytest.mark.parametrize("lists", [
    {"inserts": [(1, "x", None)]}, {"deletes": [(7,)]}, {"updates": [("x", None, 7)]}, {"absent": [(1,)]},
    {"deletes": [(1,)], "updates": [("x", None, 1)]}])  # fmt: skip
def test_what_a_change_expects_is_counted_before_anything_is_decided(mirror: Mirror, lists: dict[str, Any]) -> None:
    mirror.batch(inserts=[(1, "a", None)])
    before = mirror.table.version()
    with pytest.raises(CountMismatch):
        mirror.batch(**lists)
    assert mirror.table.version() == before and mirror.rows() == [(1, "a", None)]


def test_single_changes_have_mysqls_errors_and_savepoints(mirror: Mirror) -> None:
    mirror.batch(inserts=[(1, "a", None), (2, "b", None)])
    mirror.target.begin(foreign_keys=True)
    with pytest.raises(TargetError) as caught:
        mirror.change(ChangeKind.INSERT, None, whole(1, "x", None))
    assert caught.value.errno == 1062
    with pytest.raises(TargetError) as caught:
        mirror.change(ChangeKind.DELETE, whole(9, "x", None), None)
    assert caught.value.errno == 1032
    mirror.change(ChangeKind.UPDATE, RowSet((0,), [(1,)]), RowSet((1,), [("minimal",)]))
    mirror.target.savepoint("s")
    mirror.change(ChangeKind.DELETE, whole(2, "b", None), None)
    mirror.change(ChangeKind.INSERT, None, whole(2, "again", None))
    mirror.target.roll_back_to("s")
    mirror.change(ChangeKind.UPDATE, whole(2, "b", None), whole(3, "moved", None))
    with pytest.raises(TargetError) as caught:
        mirror.change(ChangeKind.UPDATE, whole(3, "moved", None), whole(1, "moved", None))
    assert caught.value.errno == 1062
    mirror.commit()
    assert mirror.rows() == [(1, "minimal", None), (3, "moved", None)]


@pytest.mark.parametrize("values", [(0, 5), (None, 5)])
def test_rows_that_the_source_numbers_stop_the_mirror(mirror: Mirror, values: tuple[int | None, ...]) -> None:
    """They hold 0 or NULL when the column becomes AUTO_INCREMENT; without such rows it becomes so."""
    mirror.ddl("ALTER TABLE t ADD COLUMN k INT")
    mirror.batch(inserts=[(number, "a", "1.50", value) for number, value in enumerate(values)])
    with pytest.raises(TargetError, match="only the source knows") as caught:
        mirror.ddl("ALTER TABLE t MODIFY k INT NOT NULL AUTO_INCREMENT, ADD UNIQUE (k)")
    assert caught.value.errno == 1846
    mirror.batch(deletes=[(0, "a", "1.50", values[0])])
    mirror.ddl("ALTER TABLE t MODIFY k INT NOT NULL AUTO_INCREMENT, ADD UNIQUE (k)")
    assert [row[-1] for row in mirror.rows()] == [5]


def test_null_in_a_column_that_becomes_required_stops_the_mirror(mirror: Mirror) -> None:
    """The source without strict mode replaces it by a default."""
    mirror.batch(inserts=[(1, "a", None), (2, "b", "1.50")])
    with pytest.raises(TargetError, match="NULL in column 'n'") as caught:
        mirror.ddl("ALTER TABLE t MODIFY n DECIMAL(9,2) NOT NULL", sql_mode=0)
    assert caught.value.errno == 1846
    mirror.batch(deletes=[(1, "a", None)])
    mirror.ddl("ALTER TABLE t MODIFY n DECIMAL(9,2) NOT NULL", sql_mode=0)
    assert [row[0] for row in mirror.rows()] == [2]


def test_ddl_gives_the_table_the_columns_of_the_source(mirror: Mirror) -> None:
    mirror.batch(inserts=[(1, "a", "1.50")])
    files = mirror.table.file_uris()
    mirror.ddl("ALTER TABLE t ADD COLUMN w INT")
    assert mirror.table.file_uris() == files
    mirror.ddl("ALTER TABLE t ADD COLUMN k SMALLINT NOT NULL DEFAULT 7")
    mirror.batch(inserts=[(2, "b", None, 5, 6)])
    mirror.ddl("ALTER TABLE t DROP COLUMN n, RENAME COLUMN v TO name, MODIFY k BIGINT")
    assert mirror.rows() == [(1, "a", None, 7), (2, "b", 5, 6)]
    assert [field.name for field in mirror.table.schema().fields] == ["id", "name", "w", "k"]
    mirror.batch(updates=[("z", 1, 1 << 40, 2)])
    assert mirror.rows() == [(1, "a", None, 7), (2, "z", 1, 1 << 40)]
    with pytest.raises(TargetError) as caught:
        mirror.ddl("ALTER TABLE t MODIFY k TINYINT")
    assert caught.value.errno == 1846
    mirror.ddl("TRUNCATE TABLE t")
    assert mirror.rows() == []
    mirror.batch(inserts=[(4, "d", None, 1)])
    mirror.ddl("CREATE TABLE o (id INT PRIMARY KEY)")
    mirror.ddl("RENAME TABLE t TO x, o TO t, x TO o")
    assert mirror.rows() == []
    assert DeltaTable(str(mirror.folder / "d/o")).to_pyarrow_table().to_pylist() == [
        {"id": 4, "name": "d", "w": None, "k": 1}]  # fmt: skip
    mirror.ddl("DROP TABLE o")
    assert DeltaTable(str(mirror.folder / "d/o")).to_pyarrow_table().to_pylist() == []


def test_small_files_are_put_together(mirror: Mirror) -> None:
    for number in range(20):
        mirror.batch(inserts=[(number, "v", None)])
    assert len(mirror.table.file_uris()) <= 9 and len(mirror.rows()) == 20


def test_types_and_keys_of_several_columns(tmp_path: Path) -> None:
    create = """CREATE TABLE t (a BIGINT UNSIGNED, b VARCHAR(9), d DATE, m DATETIME(3), s TIMESTAMP NULL, h TIME,
                e ENUM('x','y'), f FLOAT, r VARBINARY(9), y YEAR, PRIMARY KEY (a, b, d))"""
    mirror = Mirror(tmp_path / "lake", create, url="layer=mirror&zero_dates=null")
    row = (1 << 63, "k", "2024-02-29", "2024-01-01 10:00:00.250", "2024-01-01 00:00:00", "-838:59:59", "y", 0.5, b"\0",
           2024)  # fmt: skip
    mirror.batch(inserts=[row, (1, "k", *row[2:]), (1, "l", "2024-03-01", "0000-00-00 00:00:00.000", *row[4:])])
    mirror.batch(deletes=[(1, "k", "2024-02-29")])
    found = mirror.rows()
    assert [(int(a), b) for a, b, *_ in found] == [(1, "l"), (1 << 63, "k")]
    assert found[0][3] is None and str(found[1][3]) == "2024-01-01 10:00:00.250000" and found[1][5] == "-838:59:59"
    with pytest.raises(CountMismatch):
        mirror.batch(deletes=[(1, "k", "2024-02-29")])


def test_a_key_is_found_by_all_its_columns() -> None:
    keys = [pa.array([3, 1, 1]), pa.array(["a", "b", "a"]), pa.array([b"", b"x", b"x"])]
    rows = [pa.array([1, 3, 1, 3, 1]), pa.array(["a", "a", "b", "b", "a"]), pa.array([b"x", b"", b"x", b"", b""])]
    assert find(keys, [pa.chunked_array([column]) for column in rows]).tolist() == [2, 0, 1, -1, -1]


def test_who_else_rewrites_a_mirrors_file_is_told_apart(mirror: Mirror) -> None:
    mirror.batch(inserts=[(1, "a", None)])
    mirror.target.begin(foreign_keys=True)
    mirror.change(ChangeKind.DELETE, whole(1, "a", None), None)
    (staged,) = mirror.target.take_staged()
    mirror.target.rollback()
    mirror.table.delete("id = 1")
    with pytest.raises(LockBusy, match="is missing in table"):
        DeltaTables(mirror.target.writer).publish(staged, APP, 2)


def test_tables_without_a_key_and_lakes_of_another_layer_are_refused(mirror: Mirror) -> None:
    with pytest.raises(TargetError) as caught:
        mirror.target.check_table(catalog_of("CREATE TABLE t (v INT)").tables[NAME])
    assert caught.value.errno == 1173
    mirror.batch(inserts=[(1, "a", None)])
    with pytest.raises(ConfigError, match="another layer"):
        open_target(f"delta+file://{mirror.folder}")


@pytest.mark.parametrize("key", ["PRIMARY KEY (a(4))", "UNIQUE KEY (a(4))", "UNIQUE KEY ((a + 1))"])
def test_a_key_that_a_mirror_cannot_use_is_not_called_missing(tmp_path: Path, key: str) -> None:
    mirror = Mirror(tmp_path, f"CREATE TABLE t (a VARCHAR(9) NOT NULL, {key})")
    with pytest.raises(TargetError, match="over an expression or a part of a column") as caught:
        mirror.target.check_table(mirror.model)
    assert f"`{'PRIMARY' if 'PRIMARY' in key else 'a' if 'a(4)' in key else 'functional_index'}`" in str(caught.value)
    assert "a key of" not in caught.value.hint, "a key that comes later does not help: the rows are in the log"

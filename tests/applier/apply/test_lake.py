"""What the source took back is no change of a lake, in whatever pieces and ways a transaction is gone through."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas  # type: ignore[import-untyped]
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rplctl.applier.apply import lake
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.applier.spark.lake_piece import LakePiece
from rplctl.relay_log.reader import RelayGroups
from rplctl.target.delta.place import OWN_FOLDER
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.applier.scenario import apply_in_order, scenario
from tests.event import logs

pytestmark = pytest.mark.slow


def logs_of(lake: Path) -> list[Path]:
    """Of the source's tables: what says who wrote a batch is rplctl's own."""
    return sorted(log for log in lake.glob("*/*/_delta_log") if log.parent.parent.name != OWN_FOLDER)


def tables_of(lake: Path) -> set[tuple[str, str]]:
    return {(log.parent.parent.name, log.parent.name) for log in logs_of(lake)}


def kept(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Table → its rows of changes, in the log's order."""
    found = {}
    for log in logs_of(folder):
        rows = DeltaTable(str(log.parent)).to_pyarrow_table().to_pylist()
        seen = [(row["pos"], row["row_number"], row["op"], str(row["before"]), str(row["after"])) for row in rows]
        found[log.parent.name] = sorted(seen)
    return found


def lake_of(
    folder: Path, log: str | RelayGroups, *, in_order: bool = False, kind: str = "delta", **options: str
) -> Path:
    """What a recorded scenario makes, or other groups."""
    groups = scenario(log) if isinstance(log, str) else log
    target = f"{kind}+file://{folder / 'lake'}"
    instance = Instance(folder / "instance", groups, target=target, log_bin="", **options)
    if in_order:
        apply_in_order(instance, groups)
    else:
        instance.apply(groups)
    instance.applier.close()
    instance.target.close()
    return folder / "lake"


def changes(folder: Path, *, in_order: bool) -> dict[str, list[tuple[Any, ...]]]:
    return kept(lake_of(folder, "savepoints", in_order=in_order))


def test_small_pieces_and_one_transaction_at_a_time_keep_the_same_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = changes(tmp_path / "whole", in_order=False)
    assert whole and all(whole.values())
    assert changes(tmp_path / "ordered", in_order=True) == whole
    monkeypatch.setattr(lake, "PIECE_BYTES", 40)
    assert changes(tmp_path / "small", in_order=False) == whole


def test_a_renamed_databases_changes_are_kept_and_only_files_of_a_batchs_tables_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[set[str]] = []
    run = InProcessPipeline.run

    def seen(pipeline: InProcessPipeline, pieces: Sequence[LakePiece], *how: Any) -> list[Any]:
        found.extend({table for _, table in piece.folders} for piece in pieces)
        return run(pipeline, pieces, *how)

    monkeypatch.setattr(InProcessPipeline, "run", seen)
    (database,) = {database for database, _ in tables_of(lake_of(tmp_path / "plain", "savepoints"))}
    plain = kept(tmp_path / "plain/lake")
    named = lake_of(tmp_path / "named", "savepoints", replicate_rewrite_db=f"{database}->other")
    assert {database for database, _ in tables_of(named)} == {"other"}
    assert kept(named) == plain
    assert any(tables < plain.keys() for tables in found) and all(tables <= plain.keys() for tables in found)


def test_filters_choose_among_the_changes_of_a_compressed_transaction(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(logs.log("my97-torture-compress-l1"))
    plain = lake_of(tmp_path / "plain", groups_of(path), on_unsupported_ddl="skip")
    chosen = lake_of(
        tmp_path / "chosen",
        groups_of(path),
        on_unsupported_ddl="skip",
        replicate_rewrite_db="tt_trx->other",
        replicate_ignore_table="other.t2",
    )
    renamed = {("other" if database == "tt_trx" else database, table) for database, table in tables_of(plain)}
    assert tables_of(chosen) == renamed - {("other", "t2")}
    whole = kept(plain)
    assert whole.pop("t2")
    assert {table: unnumbered(rows) for table, rows in kept(chosen).items()} == {
        table: unnumbered(rows) for table, rows in whole.items()
    }


def unnumbered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Still in their order. A transaction's rows are numbered without those that a filter leaves out."""
    return [(pos, *more) for pos, _, *more in rows]


def test_programs_without_spark_read_what_is_kept(tmp_path: Path) -> None:
    """DuckDB's own extension for Delta is downloaded when it is asked for; here it reads what delta-rs names."""
    for log in logs_of(lake_of(tmp_path, "savepoints")):
        table = DeltaTable(str(log.parent))
        arrow = table.to_pyarrow_table()
        rows = sorted((row["pos"], row["row_number"], row["op"], row["after"]) for row in arrow.to_pylist())
        assert rows
        frame = table.to_pandas()
        columns = ("pos", "row_number", "op", "after")
        assert sorted(frame[list(columns)].itertuples(index=False, name=None)) == rows
        wanted = f"SELECT {', '.join(columns)} FROM"
        files = [uri.removeprefix("file://") for uri in table.file_uris()]
        assert sorted(duckdb.execute(f"{wanted} read_parquet({files})").fetchall()) == rows
        assert sorted(duckdb.execute(f"{wanted} arrow").fetchall()) == rows


@pytest.mark.long("One recorded log stays.", keeps=r"^savepoints$")
@pytest.mark.parametrize("name", ["savepoints", "ddl"])
def test_plain_files_hold_what_delta_tables_hold_and_any_program_reads_them_by_their_folder(
    tmp_path: Path, name: str
) -> None:
    page = (Path(__file__).parents[3] / "man/rplctl-lake.7").read_text()
    shown = page.partition("read_parquet('/srv/files/shop/orders/")[2].partition("'")[0]
    delta = kept(lake_of(tmp_path / "delta", name))
    lake, database = lake_of(tmp_path / "parquet", name, kind="parquet"), name
    columns = ["pos", "row_number", "op"]
    seen = []
    for folder in sorted((lake / database).iterdir()):
        rows = pq.read_table(folder, columns=[*columns, "after"]).to_pylist()
        frame = pandas.read_parquet(folder)
        assert sorted(frame[columns].itertuples(index=False, name=None)) == places(rows)
        asked = duckdb.execute(f"SELECT pos, row_number, op, after FROM read_parquet('{folder}/{shown}')").fetchall()
        assert sorted(asked, key=str) == sorted((tuple(row.values()) for row in rows), key=str)
        seen += places(rows)
    assert sorted(seen) == sorted(row[:3] for rows in delta.values() for row in rows)
    parts = f"read_parquet('{lake}/{database}/items*/{shown}', union_by_name=true)"
    together = set(duckdb.execute(f"SELECT pos, row_number, op FROM {parts}").fetchall())
    assert together == {row[:3] for table, rows in delta.items() if table.startswith("items") for row in rows}


def places(rows: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    return sorted((row["pos"], row["row_number"], row["op"]) for row in rows)

"""What the source took back is no change of a lake, in whatever pieces and ways a transaction is gone through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from rplctl.applier.apply import lake
from tests.applier.instance import Instance
from tests.applier.scenario import apply_in_order, scenario


def kept(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Table → its rows of changes, in the log's order."""
    found = {}
    for log in sorted(folder.glob("*/*/_delta_log")):
        rows = DeltaTable(str(log.parent)).to_pyarrow_table().to_pylist()
        seen = [(row["pos"], row["row_number"], row["op"], str(row["before"]), str(row["after"])) for row in rows]
        found[log.parent.name] = sorted(seen)
    return found


def lake_of(folder: Path, name: str, *, in_order: bool = False) -> Path:
    """What a recorded scenario makes."""
    groups = scenario(name)
    instance = Instance(folder / "instance", groups, target=f"delta+file://{folder / 'lake'}", log_bin="")
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


def test_programs_without_spark_read_what_is_kept(tmp_path: Path) -> None:
    """DuckDB's own extension for Delta is downloaded when it is asked for; here it reads what delta-rs names."""
    for log in lake_of(tmp_path, "savepoints").glob("*/*/_delta_log"):
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

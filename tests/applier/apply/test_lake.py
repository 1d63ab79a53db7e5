"""What the source took back is no change of a lake, in whatever pieces and ways a transaction is gone through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def changes(folder: Path, *, in_order: bool) -> dict[str, list[tuple[Any, ...]]]:
    groups = scenario("savepoints")
    instance = Instance(folder / "instance", groups, target=f"delta+file://{folder / 'lake'}", log_bin="")
    if in_order:
        apply_in_order(instance, groups)
    else:
        instance.apply(groups)
    instance.applier.close()
    instance.target.close()
    return kept(folder / "lake")


def test_small_pieces_and_one_transaction_at_a_time_keep_the_same_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = changes(tmp_path / "whole", in_order=False)
    assert whole and all(whole.values())
    assert changes(tmp_path / "ordered", in_order=True) == whole
    monkeypatch.setattr(lake, "PIECE_BYTES", 40)
    assert changes(tmp_path / "small", in_order=False) == whole

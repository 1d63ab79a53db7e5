"""A batch into PostgreSQL: it stops where SQLite stops, and passes over what SQLite passes over (design D2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import TargetError
from tests.applier.apply.test_batch import FILES
from tests.applier.demo_log import demo_groups
from tests.applier.instance import Instance
from tests.kit.postgresql_state import new_database
from tests.kit.servers import PostgresqlServer

pytestmark = pytest.mark.postgresql
DIVERGENCES = ("a missing row", "a row in the way")


@pytest.fixture
def both(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[list[Instance]]:
    made = [Instance(tmp_path / "sqlite"), Instance(tmp_path / "postgresql", target=new_database(postgresql))]
    yield made
    for instance in made:
        instance.target.close()


def table(instance: Instance, name: str) -> str:
    return f"shop__{name}" if instance.target.kind == "sqlite" else f"shop.{name}"


def ids(instance: Instance) -> list[Any]:
    return [
        [row[0] for row in instance.query(f"SELECT id FROM {table(instance, name)} ORDER BY 1")]
        for name in ("products", "orders")
    ]


def diverge(instance: Instance, how: str) -> None:
    """What an operator does to the target behind our back."""
    if how == "a missing row":
        products = table(instance, "products")
        return instance.execute(f"DELETE FROM {products} WHERE id = (SELECT min(id) FROM {products})")
    orders = table(instance, "orders")
    names = [column.name for column in instance.applier.catalog.tables["shop", "orders"].columns]
    values = ", ".join("id + 1" if name == "id" else name for name in names)
    last = f"(SELECT max(id) FROM {orders})"
    instance.execute(f"INSERT INTO {orders} ({', '.join(names)}) SELECT {values} FROM {orders} WHERE id = {last}")


def outcome(instance: Instance, divergence: str) -> tuple[object, ...]:
    """Error, position and rows after the rest of the log met a target that had been changed."""
    half = len(demo_groups(FILES[0]).scan) // 2
    instance.apply(demo_groups(FILES[0]), half)
    diverge(instance, divergence)
    error: TargetError | None = None
    try:
        instance.apply_from(demo_groups(FILES[0]), half)
        for name in FILES[1:]:
            instance.apply(demo_groups(name))
    except TargetError as raised:
        error = raised
    shown = (error.errno, error.message, error.position) if error else None
    return shown, instance.applier.info.exec_position, ids(instance)


@pytest.mark.long(
    "tests/target/test_contract.py::test_a_target_that_differs_is_a_mismatch_and_stays_untouched has PostgreSQL, too.",
)
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_a_target_that_differs_stops_at_the_same_transaction_with_the_same_words(
    both: list[Instance], divergence: str
) -> None:
    sqlite, postgresql = (outcome(instance, divergence) for instance in both)
    assert sqlite == postgresql
    assert postgresql[0] is not None


@pytest.mark.long("tests/applier/apply/test_batch.py passes over the same on SQLite.")
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_idempotent_mode_passes_over_the_same(tmp_path: Path, postgresql: PostgresqlServer, divergence: str) -> None:
    found = []
    for target in ("", new_database(postgresql)):
        instance = Instance(tmp_path / f"r{bool(target)}", target=target, replica_exec_mode="IDEMPOTENT")
        found.append((*outcome(instance, divergence), instance.applier.passed_over))
        instance.target.close()
    assert found[0] == found[1]
    assert found[1][0] is None
    assert found[1][-1] != 0

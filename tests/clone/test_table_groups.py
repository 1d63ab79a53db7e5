"""Which tables one snapshot must show: those that foreign keys link, by whatever way."""

from __future__ import annotations

from rplctl.clone.table_groups import parents_first, table_groups, together
from rplctl.schema.dump import load_catalog
from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName


def tables(*references: str) -> dict[TableName, TableModel]:
    """`child>parent`, or a name alone."""
    found = {}
    for text in references:
        name, _, parent = text.partition(">")
        key = f", p INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES `{parent}` (id)" if parent else ""
        (model,) = load_catalog(f"CREATE TABLE `{name}` (id INT NOT NULL, PRIMARY KEY (id){key});", "d").tables.values()
        found["d", name] = model
    return found


def names(members: list[TableName]) -> str:
    return "".join(sorted(name for _, name in members))


def test_tables_that_are_linked_by_whatever_way_are_one_family() -> None:
    found = table_groups(tables("x", "c>p", "p", "q>p", "s>s", "a>b", "b>a", "o>elsewhere"))
    assert sorted(map(names, found)) == ["ab", "cpq", "o", "s", "x"]


def test_parents_come_first_and_a_cycle_has_an_end() -> None:
    ordered = [model.name for model in parents_first(tables("c>p", "p>g", "g", "s>s", "a>b", "b>a"))]
    assert ordered.index("g") < ordered.index("p") < ordered.index("c")
    assert sorted(ordered) == ["a", "b", "c", "g", "p", "s"]


def test_small_families_share_a_snapshot_and_a_large_one_has_its_own() -> None:
    sizes = {"a": 1 << 29, "b": 1 << 28, "c": 1 << 31, "d": 1}
    found = together([[("d", "a")], [("d", "b")], [("d", "c")], [("d", "d"), ("d", "a")]], lambda name: sizes[name[1]])
    assert list(map(names, found)) == ["ab", "c", "ad"]
    assert [len(members) for members in together([[("d", str(n))] for n in range(450)], lambda _: 0)] == [200, 200, 50]
    assert list(together([], lambda _: 0)) == []

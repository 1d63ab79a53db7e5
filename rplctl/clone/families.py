"""Tables that foreign keys link, by whatever way: a family, which one snapshot shows whole.

Cascades of foreign keys are not in the log. So rows of a child and of its parent must be of one place, and where the
applier goes on from there it follows both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName


def families(models: Mapping[TableName, TableModel]) -> list[list[TableName]]:
    """Each table in one of them; in the order of `models`. Keys that point elsewhere link nothing."""
    family = {name: [name] for name in models}
    for name, model in models.items():
        for parent in _parents(model):
            if parent in family and family[parent] is not family[name]:
                family[name] += family[parent]
                for member in family[parent]:
                    family[member] = family[name]
    return list({id(members): members for members in family.values()}.values())


def parents_first(models: Mapping[TableName, TableModel]) -> list[TableModel]:
    """As far as there are no cycles."""
    ordered: dict[TableName, TableModel] = {}

    def add(names: Iterable[TableName], above: frozenset[TableName]) -> None:
        for name in names:
            if name in models and name not in ordered and name not in above:
                add(_parents(models[name]), above | {name})
                ordered[name] = models[name]

    add(models, frozenset())
    return list(ordered.values())


def _parents(model: TableModel) -> list[TableName]:
    return [(key.ref_database, key.ref_table) for key in model.foreign_keys]

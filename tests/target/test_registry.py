"""The registry: one line for each kind, and a name that has none is an error, never taken for another kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rplctl.errors import ConfigError
from rplctl.target import mapped_errors, open_engine, open_target, two_phase_verbs
from rplctl.target.registry import KINDS, dialect_of, target_kind, value_form


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_found_by_each_of_its_names(name: str) -> None:
    for known in (name, *KINDS[name].also):
        assert dialect_of(known) is dialect_of(name)
        assert value_form(known) is value_form(name)
        assert target_kind(f"{known}+driver://host/db") == name
    assert dialect_of(name).name == name


@pytest.mark.parametrize("ask", [dialect_of, value_form, mapped_errors, two_phase_verbs])
@pytest.mark.parametrize("name", ["oracle", "", "SQLITE", "mysql8"])
def test_a_name_that_no_kind_has_is_an_error(ask: Callable[[str], object], name: str) -> None:
    with pytest.raises(ConfigError, match="is not a kind of database"):
        ask(name)


@pytest.mark.parametrize("ask", [open_engine, open_target])
def test_so_is_a_url_of_none(ask: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError, match="is not a kind of database"):
        ask("oracle://host/db")

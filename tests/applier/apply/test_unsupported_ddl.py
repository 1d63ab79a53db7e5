"""Each value of on_unsupported_ddl skips all that a stricter one skips, and each stop names the value that skips it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rplctl.applier.apply.unsupported_ddl import (
    NOTED_KINDS,
    SKIPPED_KINDS,
    UnsupportedDdl,
    cannot_execute,
    refused_object,
)
from rplctl.config import OPTIONS
from rplctl.errors import RplError
from rplctl.event.format_description import parse_format_description
from rplctl.event.query import parse_query
from rplctl.schema.context import DdlContext
from rplctl.schema.statement import ObjectKind, Unreplicated
from tests.relay_log.stream import FakeSource

DESCRIPTION = parse_format_description(FakeSource(checksum=0).description(0))


def test_the_values_are_those_of_the_option_and_go_from_strict_to_loose() -> None:
    assert set(OPTIONS["on_unsupported_ddl"].choices) == {value.value for value in UnsupportedDdl}
    assert OPTIONS["on_unsupported_ddl"].default == UnsupportedDdl.SKIP_OBJECTS
    kinds = [SKIPPED_KINDS[value] for value in UnsupportedDdl]
    assert kinds == sorted(kinds, key=len) and all(a < b for a, b in zip(kinds, kinds[1:], strict=False))


@pytest.mark.parametrize("kind", ObjectKind)
def test_a_stop_names_the_strictest_value_that_skips_it(kind: ObjectKind) -> None:
    text = f"CREATE {kind}\n x IDENTIFIED BY 'Se-cret' " + "y" * 1000
    error = cannot_execute(Unreplicated(kind=kind, title=f"CREATE {kind.upper()}", text=text), "SQLite")
    assert error.errno == 1235 and error.message.startswith(f"cannot execute CREATE {kind.upper()} on a SQLite target")
    assert "\n" not in error.message and "Se-cret" not in error.message and len(error.message) < 300
    named = re.search(r"rplctl init --on-unsupported-ddl (\w+); rplctl start$", error.hint)
    assert named is not None and kind in SKIPPED_KINDS[UnsupportedDdl(named[1])]
    stricter = list(UnsupportedDdl)[: list(UnsupportedDdl).index(UnsupportedDdl(named[1]))]
    assert not any(kind in SKIPPED_KINDS[value] for value in stricter)


def test_a_view_over_a_table_that_waits_for_its_copy_is_skipped() -> None:
    """The copy would never continue if the applier stopped before the position of its rows."""
    event = FakeSource(checksum=0).query("CREATE OR REPLACE VIEW v AS SELECT id FROM t")
    query, missing = parse_query(event, DESCRIPTION), RplError("Table 'd.t' doesn't exist", errno=1146)
    found = refused_object(query, DdlContext(), missing, (), copies=True)
    assert found is not None and (found.kind, found.is_drop) == (ObjectKind.VIEW, False)
    assert refused_object(query, DdlContext(), missing, (), copies=False) is None
    trigger = FakeSource(checksum=0).query("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @x = 1")
    assert refused_object(parse_query(trigger, DESCRIPTION), DdlContext(), missing, (), copies=True) is None


def test_a_drop_of_what_the_target_never_has_is_no_reason_to_stop() -> None:
    for kind in NOTED_KINDS:
        drop = Unreplicated(kind=kind, title=f"DROP {kind.upper()}", text=f"DROP {kind} IF EXISTS x", is_drop=True)
        assert all(policy.skips(drop) for policy in UnsupportedDdl)
        assert not UnsupportedDdl.STOP_ALL.skips(replace(drop, is_drop=False))
    account = Unreplicated(kind=ObjectKind.ACCOUNT, title="DROP USER", text="DROP USER x", is_drop=True)
    assert not UnsupportedDdl.STOP_ALL.skips(account)
